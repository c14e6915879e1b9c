"""A normalizing flow (RealNVP) that learns the density of two half moons."""

import math

import ftrans.autograd as torch
from ftrans import nn
from ftrans.nn.distributions import MultivariateNormal


class Coupling(nn.Module):
    """Scales and shifts the coordinates outside of a mask by functions of those in it."""

    def __init__(self, mask, width=64):
        super().__init__()
        self.register_buffer("mask", mask)
        self.scale = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 2), nn.Tanh())
        self.shift = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 2))
        self.factor = nn.Parameter(torch.ones(2))

    def coefficients(self, kept):
        outside = 1 - self.mask
        return self.factor * self.scale(kept) * outside, self.shift(kept) * outside

    def forward(self, x):
        kept = x * self.mask
        scale, shift = self.coefficients(kept)
        return kept + (1 - self.mask) * (x * scale.exp() + shift), scale.sum(dim=-1)

    def inverse(self, y):
        kept = y * self.mask
        scale, shift = self.coefficients(kept)
        return kept + (1 - self.mask) * ((y - shift) * torch.exp(-scale))


class Flow(nn.Module):
    def __init__(self, layers=6):
        super().__init__()
        masks = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).tile(layers // 2, 1)
        self.couplings = nn.ModuleList([Coupling(mask) for mask in masks])
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("covariance", torch.eye(2))

    @property
    def base(self):
        return MultivariateNormal(self.mean, self.covariance)

    def forward(self, x):
        log_det = x.new_zeros(x.shape[0])
        for coupling in self.couplings:
            x, change = coupling(x)
            log_det = log_det + change
        return x, log_det

    def log_prob(self, x):
        z, log_det = self(x)
        return self.base.log_prob(z) + log_det

    @torch.no_grad()
    def sample(self, count):
        x = self.base.sample((count,))
        for coupling in reversed(self.couplings):
            x = coupling.inverse(x)
        return x


def moons(count):
    """Points near two half circles, float[count, 2]."""
    angles = math.pi * torch.rand(count)
    upper = torch.stack((angles.cos(), angles.sin()), dim=1)
    lower = torch.stack((1.0 - angles.cos(), 0.5 - angles.sin()), dim=1)
    points = torch.where(torch.rand(count, 1) < 0.5, upper, lower)
    return points + 0.05 * torch.randn(count, 2)


def build():
    return Flow()


def train(flow, steps, batch_size=256):
    optimizer = torch.optim.Adam(flow.parameters(), lr=2e-3, weight_decay=1e-5)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.999)
    losses = []
    for _ in range(steps):
        loss = -flow.log_prob(moons(batch_size)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    torch.manual_seed(0)
    flow = build()
    train(flow, steps=2000)
    flow.eval()
    with torch.no_grad():
        density = flow.log_prob(moons(2000)).mean()
    print(f"mean log density of new points: {density:.3f}")
    x, y = flow.sample(2000).unbind(dim=1)
    print(f"samples: mean ({x.mean():.2f}, {y.mean():.2f}), data: mean (0.50, 0.25)")
