"""Fourteen regression problems of NIST, solved to the digits that NIST certified, by exact derivatives.

Each model below is a plain NumPy function. `ft.jacobian` of its residuals drives a Levenberg-Marquardt fit,
`ft.hessian` of the residual sum of squares (RSS) lets Newton's method finish it, and the Jacobian at the
solution gives the standard errors. NIST publishes 11 digits, so 11 is the most that can agree.

    python examples/nist_regression.py              # from NIST's start 2, nearer to the solution
    python examples/nist_regression.py --start 1    # from NIST's start 1, far from it
    python examples/nist_regression.py --jit        # every derivative compiled by XLA
"""

import argparse
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import ftrans as ft

Array = np.ndarray

DATA = Path(__file__).parent / "data" / "nist-strd"
CERTIFIED_DIGITS = 11
REQUIRED_DIGITS = 9
MOST_STEPS = 3000

# The models: parameters b and predictor x in, response out, as NIST states them.


def misra1a(b, x):
    return b[0] * (1 - np.exp(-b[1] * x))


def bennett5(b, x):
    return b[0] * (b[1] + x) ** (-1 / b[2])


def danwood(b, x):
    return b[0] * x ** b[1]


def eckerle4(b, x):
    return b[0] / b[1] * np.exp(-0.5 * ((x - b[2]) / b[1]) ** 2)


def enso(b, x):
    def cycle(period, cosine, sine):
        angle = 2 * np.pi * x / period
        return cosine * np.cos(angle) + sine * np.sin(angle)

    return b[0] + cycle(12, b[1], b[2]) + cycle(b[3], b[4], b[5]) + cycle(b[6], b[7], b[8])


def gauss1(b, x):
    def peak(height, centre, width):
        return height * np.exp(-(((x - centre) / width) ** 2))

    return b[0] * np.exp(-b[1] * x) + peak(b[2], b[3], b[4]) + peak(b[5], b[6], b[7])


def kirby2(b, x):
    return (b[0] + b[1] * x + b[2] * x**2) / (1 + b[3] * x + b[4] * x**2)


def cubic_over_cubic(b, x):
    return (b[0] + b[1] * x + b[2] * x**2 + b[3] * x**3) / (1 + b[4] * x + b[5] * x**2 + b[6] * x**3)


def lanczos3(b, x):
    return b[0] * np.exp(-b[1] * x) + b[2] * np.exp(-b[3] * x) + b[4] * np.exp(-b[5] * x)


def mgh09(b, x):
    return b[0] * (x**2 + x * b[1]) / (x**2 + x * b[2] + b[3])


def mgh17(b, x):
    return b[0] + b[1] * np.exp(-x * b[3]) + b[2] * np.exp(-x * b[4])


def rat43(b, x):
    return b[0] / (1 + np.exp(b[1] - b[2] * x)) ** (1 / b[3])


MODELS = {
    "Misra1a": misra1a,
    "DanWood": danwood,
    "Gauss1": gauss1,
    "Lanczos3": lanczos3,
    "Kirby2": kirby2,
    "Hahn1": cubic_over_cubic,
    "ENSO": enso,
    "MGH17": mgh17,
    "MGH09": mgh09,
    "Thurber": cubic_over_cubic,
    "BoxBOD": misra1a,
    "Rat43": rat43,
    "Eckerle4": eckerle4,
    "Bennett5": bennett5,
}


@dataclass(frozen=True)
class Problem:
    """What one file of NIST states: the data, two starting points, and the certified answers."""

    y: Array
    x: Array
    starts: Array
    parameters: Array
    standard_errors: Array
    rss: float


def read_problem(name: str) -> Problem:
    """Read `data/nist-strd/<name>.dat`: rows `b1 = start1 start2 certified deviation`, then y and x from line 61."""
    text = (DATA / f"{name}.dat").read_text()
    table = np.array([row.split() for row in re.findall(r"^ *b\d+ =(.*)", text, re.MULTILINE)], dtype=float)
    start1, start2, parameters, standard_errors = table.T
    rss = float(re.findall(r"Residual Sum of Squares: *(\S+)", text)[0])
    y, x = np.array([line.split() for line in text.splitlines()[60:]], dtype=float).T
    return Problem(y, x, np.array([start1, start2]), parameters, standard_errors, rss)


@dataclass(frozen=True)
class Fit:
    """A least-squares solution, and how many iterations it took."""

    parameters: Array
    standard_errors: Array
    rss: float
    iterations: int


def objectives(model: Callable, problem: Problem) -> tuple[Callable, Callable]:
    """The residuals of `model` and their sum of squares, as functions of the parameters."""

    def residual(b):
        return model(b, problem.x) - problem.y

    def rss(b):
        return np.sum(residual(b) ** 2)

    return residual, rss


def solver(model: Callable, problem: Problem, compiled: Callable) -> Callable[[Array], Fit]:
    """A function from a starting point to the least-squares fit of `model` to the data of `problem`."""
    residual, rss = objectives(model, problem)
    jacobian = compiled(ft.jacobian(residual))
    gradient, hessian = compiled(ft.grad(rss)), compiled(ft.hessian(rss))

    def fit(start: Array) -> Fit:
        b, fitting = levenberg_marquardt(residual, jacobian, start)
        b, polishing = newton(gradient, hessian, b)
        return Fit(b, standard_errors(residual(b), jacobian(b)), rss(b), fitting + polishing)

    return fit


@np.errstate(all="ignore")  # a trial that leaves the model's domain has no finite RSS, and is refused
def levenberg_marquardt(residual: Callable, jacobian: Callable, b: Array) -> tuple[Array, int]:
    """Descend from `b` to where Newton's method converges; returns that point and the number of steps tried.

    Parameters are scaled by the largest column norms of the Jacobian so far (Moré, 1978), and the damping
    follows Nielsen (1999). It starts high, as the first steps from a far start must not jump to a region where
    the model is flat. The stopping rule is the relative offset of Bates and Watts (1981): how much of the
    residuals lies in the tangent plane of the model, whatever the units of data and parameters.
    """
    r, scale, damping, steps = residual(b), 0.0, 30.0, 0
    while True:
        J = jacobian(b)
        scale = np.maximum(scale, np.linalg.norm(J, axis=0))
        Q, R = np.linalg.qr(J / scale)
        target = -Q.T @ r
        if np.linalg.norm(target) <= 1e-6 * np.linalg.norm(r) or steps >= MOST_STEPS:
            return b, steps
        growth = 2.0
        while True:
            damped = np.vstack([R, np.sqrt(damping) * np.eye(b.size)])
            step = np.linalg.lstsq(damped, np.append(target, np.zeros(b.size)))[0]
            trial = residual(b + step / scale)
            steps += 1
            predicted = target @ target - np.sum((target - R @ step) ** 2)
            gain = (r @ r - trial @ trial) / predicted
            if gain > 0:
                break
            if damping > 1e16:  # no step is short enough: rounding has the last word
                return b, steps
            damping, growth = damping * growth, growth * 2
        b, r = b + step / scale, trial
        damping *= max(1 / 3, 1 - (2 * gain - 1) ** 3)


@np.errstate(all="ignore")  # away from a minimum the Hessian has no scale: the steps are NaN, and end it
def newton(gradient: Callable, hessian: Callable, b: Array) -> tuple[Array, int]:
    """Polish the minimum `b` until rounding keeps the steps from shrinking; also returns their number."""
    size, steps = np.inf, 0
    while True:
        H = hessian(b)
        scale = 1 / np.sqrt(np.diag(H))
        step = -scale * np.linalg.solve(H * np.outer(scale, scale), scale * gradient(b))
        last, size, steps = size, np.max(np.abs(step / b)), steps + 1
        if not size < last / 2:
            return b, steps
        b = b + step


def standard_errors(r: Array, J: Array) -> Array:
    """Square roots of the diagonal of s^2 (J'J)^-1, by the QR of J: J'J itself would lose half of the digits."""
    scale = np.linalg.norm(J, axis=0)
    R = np.linalg.qr(J / scale, mode="r")
    degrees_of_freedom = J.shape[0] - J.shape[1]
    return np.sqrt(r @ r / degrees_of_freedom) * np.linalg.norm(np.linalg.inv(R), axis=1) / scale


def digits(found: Array, certified: Array) -> float:
    """Decimal digits to which all of `found` agree with `certified` (the log relative error)."""
    error = np.max(np.abs((found - certified) / certified))
    return -np.log10(np.maximum(error, 10.0**-CERTIFIED_DIGITS))


def timed(action: Callable[[], Fit]) -> tuple[Fit, float]:
    began = time.perf_counter()
    return action(), time.perf_counter() - began


def report(name: str, start: int, compiled: Callable) -> bool:
    """Solve one problem, print its row, and say whether its parameters agree to the required digits."""
    problem = read_problem(name)
    b = problem.starts[start - 1]
    fit = solver(MODELS[name], problem, compiled)
    solution, first_time = timed(lambda: fit(b))
    _, next_time = timed(lambda: fit(b))
    parameter_digits = digits(solution.parameters, problem.parameters)
    print(
        f"{name:9}{b.size:11}{parameter_digits:13.1f}{digits(solution.standard_errors, problem.standard_errors):12.1f}"
        f"{digits(solution.rss, problem.rss):6.1f}{1e3 * first_time:11.1f} ms{solution.iterations:12}"
        f"{1e3 * next_time / solution.iterations:13.3f} ms",
        flush=True,
    )
    return bool(parameter_digits >= REQUIRED_DIGITS)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--start", type=int, choices=(1, 2), default=2, help="which starting point of NIST")
    options.add_argument("--jit", action="store_true", help="compile the derivatives with XLA")
    chosen = options.parse_args()

    problem = read_problem("Misra1a")
    _, rss = objectives(misra1a, problem)
    print("The gradient of Misra1a's residual sum of squares, as ftrans sees it:\n")
    print(ft.trace(ft.grad(rss))(problem.starts[1]))

    print(f"\nAll problems from NIST's start {chosen.start}; NIST certifies {CERTIFIED_DIGITS} digits.\n")
    print("                      ------- digits that agree -------     time to                   time per")
    print("problem   parameters   parameters  std errors   RSS  first result  iterations    iteration")
    compiled = ft.jit if chosen.jit else lambda function: function
    agreed = sum([report(name, chosen.start, compiled) for name in MODELS])
    print(f"\n{agreed} of {len(MODELS)} problems agree to {REQUIRED_DIGITS} or more digits of every parameter.")
    return 0 if agreed == len(MODELS) else 1


if __name__ == "__main__":
    sys.exit(main())
