"""`scipy.signal.windows`: windows that are differentiable by their parameters; the others are SciPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.signal
from scipy.signal import windows

from ...numpy.promotion import asarray, has_tracer
from ..entries import bad_argument, entering

__all__ = [
    "exponential", "gaussian", "general_cosine", "general_gaussian", "general_hamming", "kaiser",
]  # fmt: skip

_implemented = entering(windows)


def _window(M: int, sym: bool, formula: Callable[[Any, int], Any]) -> Any:
    """The window that a formula gives for the places and their number; one that is periodic lacks the last."""
    if int(M) != M or M < 0:
        raise bad_argument(f"the length of a window must be a nonnegative integer, not {M!r}")
    count = int(M)
    if count <= 1:
        return np.ones(count)
    size = count if sym else count + 1
    return formula(np.arange(size), size)[:count]


@_implemented
def gaussian(M: int, std: Any, sym: bool = True) -> Any:
    """A Gaussian window."""
    return _window(M, sym, lambda n, size: np.exp(-((n - (size - 1) / 2) ** 2) / (2 * std * std)))


@_implemented
def general_gaussian(M: int, p: Any, sig: Any, sym: bool = True) -> Any:
    """A window with the form of a power of a Gaussian."""
    return _window(M, sym, lambda n, size: np.exp(-0.5 * np.abs((n - (size - 1) / 2) / sig) ** (2 * p)))


@_implemented
def exponential(M: int, center: Any = None, tau: Any = 1.0, sym: bool = True) -> Any:
    """A window that decays exponentially on both sides of its center."""
    if sym and center is not None:
        raise bad_argument("exponential: where sym is True, center must be None")
    return _window(M, sym, lambda n, size: np.exp(-np.abs(n - ((size - 1) / 2 if center is None else center)) / tau))


@_implemented
def kaiser(M: int, beta: Any, sym: bool = True) -> Any:
    """A Kaiser window."""

    def formula(n: Any, size: int) -> Any:
        half = (size - 1) / 2
        return np.i0(beta * np.sqrt(1 - ((n - half) / half) ** 2)) / np.i0(asarray(beta))

    return _window(M, sym, formula)


@_implemented
def general_cosine(M: int, a: Any, sym: bool = True) -> Any:
    """A sum of cosines with the weights `a`."""
    a = asarray(a)

    def formula(n: Any, size: int) -> Any:
        angles = np.linspace(-np.pi, np.pi, size)
        return np.sum(a[:, None] * np.cos(np.arange(a.shape[0])[:, None] * angles), 0)

    return _window(M, sym, formula)


@_implemented
def general_hamming(M: int, alpha: Any, sym: bool = True) -> Any:
    """A cosine on a pedestal of height `alpha`."""
    return general_cosine(M, np.stack([asarray(alpha), 1.0 - asarray(alpha)]), sym)


_OF_PARAMETERS = {
    "exponential": exponential, "poisson": exponential, "gaussian": gaussian, "gauss": gaussian, "gss": gaussian,
    "general_cosine": general_cosine, "general_gaussian": general_gaussian, "ggs": general_gaussian,
    "general_hamming": general_hamming, "kaiser": kaiser, "ksr": kaiser,
}  # fmt: skip


def window_of(window: Any, count: int, is_periodic: bool) -> Any:
    """A window by its name, or by its name and parameters, some of which may be traced."""
    if not has_tracer(window):
        return scipy.signal.get_window(window, count, is_periodic)
    name, *parameters = window if isinstance(window, tuple) else ("kaiser", window)
    if name not in _OF_PARAMETERS:
        raise bad_argument(f"the window {name!r} is not differentiable; those that are: {', '.join(_OF_PARAMETERS)}")
    return _OF_PARAMETERS[name](count, *parameters, sym=not is_periodic)


def __getattr__(name: str) -> Any:
    return getattr(windows, name)


def __dir__() -> list[str]:
    return sorted(__all__)
