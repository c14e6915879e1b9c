"""A neural ODE that learns the motion along a spiral; its backward pass solves the adjoint equation backwards."""

import ftrans.autograd as torch
from ftrans import nn


class Dynamics(nn.Module):
    def __init__(self, width=50):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 2))
        for module in self.net.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, mean=0, std=0.1)
                nn.init.constant_(module.bias, val=0)

    def forward(self, t, y):
        return self.net(y**3)


def rk4(f, t, h, y):
    """A step of the classical method of Runge and Kutta."""
    k1 = f(t, y)
    k2 = f(t + h / 2, y + h / 2 * k1)
    k3 = f(t + h / 2, y + h / 2 * k2)
    k4 = f(t + h, y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


class Solve(torch.autograd.Function):
    """The solution at times `t`; gradients by the adjoint equation, so that no step is kept."""

    @staticmethod
    def forward(ctx, f, y, t, *parameters):
        ctx.f = f
        ys = [y]
        with torch.no_grad():
            for i in range(len(t) - 1):
                ys.append(rk4(f, t[i], t[i + 1] - t[i], ys[-1]))
        solution = torch.stack(ys)
        ctx.save_for_backward(t, solution, *parameters)
        return solution

    @staticmethod
    def backward(ctx, gradient):
        t, solution, *parameters = ctx.saved_tensors
        adjoint, sums = gradient[-1], [torch.zeros_like(p) for p in parameters]
        for i in range(len(t) - 2, -1, -1):
            with torch.enable_grad():
                y = solution[i].detach().requires_grad_(True)
                step = rk4(ctx.f, t[i], t[i + 1] - t[i], y)
                adjoint, *changes = torch.autograd.grad(step, (y, *parameters), adjoint)
            adjoint = adjoint + gradient[i]
            sums = [total + change for total, change in zip(sums, changes, strict=True)]
        return None, adjoint, None, *sums


def odeint(f, y, t):
    return Solve.apply(f, y, t, *f.parameters())


def spiral(count=200):
    """Times, float[count], and points of a spiral at these, float[count, 2]."""
    matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    t = torch.linspace(0.0, 5.0, count)
    y, ys = torch.tensor([2.0, 0.0]), []
    for _ in range(count):
        ys.append(y)
        y = rk4(lambda t, y: (y**3) @ matrix, 0.0, 5.0 / (count - 1), y)
    return t, torch.stack(ys)


def build():
    return Dynamics()


def train(model, steps, batch_size=20, length=10):
    t, points = spiral()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(steps):
        starts = torch.randint(0, len(t) - length, (batch_size,))
        expected = torch.stack([points[starts + i] for i in range(length)], dim=0)
        optimizer.zero_grad()
        predicted = odeint(model, points[starts], t[:length])
        loss = torch.mean(torch.abs(predicted - expected))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    torch.manual_seed(0)
    model = build()
    train(model, steps=1000)
    t, points = spiral()
    with torch.no_grad():
        distance = (odeint(model, points[0], t) - points).abs().mean()
    print(f"mean distance from the spiral: {distance:.3f}")
