"""A Wasserstein GAN with gradient penalty that learns eight normal distributions on a circle."""

import math

import ftrans.autograd as torch
from ftrans import nn
from ftrans.nn import optim


class Generator(nn.Module):
    def __init__(self, latent=2, width=64):
        super().__init__()
        self.latent = latent
        self.main = nn.Sequential(
            nn.Linear(latent, width),
            nn.ReLU(True),
            nn.Linear(width, width),
            nn.ReLU(True),
            nn.Linear(width, 2),
        )

    def forward(self, noise):
        return self.main(noise)


class Critic(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(2, width),
            nn.LeakyReLU(0.2),
            nn.Linear(width, width),
            nn.LeakyReLU(0.2),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.main(x).view(-1)


def circle(count):
    """Points of eight normal distributions, float[count, 2]."""
    angles = torch.randint(0, 8, (count,)).float() * (math.pi / 4)
    centres = torch.stack([torch.cos(angles), torch.sin(angles)], dim=1)
    return 2.0 * centres + 0.05 * torch.randn(count, 2)


def gradient_penalty(critic, real, fake):
    """How far the slope of the critic is from 1 between real and fake points."""
    alpha = torch.rand(real.size(0), 1).expand_as(real)
    between = (alpha * real.detach() + (1 - alpha) * fake.detach()).requires_grad_(True)
    scores = critic(between)
    gradients = torch.autograd.grad(
        outputs=scores,
        inputs=between,
        grad_outputs=torch.ones_like(scores),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


def build():
    return Generator(), Critic()


def train(generator, critic, steps, batch_size=256, critic_steps=5, weight=0.1):
    optimizer_g = optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
    optimizer_c = optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
    losses = []
    for _ in range(steps):
        for p in critic.parameters():
            p.requires_grad = True
        for _ in range(critic_steps):
            real = circle(batch_size)
            with torch.no_grad():
                fake = generator(torch.randn(batch_size, generator.latent))
            critic.zero_grad()
            distance = critic(real).mean() - critic(fake).mean()
            penalty = gradient_penalty(critic, real, fake)
            (weight * penalty - distance).backward()
            optimizer_c.step()
        for p in critic.parameters():
            p.requires_grad = False
        generator.zero_grad()
        loss = -critic(generator(torch.randn(batch_size, generator.latent))).mean()
        loss.backward()
        optimizer_g.step()
        losses.append(distance.item() + loss.item())
    return losses


if __name__ == "__main__":
    torch.manual_seed(0)
    generator, critic = build()
    train(generator, critic, steps=1000)
    with torch.no_grad():
        points = generator(torch.randn(1000, generator.latent))
    radius = points.norm(dim=1)
    print(f"radius of the points: {radius.mean():.2f} +- {radius.std():.2f}, of the data: 2.00 +- 0.05")
