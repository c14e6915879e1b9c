"""`numpy.linalg`: powers of a matrix, and products of several."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ..delivery import deliver
from ..dispatch import implements
from ..promotion import asarray, reshaped
from .operands import check_square

__all__ = ["matrix_power", "multi_dot"]


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: Any) -> Any:
    """Square matrices raised to an integer power."""
    a = asarray(a)
    check_square("matrix_power", a)
    n = operator.index(n)
    if n < 0:
        a, n = np.linalg.inv(a), -n
    if n == 0:
        return np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape) + np.zeros_like(a)
    result = None
    while True:
        n, bit = divmod(n, 2)
        if bit:
            result = a if result is None else result @ a
        if not n:
            return result
        a = a @ a


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """The product of two or more matrices, in the order that takes the least work."""
    xs = [asarray(x) for x in arrays]
    if len(xs) < 2:
        raise ValueError(f"Expecting at least two arrays.{at_line(user_line())}")
    first, last = xs[0].ndim == 1, xs[-1].ndim == 1
    xs[0] = reshaped(xs[0], (1, xs[0].size)) if first else xs[0]
    xs[-1] = reshaped(xs[-1], (xs[-1].size, 1)) if last else xs[-1]
    sizes = [x.shape[0] for x in xs] + [xs[-1].shape[1]]
    cost: dict[tuple[int, int], tuple[int, int]] = {(i, i): (0, i) for i in range(len(xs))}
    for width in range(1, len(xs)):
        for i in range(len(xs) - width):
            j = i + width
            cost[i, j] = min(
                (cost[i, k][0] + cost[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )

    def product(i: int, j: int) -> Any:
        if i == j:
            return xs[i]
        k = cost[i, j][1]
        return np.dot(product(i, k), product(k + 1, j))

    result = product(0, len(xs) - 1)
    shape = result.shape[first : 2 - last]
    return deliver(reshaped(result, shape), out, "multi_dot")
