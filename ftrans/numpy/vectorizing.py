"""Functions that apply a Python function element by element, line by line or axis by axis.

The function runs once for each element, as it does in NumPy, so it may branch on values.  `ftrans.vmap` runs a
function once for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..base.cell import Eager
from ..base.source import at_line, user_line
from ..core.trace import current_builder
from ..core.types import Shape
from .creation import as_array, traced_in_trace
from .dispatch import implements
from .manipulation import normal_axis
from .promotion import asarray, has_tracer

__all__ = ["apply_along_axis", "apply_over_axes", "ix_", "vectorize"]


class vectorize(np.vectorize):
    """`numpy.vectorize`, whose function may be called with traced values and return them.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ramp = ft.numpy.vectorize(lambda x: x * x if x > 0 else 0.0, otypes=[float])
        >>> ft.grad(lambda x: np.sum(ramp(x)))(np.array([-1.0, 3.0]))
        array([0., 6.])
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # In a trace, the function may use traced values that are not among its arguments.
        if current_builder() is None and not any(isinstance(x, Eager) for x in (*args, *kwargs.values())):
            return super().__call__(*args, **kwargs)
        excluded = self.excluded or set()
        places = [i for i in range(len(args)) if i not in excluded]
        names = [k for k in kwargs if k not in excluded]

        def call(*xs: Any) -> Any:
            given = dict(zip([*places, *names], xs, strict=True))
            positional = [given.get(i, x) for i, x in enumerate(args)]
            return self.pyfunc(*positional, **{k: given.get(k, x) for k, x in kwargs.items()})

        operands = [as_array(x) for x in (*(args[i] for i in places), *(kwargs[k] for k in names))]
        return _looped(call, operands, self.signature, self.otypes)


def _core_axes(signature: str | None, operands: Sequence[Any]) -> list[int]:
    """How many of the last axes of each operand the function takes as a whole."""
    if signature is None:
        return [0] * len(operands)
    names = [g.split(",") if g else [] for g in re.findall(r"\((.*?)\)", signature.replace(" ", "").split("->")[0])]
    if len(names) != len(operands):
        raise TypeError(
            f"wrong number of positional arguments: expected {len(names)}, got {len(operands)}{at_line(user_line())}"
        )
    sizes: dict[str, int] = {}
    for group, x in zip(names, operands, strict=True):
        if x.ndim < len(group):
            raise ValueError(
                f"{x.ndim}-dimensional argument does not have enough dimensions for all core dimensions {group}"
                + at_line(user_line())
            )
        for name, n in zip(group, x.shape[x.ndim - len(group) :], strict=True):
            if sizes.setdefault(name, n) != n:
                raise ValueError(
                    f"inconsistent size for core dimension {name!r}: {n} vs {sizes[name]}{at_line(user_line())}"
                )
    return [len(group) for group in names]


def _looped(call: Callable[..., Any], operands: list[Any], signature: str | None, otypes: Any) -> Any:
    """The results of `call` on every element (or part, as a signature says) of operands that are broadcast."""
    cores = _core_axes(signature, operands)
    lead = np.broadcast_shapes(*(x.shape[: x.ndim - c] for x, c in zip(operands, cores, strict=True)))
    full = [np.broadcast_to(x, (*lead, *x.shape[x.ndim - c :])) for x, c in zip(operands, cores, strict=True)]
    rows = [call(*(x[place] for x in full)) for place in np.ndindex(lead)]
    if not rows:
        raise ValueError(
            "cannot call `vectorize` on size 0 inputs of traced values: nothing tells what the results are"
            + at_line(user_line())
        )
    if not isinstance(rows[0], tuple):
        return _joined(rows, lead, otypes[0] if otypes else None)
    return tuple(
        _joined(column, lead, otypes[i] if otypes else None) for i, column in enumerate(zip(*rows, strict=True))
    )


def _joined(results: Sequence[Any], lead: Shape, otype: str | None) -> Any:
    """Results as one array.  NumPy gives it the dtype of the first of them, if no other is asked for."""
    items = [as_array(y) for y in results]
    dtype = items[0].dtype if otype is None else np.dtype(otype)
    for y in items:
        if otype is None and not np.can_cast(y.dtype, dtype):
            raise TypeError(
                f"np.vectorize makes an array of {dtype}, the dtype of the first result, and a later one is {y.dtype}; "
                f"give otypes=[{y.dtype.name!r}], or return 0.0 instead of 0{at_line(user_line())}"
            )
    stacked = np.stack([y if y.dtype == dtype else y.astype(dtype) for y in items])
    return np.reshape(stacked, (*lead, *stacked.shape[1:]))


def apply_to_objects(ufunc: np.ufunc, *inputs: Any) -> Any:
    """A ufunc that `numpy.frompyfunc` made: its function of every element, in an array of objects as NumPy has it."""
    return ufunc(*map(as_objects, inputs))


def as_objects(x: Any) -> Any:
    """A traced array as NumPy's array of its elements; anything else as it is."""
    if not has_tracer(x):
        return x
    x = asarray(x)
    array = np.empty(x.shape, object)
    for place in np.ndindex(x.shape):
        array[place] = x[place]
    return array


def _lines(x: Any, axis: int) -> Iterator[Any]:
    lines = np.moveaxis(x, axis, -1)
    return (lines[place] for place in np.ndindex(lines.shape[:-1]))


@traced_in_trace
@implements(np.apply_along_axis)
def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply a function to the one-dimensional slices along an axis; `ftrans.vmap` does it at once."""
    x = as_array(arr)
    axis = normal_axis(axis, x.ndim)
    lead = x.shape[:axis] + x.shape[axis + 1 :]
    if 0 in lead:
        raise ValueError(f"Cannot apply_along_axis when any iteration dimensions are 0{at_line(user_line())}")
    stacked = np.stack([as_array(func1d(line, *args, **kwargs)) for line in _lines(x, axis)])
    inner = range(stacked.ndim - 1)
    y = np.reshape(stacked, (*lead, *stacked.shape[1:]))
    return np.moveaxis(y, [len(lead) + i for i in inner], [axis + i for i in inner])


@implements(np.apply_over_axes)
def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    """Apply a function of an array and an axis repeatedly over axes; an axis that it drops is restored."""
    x = asarray(a)
    for axis in axes if np.ndim(axes) else (axes,):
        # NumPy lets the function say what it thinks of an axis that is not there.
        axis = axis + x.ndim if axis < 0 else axis
        y = asarray(func(x, axis))
        y = y if y.ndim == x.ndim else np.expand_dims(y, axis)
        if y.ndim != x.ndim:
            raise ValueError(f"function is not returning an array of the correct shape{at_line(user_line())}")
        x = y
    return x


@implements(np.ix_)
def ix_(*args: Any) -> Any:
    """An open mesh, from index sequences along each axis; the value of a mask must be known."""
    indices = []
    for i, item in enumerate(args):
        index = asarray(item) if has_tracer(item) else np.asarray(item)
        if index.ndim != 1:
            raise ValueError(f"Cross index must be 1 dimensional{at_line(user_line())}")
        if index.size == 0:
            index = index.astype(np.intp)
        if index.dtype.kind == "b":
            index = np.flatnonzero(index)
        indices.append(index.reshape((1,) * i + (-1,) + (1,) * (len(args) - i - 1)))
    return tuple(indices)
