"""Two substances that react and spread: a stiff system, solved by SciPy's implicit methods with a sparse Jacobian.

The Brusselator in two dimensions (Hairer and Wanner, "Solving Ordinary Differential Equations II", chapter IV.10) has
two unknowns for each cell of a square whose opposite sides meet; from t = 1.1 on, more of one substance enters in a
small disk. On 20 x 20 cells the Jacobian has 640,000 elements, of which six in each row may differ from zero.
`ftrans.scipy.integrate.solve_ivp` finds which, and computes just them. SciPy alone would take differences in 800
directions for each Jacobian, and factorise dense matrices.

    python examples/brusselator.py
    python examples/brusselator.py --cells 128 --methods BDF
"""

import argparse
import math
import sys
import time

import numpy as np

from ftrans.scipy import integrate

SPREAD = 0.1
BEGIN, END = 1.1, 5.0
PRECISION = {"rtol": 1e-5, "atol": 1e-7}


def laplacian(w):
    """The sum of the differences from the four neighbours, on a square whose sides meet."""
    return np.roll(w, 1, 0) + np.roll(w, -1, 0) + np.roll(w, 1, 1) + np.roll(w, -1, 1) - 4 * w


def middles(cells):
    """Coordinates of the cells' middles."""
    line = (np.arange(cells) + 0.5) / cells
    return np.meshgrid(line, line, indexing="ij")


def reaction(t, state):
    """How both substances change."""
    cells = math.isqrt(state.size // 2)
    u, v = state.reshape(2, cells, cells)
    x, y = middles(cells)
    enters = 5.0 * ((x - 0.3) ** 2 + (y - 0.6) ** 2 <= 0.01) * (t >= BEGIN)
    made = u**2 * v
    du = 1 + made - 4.4 * u + SPREAD * cells**2 * laplacian(u) + enters
    dv = 3.4 * u - made + SPREAD * cells**2 * laplacian(v)
    return np.stack([du, dv]).reshape(-1)


def start(cells):
    x, y = middles(cells)
    return np.stack([22 * y * (1 - y) ** 1.5, 27 * x * (1 - x) ** 1.5]).reshape(-1)


def solve(cells, method):
    """Integrate up to the time at which more enters, and from there: a solver should not step over a jump."""
    first = integrate.solve_ivp(reaction, (0, np.nextafter(BEGIN, 0)), start(cells), method, **PRECISION)
    second = integrate.solve_ivp(reaction, (BEGIN, END), first.y[:, -1], method, **PRECISION)
    return first, second


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--cells", type=int, default=20, help="along each side")
    options.add_argument("--methods", nargs="+", default=["BDF", "Radau"], choices=["BDF", "Radau"])
    chosen = options.parse_args()

    ends = []
    for method in chosen.methods:
        began = time.perf_counter()
        parts = solve(chosen.cells, method)
        seconds = time.perf_counter() - began
        steps = sum(part.t.size - 1 for part in parts)
        evaluations, factors = sum(part.nfev for part in parts), sum(part.nlu for part in parts)
        print(f"{method:6} {steps} steps, {evaluations} slopes, {factors} factorisations, {seconds:.2f} s")
        print(f"       {parts[1].ftrans['jac']}")
        ends.append(parts[1].y[:, -1])
    u, v = ends[0].reshape(2, chosen.cells, chosen.cells)
    print(f"\nAt t = {END:g} there are {u.mean():.6f} and {v.mean():.6f} of the substances, on average.")
    if len(ends) == 1:
        return 0
    apart = np.max(np.abs(ends[0] - ends[1]))
    print(f"The methods agree within {apart:.1e} everywhere.")
    return 0 if apart < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
