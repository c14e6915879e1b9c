"""Five operations with derivatives of their own, each a subclass of `ft.autograd.Function`.

Each is checked against what is known of it: a closed form, or the derivative that ftrans finds by itself. The last one
calls SciPy, which cannot be traced: its backward supplies the gradient, and joins the two parts around it.

    python examples/custom_functions.py
"""

import sys

import numpy as np
from scipy.linalg import lu_factor, lu_solve

import ftrans as ft

Function, tensor = ft.autograd.Function, ft.autograd.tensor


class Exp(Function):
    """The exponential, whose derivative is its result."""

    @staticmethod
    def forward(ctx, x):
        y = np.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y


class ScaleGradient(Function):
    """The argument itself; what flows back is multiplied by a coefficient."""

    @staticmethod
    def forward(ctx, x, coefficient):
        ctx.coefficient = coefficient
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.coefficient, None


class Multiply(Function):
    """The elementwise product, with a gradient for each factor."""

    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        # Work that nobody asked for can be left out.
        of_x = grad * y if ctx.needs_input_grad[0] else None
        of_y = grad * x if ctx.needs_input_grad[1] else None
        return of_x, of_y


class Sign(Function):
    """The sign, whose derivative is taken to be 1 (a straight-through estimator), and 0 where the argument is large."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return np.sign(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (np.abs(x) <= 1)


class Solve(Function):
    """The solution of a linear system, by SciPy: code that works on arrays, and that nothing can trace."""

    @staticmethod
    def forward(ctx, matrix, right):
        factors, pivots = lu_factor(matrix.numpy())
        solution = tensor(lu_solve((factors, pivots), right.numpy()))
        ctx.save_for_backward(solution)
        # The way back needs the same factors again.
        ctx.factors, ctx.pivots = factors, pivots
        return solution

    @staticmethod
    @ft.autograd.once_differentiable
    def backward(ctx, grad):
        (solution,) = ctx.saved_tensors
        of_right = lu_solve((ctx.factors, ctx.pivots), grad.numpy(), trans=1)
        return -np.outer(of_right, solution.numpy()), of_right


def layers(weights, x, solve=Solve.apply):
    """A differentiable part, the layer that calls SciPy, and another differentiable part."""
    matrix = np.tanh(weights) + 3 * np.eye(len(x))
    return np.sum(np.sin(solve(matrix, x**2)))


def gradients(f, *values):
    """Gradients of a scalar function of tensors by `backward`."""
    tensors = [tensor(v, requires_grad=True) for v in values]
    f(*tensors).backward()
    return [t.grad.numpy() for t in tensors]


def report(name, found, expected):
    """Print one line; return whether the numbers agree."""
    error = max(np.max(np.abs(np.asarray(a) - np.asarray(b))) for a, b in zip(found, expected, strict=True))
    print(f"{name:<40} largest error {error:.1e}")
    return error < 1e-12


def main():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=3), rng.normal(size=3)
    weights, xs = rng.normal(size=(3, 3)), rng.normal(size=(4, 3))
    agree = [report("exp", gradients(lambda x: Exp.apply(x).sum(), x), [np.exp(x)])]

    leaf = tensor(x, requires_grad=True)
    (first,) = ft.autograd.grad(Exp.apply(leaf).sum(), leaf, create_graph=True)
    agree.append(report("exp, second derivative", ft.autograd.grad(first.sum(), leaf), [np.exp(x)]))
    hessian = ft.hessian(lambda x: np.sum(Exp.apply(x)))(x)
    agree.append(report("exp, ft.hessian", [hessian], [np.diag(np.exp(x))]))

    found = gradients(lambda x: (ScaleGradient.apply(x, 0.1) ** 2).sum(), x)
    agree.append(report("a gradient scaled by 0.1", found, [0.2 * x]))
    agree.append(report("product", gradients(lambda x, y: Multiply.apply(x, y).sum(), x, y), [y, x]))

    found = gradients(lambda x: (3 * Sign.apply(x)).sum(), np.array([-2.0, -0.5, 0.5, 2.0]))
    agree.append(report("straight-through sign", found, [np.array([0.0, 3.0, 3.0, 0.0])]))

    # What ftrans finds if it may see inside is the measure for the layer that it may not look into.
    def seen_through(weights, x):
        return layers(weights, x, np.linalg.solve)

    expected = ft.grad(seen_through, (0, 1))(weights, x)
    gradient = ft.grad(layers, (0, 1))
    agree.append(report("SciPy layer, backward", gradients(layers, weights, x), expected))
    agree.append(report("SciPy layer, ft.grad", gradient(weights, x), expected))
    agree.append(report("SciPy layer, compiled", ft.jit(gradient)(weights, x), expected))
    lanes = ft.vmap(gradient, in_axes=(None, 0))(weights, xs)
    expected = ft.vmap(ft.grad(seen_through, (0, 1)), in_axes=(None, 0))(weights, xs)
    agree.append(report("SciPy layer, ft.vmap of ft.grad", lanes, expected))
    return 0 if all(agree) else 1


if __name__ == "__main__":
    sys.exit(main())
