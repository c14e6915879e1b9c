"""A network that solves Burgers' equation by its residual alone (Raissi, Perdikaris and Karniadakis, 2019).

    u_t + u u_x = nu u_xx   for -1 <= x <= 1 and 0 <= t <= 1,   u(0, x) = -sin(pi x),   u(t, -1) = u(t, 1) = 0

with nu = 0.01 / pi, for which a steep front forms at x = 0. The network has the initial and boundary values by its
form; it is trained to make the residual of the equation small at random points, first by Adam and then by L-BFGS. The
result is compared with the exact solution. A picture goes to burgers_pinn.png, where matplotlib is installed.

    python examples/burgers_pinn.py
"""

import argparse
from importlib.util import find_spec

import numpy as np

import ftrans as ft
from ftrans import nn

NU = 0.01 / np.pi


class Solution(nn.Module):
    """u(t, x) for one point."""

    def __init__(self, width=20):
        self.network = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(),
            nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, 1),
        )  # fmt: skip

    def forward(self, t, x):
        (y,) = self.network(np.stack([2 * t - 1, x]))
        return -np.sin(np.pi * x) + t * (1 - x**2) * y


def residual(u, t, x):
    """How far u is from Burgers' equation at one point."""
    u_t = ft.grad(u, argnums=0)
    u_x = ft.grad(u, argnums=1)
    u_xx = ft.grad(u_x, argnums=1)
    return u_t(t, x) + u(t, x) * u_x(t, x) - NU * u_xx(t, x)


def loss(u, t, x):
    return np.mean(ft.vmap(lambda t, x: residual(u, t, x))(t, x) ** 2)


def random_points(rng, count):
    return rng.uniform(0, 1, count), rng.uniform(-1, 1, count)


def spread_points(rng, count):
    """Random points, one in each cell of a grid, which leave no holes."""
    rows = max(1, round((count / 2) ** 0.5))
    row, column = np.divmod(np.arange(count // rows * rows), count // rows)
    shifts = rng.uniform(size=(2, len(row)))
    return (row + shifts[0]) / rows, 2 * (column + shifts[1]) / (count // rows) - 1


def train_by_adam(u, rng, steps, points):
    """Train on new points in each step, in float32."""
    optimizer = nn.optim.Adam(u.parameters(), lr=5e-3)
    scheduler = nn.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.7 ** (1 / 1000))

    @nn.jit
    def step(u, optimizer, t, x):
        value, gradients = nn.value_and_grad(loss)(u, t, x)
        optimizer.step(gradients)
        return value

    for i in range(1, steps + 1):
        t, x = random_points(rng, points)
        value = step(u, optimizer, np.float32(t), np.float32(x))
        scheduler.step()
        if i % 250 == 0:
            print(f"Adam    {i:5} steps   loss {value:.2e}")


def train_by_lbfgs(u, rng, steps, points):
    """Train on the same points all the time, in float64: L-BFGS measures how gradients change from step to step."""
    u.double()
    t, x = spread_points(rng, points)
    # A step is up to 250 iterations, each with a search along its direction, in one compiled program.
    optimizer = nn.optim.LBFGS(
        u, max_iter=min(250, steps), max_eval=500, history_size=50, line_search_fn="strong_wolfe",
        tolerance_grad=0, tolerance_change=0,
    )  # fmt: skip

    @nn.jit
    def step(u, optimizer, t, x):
        return optimizer.step(lambda u: loss(u, t, x))

    for i in range(0, steps, 250):
        value = step(u, optimizer, t, x)
        print(f"L-BFGS  {i:5} steps   loss {value:.2e}")  # the loss before these


def exact(t, x, nodes=200):
    """The solution by the transformation of Cole and Hopf: two Gaussian integrals, by Gauss-Hermite quadrature."""
    z, weights = np.polynomial.hermite.hermgauss(nodes)
    y = x[..., None] - np.sqrt(4 * NU * t[..., None]) * z
    density = weights * np.exp(-np.cos(np.pi * y) / (2 * np.pi * NU))
    return -np.sum(np.sin(np.pi * y) * density, axis=-1) / np.sum(density, axis=-1)


def draw(t, x, predicted, error, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots(2, 1, sharex=True)
    for ax, values, title in zip(axes, (predicted, np.abs(error)), ("u(t, x)", "error"), strict=True):
        figure.colorbar(ax.pcolormesh(t, x, values), ax=ax)
        ax.set(title=title, ylabel="x")
    axes[-1].set_xlabel("t")
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--adam", type=int, default=1000, help="steps of Adam")
    parser.add_argument("--lbfgs", type=int, default=5000, help="steps of L-BFGS")
    parser.add_argument("--points", type=int, default=5000, help="points that the residual is taken at")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", default="burgers_pinn.png")
    args = parser.parse_args()

    rng = np.random.default_rng(args.seed)
    nn.manual_seed(args.seed)
    u = Solution()
    train_by_adam(u, rng, args.adam, args.points)
    train_by_lbfgs(u, rng, args.lbfgs, args.points)

    t, x = np.meshgrid(np.linspace(0, 1, 101), np.linspace(-1, 1, 257), indexing="ij")
    predicted = ft.vmap(u)(t.ravel(), x.ravel()).reshape(t.shape)
    error = predicted - exact(t, x)
    print(f"relative L2 error: {np.linalg.norm(error) / np.linalg.norm(exact(t, x)):.1e}")
    if find_spec("matplotlib"):
        draw(t, x, predicted, error, args.picture)


if __name__ == "__main__":
    main()
