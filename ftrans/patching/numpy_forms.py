"""What NumPy's protocols do not reach, on traced values: makers of arrays, classes of numbers, iterators, methods.

The functions of `ftrans.numpy` have the same names and make traced arrays while a trace runs; those that are not there
follow here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import numpy as face
from ..base.source import at_line, user_line
from ..core.trace import Tracer, current_builder
from ..numpy.promotion import asarray, cast, has_tracer
from ..numpy.vectorizing import as_objects
from ..run.places import TRACE, place_of_arguments

Function = Callable[..., Any]


def number_class(cls: type) -> Function:
    """A class of NumPy's numbers, called with a traced value: the value in its dtype."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and has_tracer(args[0]):
            x = asarray(args[0])
            found = cast(x, np.dtype(cls))
            return Tracer(found.builder, found.builder.atom(found)) if not x.shape else found
        return cls(*args, **kwargs)

    return call


def method_of_array(array: Any, name: str) -> Function:
    """A method of a plain array, whose arguments may be traced, or its elements if it is an array of objects."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if place_of_arguments((array, *args), kwargs) is TRACE:
            return getattr(asarray(array), name)(*args, **kwargs)
        return getattr(array, name)(*args, **kwargs)

    return call


# What changes a plain array cannot make it traced.
IN_PLACE = frozenset({"fill", "put", "sort", "partition", "resize", "setfield", "setflags", "byteswap"})


def element(table: Any, index: Any) -> Any:
    """`table[index]`, where a plain array may meet a traced index."""
    if type(table) is np.ndarray and current_builder() is not None and has_tracer(index):
        return asarray(table)[index]
    return table[index]


def fromiter(iter: Any, dtype: Any, count: int = -1, *, like: Any = None) -> Any:
    """`numpy.fromiter`."""
    items = list(iter) if count < 0 else [x for x, _ in zip(iter, range(count), strict=False)]
    return face.array(items, dtype) if has_tracer(items) else np.fromiter(items, dtype, count)


def frompyfunc(func: Function, /, nin: int, nout: int, **kwargs: Any) -> Function:
    """`numpy.frompyfunc`, whose results on traced values are traced arrays, and not arrays of objects."""
    made = np.frompyfunc(func, nin, nout, **kwargs)

    @functools.wraps(func)
    def call(*args: Any, **options: Any) -> Any:
        found = made(*map(as_objects, args), **options)
        return tuple(map(_traced, found)) if isinstance(found, tuple) else _traced(found)

    return call


def _traced(x: Any) -> Any:
    return asarray(x) if has_tracer(x) else x


class ndenumerate:
    """`numpy.ndenumerate` of a traced array: pairs of an index and the element there."""

    def __init__(self, arr: Any) -> None:
        self._array = asarray(arr)
        self._places = np.ndindex(self._array.shape)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        place = next(self._places)
        return place, self._array[place]


class nditer:
    """`numpy.nditer` over traced arrays, element by element: broadcast operands, their indices, and writing to them.

    Attributes:
        multi_index: the present place.
        iterindex: how many elements came before.
        shape: that of the operands together.
        operands: the arrays.
    """

    _FLAGS = frozenset({"multi_index", "c_index", "refs_ok", "zerosize_ok", "common_dtype", "buffered"})

    def __init__(self, op: Any, flags: Any = None, op_flags: Any = None, *args: Any, order: Any = "K", **kwargs: Any):
        unknown = sorted({*(flags or ())} - self._FLAGS) + sorted(kwargs) + [str(x) for x in args]
        if unknown:
            raise TypeError(
                f"numpy.nditer of traced values knows nothing of {', '.join(unknown)}; write a loop over "
                f"numpy.ndindex(x.shape), or whole-array operations{at_line(user_line())}"
            )
        self._is_one = not isinstance(op, list | tuple)
        self.operands = tuple(map(asarray, [op] if self._is_one else op))
        self.shape = np.broadcast_shapes(*[x.shape for x in self.operands])
        self.itersize = int(np.prod(self.shape))
        self.iterindex = 0
        self._broadcast: list[Any] = [
            x if x.shape == self.shape else np.broadcast_to(x, self.shape) for x in self.operands
        ]

    def __iter__(self) -> Iterator[Any]:
        while not self.finished:
            yield self.value
            self.iterindex += 1

    @property
    def finished(self) -> bool:
        """Whether all elements have been visited."""
        return self.iterindex >= self.itersize

    @property
    def multi_index(self) -> Any:
        """The present place."""
        return tuple(int(i) for i in np.unravel_index(self.iterindex, self.shape)) if self.shape else ()

    @property
    def index(self) -> int:
        """The present place in row-major order."""
        return self.iterindex

    @property
    def value(self) -> Any:
        """The present element, or elements, as arrays without axes that may be assigned to."""
        found = tuple([x[(*self.multi_index, ...)] for x in self._broadcast])
        return found[0] if self._is_one else found

    def __getitem__(self, which: int) -> Any:
        return self._broadcast[which][(*self.multi_index, ...)]

    def __setitem__(self, which: int, value: Any) -> None:
        self._broadcast[which][(*self.multi_index, ...)] = value

    def iternext(self) -> bool:
        """Go to the next element; return whether there is one."""
        self.iterindex += 1
        return not self.finished

    def __enter__(self) -> nditer:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _if_traced(function: Function, traced: Function) -> Function:
    """`traced` where a traced value is among the arguments, or in a list among them."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return (traced if place_of_arguments(args, kwargs) is TRACE else function)(*args, **kwargs)

    return call


def _broadcast(*args: Any) -> Any:
    """`numpy.broadcast`, which goes through the elements of its operands."""
    return np.broadcast(*map(as_objects, args))


def _functions() -> dict[Any, Any]:
    found = {}
    for name in dir(face):
        original, ours = getattr(np, name, None), getattr(face, name)
        if callable(ours) and ours is not original and original is not None:
            found[original] = ours
    classes = {cls for cls in np.sctypeDict.values() if issubclass(cls, np.number | np.bool_)}
    found |= {cls: number_class(cls) for cls in classes}
    return found | {
        np.fromiter: fromiter,
        np.frompyfunc: frompyfunc,
        np.ndenumerate: _if_traced(np.ndenumerate, ndenumerate),
        np.nditer: _if_traced(np.nditer, nditer),
        np.broadcast: _if_traced(np.broadcast, _broadcast),
        np.vectorize.__call__: face.vectorize.__call__,
    }


FUNCTIONS: dict[Any, Any] = _functions()
