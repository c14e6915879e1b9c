"""What `reduce`, `reduceat` and `accumulate` of a ufunc are: a loop that combines one element after the other.

NumPy itself may be wrong: on CPUs with AVX-512, `np.power.reduce([2.0, 3.0, 2.0])` of NumPy 2.4 is 4.0, since its
vectorised loops of `power` and `arctan2` forget what was combined before.  So results are held against the loop.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

NO_VALUE: Any = np._NoValue


class Loop:
    """A ufunc whose methods are loops over the elements of arrays; on traced values they are those of the ufunc.

    NumPy is asked for shapes, dtypes and errors only.

    Args:
        ufunc: the ufunc.
    """

    def __init__(self, ufunc: Any) -> None:
        self.ufunc = ufunc

    def reduce(
        self,
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = NO_VALUE,
        where: Any = True,
    ) -> Any:
        """`ufunc.reduce`."""
        if not issubclass(type(array), np.ndarray | np.generic):
            options = {} if initial is NO_VALUE else {"initial": initial}
            return self.ufunc.reduce(array, axis, dtype, keepdims=keepdims, where=where, **options)
        options = {} if initial is NO_VALUE else {"initial": initial}
        like = np.asarray(self.ufunc.reduce(array, axis, dtype, keepdims=keepdims, where=where, **options))
        x = self._operand(array, like.dtype)
        axes = range(x.ndim) if axis is None else [a % x.ndim for a in np.atleast_1d(np.array(axis, int))]
        front = np.moveaxis(x, list(axes), range(len(axes)))
        chosen = np.moveaxis(np.broadcast_to(where, x.shape), list(axes), range(len(axes)))
        start = self.ufunc.identity if initial is NO_VALUE else initial
        found = np.empty(front.shape[len(axes) :], like.dtype)
        for place in np.ndindex(found.shape):
            own = (slice(None),) * len(axes) + place
            found[place] = self._combined(itertools.compress(front[own].flat, chosen[own].flat), start, like.dtype)
        return found.reshape(like.shape)[()]

    def reduceat(self, array: Any, indices: Any, axis: int = 0) -> Any:
        """`ufunc.reduceat`."""
        if not issubclass(type(array), np.ndarray):
            return self.ufunc.reduceat(array, indices, axis)
        like = self.ufunc.reduceat(array, indices, axis)
        rows = np.moveaxis(self._operand(array, like.dtype), axis, 0)
        ends = [*list(indices)[1:], len(rows)]
        parts = [self.reduce(rows[i : max(j, i + 1)], initial=None) for i, j in zip(indices, ends, strict=True)]
        return np.moveaxis(np.array(parts, like.dtype), 0, axis)

    def accumulate(self, array: Any, axis: int = 0) -> Any:
        """`ufunc.accumulate`."""
        if not issubclass(type(array), np.ndarray):
            return self.ufunc.accumulate(array, axis)
        like = self.ufunc.accumulate(array, axis)
        rows = np.moveaxis(self._operand(array, like.dtype), axis, 0)
        parts = [self.reduce(rows[: i + 1], initial=None) for i in range(len(rows))]
        return np.moveaxis(np.array(parts, like.dtype).reshape(rows.shape), 0, axis)

    def _operand(self, array: Any, dtype: Any) -> Any:
        """The array in the dtype of the results, if not only these are booleans."""
        return np.asarray(array) if dtype == np.bool_ else np.asarray(array).astype(dtype)

    def _combined(self, elements: Iterable[Any], start: Any, dtype: Any) -> Any:
        total = start if start is None else np.array(start).astype(dtype)[()]
        for x in elements:
            total = x if total is None else self.ufunc(total, x)
        return total


def of_method(ufunc: Any, method: str) -> Any:
    """`ufunc.reduce` and its like, as a loop; None for a method that combines nothing."""
    return getattr(Loop(ufunc), method, None)


def wrong_by_numpy(ufunc: Any, array: Any) -> str | None:
    """How NumPy's reductions of an array differ from the loop, on this CPU; None where they do not."""
    for method, args in (("reduce", ()), ("reduceat", ([0],)), ("accumulate", ())):
        found = np.ravel(getattr(ufunc, method)(array, *args))
        expected = np.ravel(of_method(ufunc, method)(array, *args))
        if not np.allclose(found, expected, rtol=1e-6, equal_nan=True):
            return (
                f"NumPy {np.__version__} is wrong on this CPU: {ufunc.__name__}.{method} gives {found}, and element by "
                f"element it is {expected}; ftrans is held against the loop"
            )
    return None
