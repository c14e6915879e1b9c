"""`scipy.signal`: filters with feedback, forwards or in both directions, and the states that they start from."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...numpy.promotion import asarray, value_in_hand
from ...ops.linear_filter import linear_filter
from ..entries import bad_argument
from .convolution import along_last
from .operands import axis_of, extended, implemented, inexact, padded, vector

__all__ = [
    "deconvolve", "filtfilt", "lfilter", "lfilter_zi", "lfiltic", "sosfilt", "sosfilt_zi", "sosfiltfilt",
]  # fmt: skip


def _of_one_length(b: Any, a: Any) -> tuple[Any, Any]:
    """Coefficients divided by the first of `a`, and continued by zeros to the same length."""
    count = max(b.size, a.size)
    b, a = b / a[0], a / a[0]
    return padded(b, 0, count - b.size), padded(a, 0, count - a.size)


def _filtered(b: Any, a: Any, x: Any, z: Any) -> tuple[Any, Any]:
    """Signals filtered along the last axis, and the state after them; the coefficients are of one length."""
    if b.size == 1:
        return b * x, z
    y, after = linear_filter(b, a[1:], x, z)
    return y, after


@implemented
def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Filter signals along an axis by the coefficients `b` and `a`; with `zi`, also return the state after them.

    Arguments are SciPy's; derivatives are by all of `b`, `a`, `x` and `zi`.

    Returns:
        The filtered signals, of the shape of `x`; with `zi`, the state after them, too.

    Raises:
        ValueError: as SciPy.

    Example:
        >>> import ftrans as ft, numpy as np
        >>> from ftrans.scipy import signal
        >>> print(ft.grad(lambda a: np.sum(signal.lfilter([1.0], [1.0, -a], np.ones(3))))(0.5))
        3.0
    """
    b, a = vector(b, "b", "lfilter"), vector(a, "a", "lfilter")
    b, a, x, *rest = inexact(b, a, x, *([] if zi is None else [zi]))
    axis = axis_of(x, axis)
    x = np.moveaxis(x, axis, -1)
    k = max(b.size, a.size) - 1
    state = _state(rest[0], x, axis, k) if rest else np.zeros((*x.shape[:-1], k), x.dtype)
    if a.size == 1:
        whole = along_last(b / a[0], x)
        whole = whole + padded(state, 0, x.shape[-1]) if rest and k else whole
        y, after = whole[..., : x.shape[-1]], whole[..., x.shape[-1] :]
    else:
        y, after = _filtered(*_of_one_length(b, a), x, asarray(state))
    y = np.moveaxis(y, -1, axis)
    return (y, np.moveaxis(after, -1, axis)) if rest else y


def _state(zi: Any, x: Any, axis: int, k: int) -> Any:
    """The state that a filter starts from, for each lane of signals."""
    if zi.ndim != x.ndim:
        raise bad_argument(f"lfilter: the state {zi.type} needs as many axes as the signal, which has {x.ndim}")
    zi = np.moveaxis(zi, axis, -1)
    if zi.shape[-1] != k or any(n not in (1, m) for n, m in zip(zi.shape[:-1], x.shape[:-1], strict=True)):
        raise bad_argument(
            f"lfilter: the state needs {k} elements along axis {axis}, and the signal's lanes: {zi.type}"
        )
    return np.broadcast_to(zi, (*x.shape[:-1], k))


@implemented
def lfilter_zi(b: Any, a: Any) -> Any:
    """The state of a filter that a constant signal of ones has brought to rest."""
    b, a = inexact(vector(b, "b", "lfilter_zi"), vector(a, "a", "lfilter_zi"))
    b, a = _of_one_length(b, a)
    n = b.size - 1
    if not n:
        return np.zeros(0, b.dtype)
    # z[i] = z[i + 1] + b[i + 1] - a[i + 1] (b[0] + z[0]) for all i.
    first = np.eye(1, n, dtype=a.dtype)
    matrix = np.eye(n, dtype=a.dtype) - np.eye(n, k=1, dtype=a.dtype) + a[1:, None] * first
    return np.linalg.solve(matrix, b[1:] - a[1:] * b[0])


@implemented
def lfiltic(b: Any, a: Any, y: Any, x: Any = None) -> Any:
    """The state of a filter after the results `y` and the signal `x`, the latest first."""
    b, a, y, x = inexact(vector(b, "b", "lfiltic"), vector(a, "a", "lfiltic"), y, np.zeros(1) if x is None else x)
    m, n = b.size - 1, a.size - 1
    x, y = padded(x, 0, max(m - x.size, 0)), padded(y, 0, max(n - y.size, 0))

    def left(c: Any, past: Any, count: int) -> Any:
        sums = [np.sum(c[i + 1 :] * past[: count - i]) for i in range(count)]
        return padded(np.stack(sums), 0, max(m, n) - count) if sums else np.zeros(max(m, n), c.dtype)

    return (left(b, x, m) - left(a, y, n)) / a[0]


@implemented
def deconvolve(signal: Any, divisor: Any) -> tuple[Any, Any]:
    """Quotient and remainder of the division of one signal by another, as of polynomials."""
    whole, part = inexact(vector(signal, "signal", "deconvolve"), vector(divisor, "divisor", "deconvolve"))
    count = whole.size - part.size + 1
    if count < 1:
        return np.zeros(0), whole
    quotient = lfilter(whole, part, np.eye(1, count, dtype=whole.dtype)[0])
    return quotient, whole - along_last(part, asarray(quotient))


# Second-order sections


def _sections(sos: Any, name: str) -> Any:
    known, found = value_in_hand(sos), np.atleast_2d(asarray(sos))
    if found.ndim != 2 or found.shape[1] != 6:
        raise bad_argument(f"{name}: sos must have the shape (n_sections, 6), not that of {found.type}")
    if known is not None and not np.all(known[..., 3] == 1):
        raise bad_argument(f"{name}: sos[:, 3] should be all ones")
    return found


@implemented
def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Filter signals along an axis by second-order sections; with `zi`, also return the state after them."""
    sos, x, *rest = inexact(_sections(sos, "sosfilt"), x, *([] if zi is None else [zi]))
    axis, count = axis_of(x, axis), sos.shape[0]
    x = np.moveaxis(x, axis, -1)
    states = asarray(np.zeros((count, *x.shape[:-1], 2), x.dtype))
    if rest:
        states = np.moveaxis(rest[0], axis + 1, -1)
        if states.shape != (count, *x.shape[:-1], 2):
            raise bad_argument(f"sosfilt: the state {rest[0].type} needs the axes of {count} sections, lanes, and 2")
    after = []
    for i in range(count):
        x, left = _filtered(sos[i, :3], sos[i, 3:], x, states[i])
        after.append(left)
    y = np.moveaxis(x, -1, axis)
    return (y, np.moveaxis(np.stack(after), -1, axis + 1)) if rest else y


@implemented
def sosfilt_zi(sos: Any) -> Any:
    """The states of second-order sections that a constant signal of ones has brought to rest."""
    (sos,) = inexact(_sections(sos, "sosfilt_zi"))
    scale, states = 1.0, []
    for i in range(sos.shape[0]):
        b, a = sos[i, :3], sos[i, 3:]
        states.append(scale * lfilter_zi(b, a))
        scale = scale * (np.sum(b) / np.sum(a))
    return np.stack(states)


# In both directions


def _edge(x: Any, padtype: Any, padlen: Any, taps: int) -> int:
    if padtype not in ("even", "odd", "constant", None):
        raise bad_argument(f"padtype must be 'even', 'odd', 'constant' or None, not {padtype!r}")
    edge = 0 if padtype is None else 3 * taps if padlen is None else padlen
    if x.shape[-1] <= edge:
        raise bad_argument(f"the signal must be longer than padlen, which is {edge}, and has {x.shape[-1]} elements")
    return int(edge)


@implemented
def filtfilt(
    b: Any,
    a: Any,
    x: Any,
    axis: int = -1,
    padtype: Any = "odd",
    padlen: Any = None,
    method: str = "pad",
    irlen: Any = None,
) -> Any:
    """Filter signals forwards and then backwards along an axis."""
    if method != "pad":
        raise bad_argument(f"filtfilt of traced values takes method='pad' only, not {method!r}")
    state = lfilter_zi(b, a)
    b, a, x = inexact(vector(b, "b", "filtfilt"), vector(a, "a", "filtfilt"), x)
    axis = axis_of(x, axis)
    x = np.moveaxis(x, axis, -1)
    edge = _edge(x, padtype, padlen, max(a.size, b.size))
    x = extended(x, edge, padtype or "constant")
    for _ in range(2):
        y, _ = lfilter(b, a, x, zi=state * x[..., :1])
        x = y[..., ::-1]
    return np.moveaxis(x[..., edge : x.shape[-1] - edge], -1, axis)


@implemented
def sosfiltfilt(sos: Any, x: Any, axis: int = -1, padtype: Any = "odd", padlen: Any = None) -> Any:
    """Filter signals forwards and then backwards along an axis, by second-order sections."""
    taps = 0 if padtype is None or padlen is not None else _taps(sos)
    states = sosfilt_zi(sos)
    sos, x = inexact(_sections(sos, "sosfiltfilt"), x)
    axis = axis_of(x, axis)
    x = np.moveaxis(x, axis, -1)
    edge = _edge(x, padtype, padlen, taps)
    x = extended(x, edge, padtype or "constant")
    states = np.reshape(states, (sos.shape[0], *(1,) * (x.ndim - 1), 2))
    for _ in range(2):
        shape = (sos.shape[0], *x.shape[:-1], 2)
        y, _ = sosfilt(sos, x, zi=np.broadcast_to(states * x[..., :1], shape))
        x = y[..., ::-1]
    return np.moveaxis(x[..., edge : x.shape[-1] - edge], -1, axis)


def _taps(sos: Any) -> int:
    """The number of coefficients of the whole filter, which depends on those of sections that are zero."""
    values = value_in_hand(sos)
    if values is None:
        raise bad_argument("sosfiltfilt: padlen= must be given where sos has no values yet, as under jit and vmap")
    return int(2 * len(values) + 1 - min(np.sum(values[:, 2] == 0), np.sum(values[:, 5] == 0)))
