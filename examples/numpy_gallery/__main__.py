"""Functions as scientists write them in NumPy, each differentiated as it stands, un-jitted and compiled.

    python examples/numpy_gallery              # all of them: value, gradient, and how far differences are from it
    python examples/numpy_gallery pca truss    # some of them
    python examples/numpy_gallery --no-jit     # without compiling, which takes longest for Python's loops

Every other file of this folder is one such function. Most of them import NumPy and SciPy alone; those that fill arrays
with traced values import `ftrans.numpy` in place of NumPy, because only its `zeros` and `array` can be assigned to.
"""

import argparse
import importlib
import sys
import time
from pathlib import Path

import numpy as np

import ftrans as ft

HERE = Path(__file__).parent
NAMES = sorted(p.stem for p in HERE.glob("*.py") if p.stem != "__main__")


def directional_difference(f, args, direction, step=1e-5):
    """Central difference of `f` along a direction in its first argument, an array or a dictionary of arrays."""
    first, *others = args

    def moved(h):
        if isinstance(first, dict):
            return {name: value + h * direction[name] for name, value in first.items()}
        return first + h * direction

    return (f(moved(step), *others) - f(moved(-step), *others)) / (2 * step)


def inner(x, y):
    """Inner product of two arrays, or of two dictionaries of them."""
    return sum(inner(x[name], y[name]) for name in x) if isinstance(x, dict) else float(np.sum(x * y))


def show(name, jit):
    """Print one line on a function; return the relative error of its gradient against differences."""
    f, args = importlib.import_module(name).example()
    value, gradient = ft.value_and_grad(f)(*args)
    start = time.perf_counter()
    ft.grad(f)(*args)
    plain = time.perf_counter() - start
    random = np.random.default_rng(0)
    is_dict = isinstance(gradient, dict)
    direction = (
        {k: random.normal(size=v.shape) for k, v in gradient.items()} if is_dict else random.normal(size=gradient.shape)
    )
    exact = inner(gradient, direction)
    scale = max(abs(exact), 1e-3)
    error = abs(directional_difference(f, args, direction) - exact) / scale
    jitted = ""
    if jit:
        compiled = ft.jit(ft.grad(f))
        error = max(error, abs(inner(compiled(*args), direction) - exact) / scale)
        start = time.perf_counter()
        compiled(*args)
        jitted = f"{1e3 * (time.perf_counter() - start):10.3f}"
    print(f"{name:24} {value:14.6f} {exact:14.6f} {error:10.0e} {1e3 * plain:10.2f} {jitted}")
    return error


def main():
    """Run the functions that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of {', '.join(NAMES)}")
    parser.add_argument("--no-jit", action="store_true", help="leave compiled gradients out")
    options = parser.parse_args()
    names = options.names or NAMES
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    print(f"{'':24} {'value':>14} {'derivative':>14} {'error':>10} {'grad, ms':>10} {'jitted, ms':>10}")
    worst = max(show(name, not options.no_jit) for name in names)
    print(f"The derivatives along a random direction agree with differences to {worst:.0e}.")
    sys.exit(int(worst > 1e-4))


if __name__ == "__main__":
    main()
