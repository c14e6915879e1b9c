"""REINFORCE with a baseline: a policy learns when to fire the engine of a rocket so that it lands softly."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical


class Lander:
    """A rocket above the ground, with an engine that is stronger than gravity, and little fuel.

    Observations are height, velocity and fuel; actions are 0, to fall, and 1, to fire.
    """

    def __init__(self, seed=0, limit=100):
        self.rng = np.random.default_rng(seed)
        self.limit = limit

    def reset(self):
        self.height = self.rng.uniform(0.8, 1.2)
        self.velocity = self.rng.uniform(-0.2, 0.0)
        self.fuel, self.time = 1.0, 0
        return self.observe()

    def observe(self):
        return np.array([self.height, self.velocity, self.fuel], dtype=np.float32)

    def step(self, action):
        thrust = 2.0 if action == 1 and self.fuel > 0 else 0.0
        self.fuel -= 0.02 * (thrust > 0)
        self.velocity += 0.05 * (thrust - 1.0)
        self.height += 0.05 * self.velocity
        self.time += 1
        if self.height <= 0:
            return self.observe(), 1.0 - 2.0 * abs(self.velocity), True
        return self.observe(), -0.01, self.time == self.limit


class Policy(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.hidden = nn.Linear(3, width)
        self.action = nn.Linear(width, 2)
        self.value = nn.Linear(width, 1)

    def forward(self, state):
        hidden = torch.tanh(self.hidden(state))
        return F.softmax(self.action(hidden), dim=-1), self.value(hidden)


def select_action(policy, state):
    state = torch.from_numpy(state).float().unsqueeze(0)
    probabilities, value = policy(state)
    choice = Categorical(probabilities)
    action = choice.sample()
    return action.item(), choice.log_prob(action), value.squeeze(), choice.entropy()


def returns_of(rewards, gamma=0.99):
    """The discounted sums of the rewards that follow each step."""
    total, returns = 0.0, []
    for reward in rewards[::-1]:
        total = reward + gamma * total
        returns.insert(0, total)
    return torch.tensor(returns, dtype=torch.float32)


def play(policy, lander):
    """The log probabilities, values, entropies and rewards of an episode."""
    state, is_over = lander.reset(), False
    log_probs, values, entropies, rewards = [], [], [], []
    while not is_over:
        action, log_prob, value, entropy = select_action(policy, state)
        state, reward, is_over = lander.step(action)
        log_probs.append(log_prob)
        values.append(value)
        entropies.append(entropy)
        rewards.append(reward)
    return torch.cat(log_probs), torch.stack(values), torch.cat(entropies), rewards


def build():
    return Policy()


def train(policy, steps):
    lander = Lander()
    optimizer = optim.Adam(policy.parameters(), lr=3e-3)
    losses = []
    for _ in range(steps):
        log_probs, values, entropies, rewards = play(policy, lander)
        returns = returns_of(rewards)
        advantage = returns - values.detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        loss = -(log_probs * advantage).mean() + F.smooth_l1_loss(values, returns) - 0.01 * entropies.mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    torch.manual_seed(0)
    policy = build()
    train(policy, steps=1000)
    with torch.no_grad():
        rewards = [sum(play(policy, Lander(seed))[-1]) for seed in range(1, 21)]
    print(f"mean reward of 20 landings: {np.mean(rewards):.2f}, 0.9 at best")
