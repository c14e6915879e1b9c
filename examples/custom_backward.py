"""Modules that state their own derivative: four layers, each trained, each both with tensors and compiled.

The first one calls SciPy, which cannot be traced; the second has no useful derivative; the third turns gradients round;
the last has its gradient in the loss, so that its rule is differentiated once more.

    python examples/custom_backward.py
"""

import sys

import numpy as np
from scipy.ndimage import gaussian_filter1d

import ftrans as ft
from ftrans import nn

no_grad, tensor = ft.autograd.no_grad, ft.autograd.tensor


class Smooth(nn.Module):
    """A Gaussian filter of SciPy, times a gain that is trained."""

    def __init__(self, sigma):
        self.sigma = sigma
        self.gain = nn.Parameter(np.array(1.0))

    def smoothed(self, x):
        return gaussian_filter1d(np.asarray(x), self.sigma, mode="constant")

    def forward(self, ctx, x):
        y = self.smoothed(x)
        ctx.save_for_backward(y)
        return self.gain * y

    def backward(self, ctx, grad_output):
        (y,) = ctx.saved_tensors
        self.gain.grad = (grad_output * y).sum()
        # The filter is its own transpose.
        return self.gain * self.smoothed(grad_output)


class Binarize(nn.Module):
    """The sign of the argument; on the way back, the identity between -1 and 1."""

    def forward(self, ctx, x):
        ctx.save_for_backward(x)
        return np.where(x >= 0, 1.0, -1.0)

    def backward(self, ctx, grad_output):
        (x,) = ctx.saved_tensors
        return np.where(abs(x) <= 1, grad_output, 0.0)


class Reverse(nn.Module):
    """The argument itself; what flows back changes its sign."""

    def forward(self, ctx, x):
        return x

    def backward(self, ctx, grad_output):
        return -grad_output


class Softsign(nn.Module):
    """x / (1 + |x|), whose stated derivative is differentiated again."""

    def forward(self, ctx, x):
        ctx.save_for_backward(x)
        return x / (1 + abs(x))

    def backward(self, ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output / (1 + abs(x)) ** 2


def trained(model, loss, data, steps, rate, compiled):
    """The first and the last loss of plain gradient descent."""

    @nn.jit
    def step(model, *data):
        value, gradients = nn.value_and_grad(loss)(model, *data)
        for path, p in model.named_parameters():
            p -= rate * gradients[path]
        return value

    def step_on_tensors(model, *data):
        model.zero_grad()
        value = loss(model, *[tensor(x) for x in data])
        value.backward()
        with no_grad():
            for p in model.parameters():
                p -= rate * p.grad
        return value.item()

    values = [float((step if compiled else step_on_tensors)(model, *data)) for _ in range(steps)]
    return values[0], values[-1]


def deconvolve(compiled):
    """A signal before a filter, from what is seen behind it."""

    class Signal(nn.Module):
        def __init__(self):
            self.signal = nn.Parameter(np.zeros(40))
            self.smooth = Smooth(1.5)

        def forward(self):
            return self.smooth(self.signal)

    seen = 2.0 * gaussian_filter1d(np.where(abs(np.arange(40) - 20) < 6, 1.0, 0.0), 1.5, mode="constant")
    model = Signal()
    return trained(model, lambda m, seen: ((m() - seen) ** 2).sum(), [seen], 400, 0.05, compiled)


def binary_features(compiled):
    """Two classes that no line divides, by a layer of signs."""
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, (200, 2))
    label = np.where(x[:, 0] * x[:, 1] > 0, 1.0, -1.0)
    nn.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 32).double(), Binarize(), nn.Linear(32, 1).double())

    def loss(model, x, label):
        return ((model(x)[:, 0] - label) ** 2).mean()

    return trained(model, loss, [x, label], 200, 0.02, compiled)


def reversal(compiled):
    """A feature that tells one label and hides another, which is looked for behind the reversal."""

    class Hiding(nn.Module):
        def __init__(self):
            self.direction = nn.Parameter(np.array([1.0, 1.0]))
            self.reverse = Reverse()
            self.told, self.hidden = nn.Parameter(np.array(0.5)), nn.Parameter(np.array(0.5))

        def forward(self, x):
            feature = x @ (self.direction / np.sqrt((self.direction**2).sum()))
            return self.told * feature, self.hidden * self.reverse(feature)

    def loss(model, x, told, hidden):
        first, second = model(x)
        return ((first - told) ** 2).mean() + ((second - hidden) ** 2).mean()

    random = np.random.default_rng(0)
    told, hidden = random.choice([-1.0, 1.0], (2, 200))
    x = np.stack([told, hidden], 1) + 0.1 * random.standard_normal((200, 2))
    model = Hiding()

    def seen():
        return abs(np.corrcoef(x @ model.direction.value, hidden)[0, 1])

    before = seen()
    trained(model, loss, [x, told, hidden], 200, 0.1, compiled)
    return before, seen()


def slopes(critic, x):
    """The norm of the gradient of the critic at each point, in either world."""
    if isinstance(x, ft.autograd.Tensor):
        x = x.detach().requires_grad_()
        (g,) = ft.autograd.grad(critic(x).sum(), x, create_graph=True)
    else:
        g = ft.grad(lambda x: critic(x).sum())(x)
    return np.sqrt((g**2).sum(1))


def gradient_penalty(compiled):
    """A critic that tells two clouds apart, with slope one between them."""
    random = np.random.default_rng(0)
    real, fake = random.standard_normal((64, 2)) + 2.0, random.standard_normal((64, 2))
    nn.manual_seed(0)
    critic = nn.Sequential(nn.Linear(2, 16).double(), Softsign(), nn.Linear(16, 1).double())

    def loss(critic, real, fake):
        between = 0.5 * real + 0.5 * fake
        return critic(fake).mean() - critic(real).mean() + 10 * ((slopes(critic, between) - 1) ** 2).mean()

    return trained(critic, loss, [real, fake], 200, 0.02, compiled)


def main():
    """Train all of them; return how many did not get better, or differ between the two worlds."""
    failures = 0
    rows = (
        ("deconvolution by SciPy", deconvolve, 0.05),
        ("layer of signs", binary_features, 0.6),
        ("gradient reversal", reversal, 0.2),
        ("gradient penalty", gradient_penalty, -1.5),
    )
    print("layer                    at first  with tensors  compiled")
    for name, run, bound in rows:
        (first, with_tensors), (_, compiled) = run(False), run(True)
        is_right = with_tensors < bound and abs(with_tensors - compiled) < 1e-6
        failures += not is_right
        print(f"{name:24} {first:8.3f}  {with_tensors:12.3f}  {compiled:8.3f}  {'' if is_right else 'WRONG'}".rstrip())
    return failures


if __name__ == "__main__":
    sys.exit(main())
