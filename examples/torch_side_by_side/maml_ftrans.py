"""MAML: a network is trained so that one step of gradient descent fits it to a new sine wave, seen at ten points."""

import math

import ftrans.autograd as torch
from ftrans import nn
from ftrans.nn import functional as F
from ftrans.nn.utils.stateless import functional_call


class Regressor(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(1, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.layers(x)


class Waves:
    """Sine waves of random amplitude and phase, each of them a task."""

    def __init__(self, shots=10):
        self.shots = shots

    def sample(self):
        amplitude = 0.1 + 4.9 * torch.rand(1)
        phase = math.pi * torch.rand(1)
        x = 10.0 * torch.rand(2 * self.shots, 1) - 5.0
        y = amplitude * torch.sin(x + phase)
        return (x[: self.shots], y[: self.shots]), (x[self.shots :], y[self.shots :])


def adapt(model, weights, x, y, lr=0.01):
    """The weights after a step of gradient descent, as a function of those before."""
    loss = F.mse_loss(functional_call(model, weights, (x,)), y)
    gradients = torch.autograd.grad(loss, tuple(weights.values()), create_graph=True)
    return {name: w - lr * g for (name, w), g in zip(weights.items(), gradients, strict=True)}


def evaluate(model, waves, tasks=100, steps=5):
    """The mean loss on new tasks after each number of steps."""
    losses = torch.zeros(steps + 1)
    for _ in range(tasks):
        (x, y), (x_new, y_new) = waves.sample()
        weights = dict(model.named_parameters())
        for step in range(steps + 1):
            with torch.no_grad():
                losses[step] += F.mse_loss(functional_call(model, weights, (x_new,)), y_new) / tasks
            weights = {name: w.detach().requires_grad_() for name, w in adapt(model, weights, x, y).items()}
    return losses


def build():
    return Regressor()


def train(model, steps, tasks=4):
    waves = Waves()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = 0.0
        for _ in range(tasks):
            (x, y), (x_new, y_new) = waves.sample()
            weights = adapt(model, dict(model.named_parameters()), x, y)
            loss = loss + F.mse_loss(functional_call(model, weights, (x_new,)), y_new) / tasks
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    torch.manual_seed(0)
    model = build()
    train(model, steps=2000)
    for step, loss in enumerate(evaluate(model, Waves())):
        print(f"loss after {step} steps on a new wave: {loss:.3f}")
