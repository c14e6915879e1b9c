"""Plots of matrices of derivatives: sparsity, and the spectrum of a Hessian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...api.jacobians import hessian
from ...api.sparsity import as_sparsity
from ...base.figures import axes_or_new, plain_frame
from ...base.source import at_line, user_line
from .points import scalar_function

# Larger Hessians are not made.
_MOST = 5000
_POSITIVE, _NEGATIVE = "#1f6fb2", "#c0392b"


def sparsity(pattern: Any, ax: Any = None, **options: Any) -> Any:
    """Draw a pattern of derivatives: a dark square where an entry may differ from zero.

    Args:
        pattern: a `Sparsity`, a sparse matrix of SciPy, or an array with two axes.
        ax: axes of matplotlib to draw in; those of a new figure by default.
        options: passed on to `imshow` of matplotlib, such as `cmap`.

    Returns:
        The axes.

    Raises:
        TypeError: it is not a pattern.
        ImportError: matplotlib is not installed.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.debug.plots.sparsity(ft.jacobian_sparsity(lambda x: x[1:] * x[:-1])(np.ones(9))).get_xlabel()
        '8 x 9, 16 entries'
    """
    return as_sparsity(pattern, "plots.sparsity").plot(None if ax is None else axes_or_new(ax), **options)


def hessian_spectrum(f: Callable[..., Any], x: Any, ax: Any = None) -> Any:
    """Draw the eigenvalues of the Hessian of a function, the largest first; negative ones in red.

    Eigenvalues far apart show directions in which the function is steep and flat: the quotient of the largest and the
    smallest is the condition number, on which the speed of gradient descent depends.  Negative ones say that `x` is not
    a minimum.

    Args:
        f: a function of one argument, whose result is a real number.
        x: where: an array, or a container of arrays, of at most 5,000 elements in all.
        ax: axes of matplotlib to draw in; those of a new figure by default.

    Returns:
        The axes.

    Raises:
        TypeError: the result of `f` is not a real number, or `x` holds something other than floating-point arrays.
        ValueError: `x` has too many elements, or the Hessian is not finite.
        ImportError: matplotlib is not installed.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> axes = ft.debug.plots.hessian_spectrum(lambda x: np.sum(np.arange(1.0, 4.0) * x**2), np.zeros(3))
        >>> [float(y) for y in axes.lines[0].get_ydata()]
        [6.0, 4.0, 2.0]
    """
    of_vector, point = scalar_function(f, x, "plots.hessian_spectrum")
    if not 0 < point.vector.size <= _MOST:
        raise ValueError(
            f"plots.hessian_spectrum takes from 1 to {_MOST:,} elements, not {point.vector.size:,}; look at the "
            f"parameters of one layer, or at the largest eigenvalues by scipy.sparse.linalg.eigsh and ft.hvp"
            + at_line(user_line())
        )
    matrix = np.asarray(hessian(of_vector)(point.vector), np.float64)
    if not np.isfinite(matrix).all():
        raise ValueError(f"the Hessian is not finite, so it has no spectrum to draw{at_line(user_line())}")
    values = np.linalg.eigvalsh((matrix + matrix.T) / 2)[::-1]
    ax = axes_or_new(ax)
    from matplotlib.ticker import MaxNLocator

    places = np.arange(1, values.size + 1)
    for chosen, color, label in ((values >= 0, _POSITIVE, "positive"), (values < 0, _NEGATIVE, "negative")):
        if chosen.any():
            ax.plot(places[chosen], values[chosen], "o", color=color, markersize=4, label=label)
    sizes = np.abs(values[values != 0])
    if values[-1] > 0:
        ax.set_yscale("log")
    elif sizes.size:
        # Logarithmic on both sides of zero, but for what is zero up to rounding.
        ax.set_yscale("symlog", linthresh=max(sizes.min(), 1e-9 * sizes.max()))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.set_xlabel("eigenvalue, the largest first")
    ax.set_title(f"Hessian, {values.size} x {values.size}: {_summary(values)}", loc="left", fontsize=11)
    if (values < 0).any():
        ax.legend(frameon=False, fontsize=9)
    plain_frame(ax)
    return ax


def _summary(values: Any) -> str:
    negative = int((values < 0).sum())
    if negative:
        return f"{negative} negative"
    return f"condition number {values[0] / values[-1]:.3g}" if values[-1] > 0 else "singular"
