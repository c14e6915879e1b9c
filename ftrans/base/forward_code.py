"""Arrays inside forward code: what NumPy's arrays are while the forward code of a module computes with them.

A `ForwardArray` is a view of an array that also answers to the methods that torch's tensors have, which
`autograd/torch_methods` defines.  What NumPy's functions and operators make of one is one again, also of numbers, which
become arrays without axes.  So that this costs little, operators and functions compute with the plain arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

import numpy as np

from .torch_indices import require_one_meaning

# What the forward code that runs reads: "arrays", "tensors", or "traced" where the outermost module is called in a
# trace, and whoever runs the program finds out; None outside of forward code.
reading: ContextVar[str | None] = ContextVar("what forward code reads", default=None)

# Whether the code that runs is forward code of a module of the user, where arrays are `ForwardArray`s.
speaking: ContextVar[bool] = ContextVar("forward code runs", default=False)

_PLAIN = np.ndarray
_view = np.ndarray.view
_TEXTS = "OSUTmM"


# Classes of what may hold a `ForwardArray`.
_NESTED: set[type] = {tuple, list, dict}


class ArrayContainer:
    """Base class of containers, other than Python's own, whose arrays are `ForwardArray`s inside forward code."""

    def __init_subclass__(cls) -> None:
        _NESTED.add(cls)

    def arrays(self) -> tuple[Any, ...]:
        """The arrays."""
        raise NotImplementedError

    def with_arrays(self, arrays: Iterable[Any]) -> Any:
        """A container with other arrays in it."""
        raise NotImplementedError


class ForwardArray(np.ndarray):
    """An array inside forward code, with the methods of NumPy and of torch."""

    __slots__ = ()

    def __array_function__(self, function: Any, types: Iterable[type], args: Any, kwargs: Any) -> Any:
        if kwargs:
            kwargs = {name: plain(x) for name, x in kwargs.items()}
        return in_forward(function(*plain_arguments(args), **kwargs))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        call = ufunc if method == "__call__" else getattr(ufunc, method)
        if kwargs:
            kwargs = {name: plain(x) for name, x in kwargs.items()}
        found = call(*plain_arguments(inputs), **kwargs)
        return _view(found, ForwardArray) if type(found) is _PLAIN else in_forward(found)

    def __getitem__(self, index: Any) -> Any:
        if type(index) is tuple and len(index) > 2:
            require_one_meaning(index)
        found = _PLAIN.__getitem__(self, index)
        return found if type(found) is ForwardArray else in_forward(found)

    def __setitem__(self, index: Any, value: Any) -> None:
        if type(index) is tuple and len(index) > 2:
            require_one_meaning(index)
        _PLAIN.__setitem__(self, index, value)

    def __hash__(self) -> int:  # type: ignore[override]
        if self.ndim:
            raise TypeError("unhashable type: 'numpy.ndarray'")
        # It stands for a number.
        return hash(self.item())

    def __repr__(self) -> str:
        return repr(plain(self))

    def __reduce__(self) -> Any:
        return plain(self).__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return plain(self).__reduce_ex__(protocol)

    def __deepcopy__(self, memo: dict[int, Any] | None) -> Any:
        return self.copy()


_NESTED.add(ForwardArray)
_CONTAINERS = (tuple, list, dict, ArrayContainer)


def in_forward(x: Any) -> Any:
    """What forward code gets for a result: arrays and numbers of NumPy as `ForwardArray`, also in lists and tuples."""
    cls = type(x)
    if cls is np.ndarray:
        if x.dtype.hasobject:
            return x
        # One that is an array without axes, and no number, shares its memory.
        return _view(x, ForwardArray) if x.ndim else _view(x, ForwardArray)[...]
    if cls is ForwardArray:
        return x
    if issubclass(cls, np.generic):
        return x if x.dtype.kind in _TEXTS else np.asarray(x).view(ForwardArray)
    if cls is tuple or cls is list:
        return cls([in_forward(y) for y in x])
    if cls is dict:
        return {name: in_forward(y) for name, y in x.items()}
    if isinstance(x, ArrayContainer):
        return x.with_arrays(map(in_forward, x.arrays()))
    return x._make([in_forward(y) for y in x]) if isinstance(x, tuple) and hasattr(x, "_make") else x


def plain(x: Any) -> Any:
    """The array itself of a `ForwardArray`, also in lists, tuples and dicts; other values as they are."""
    cls = type(x)
    if cls is ForwardArray:
        return _view(x, _PLAIN)
    if cls is tuple or cls is list:
        return cls([plain(y) for y in x]) if any([type(y) in _NESTED for y in x]) else x
    if cls is dict:
        return {name: plain(y) for name, y in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_make"):
        return x._make([plain(y) for y in x])
    return x.with_arrays(map(plain, x.arrays())) if isinstance(x, ArrayContainer) else x


def plain_arguments(xs: Iterable[Any]) -> list[Any]:
    """Arguments with plain arrays among them, in little time where there is nothing to do."""
    return [_view(x, _PLAIN) if type(x) is ForwardArray else plain(x) if isinstance(x, _CONTAINERS) else x for x in xs]


def returned(x: ForwardArray) -> Any:
    """What leaves forward code: the plain array, or the number of NumPy that an array without axes stands for."""
    if not x.ndim and not stands_for_element(x):
        return _view(x, _PLAIN)[()]
    base: Any = x.base
    if type(base) is _PLAIN and base.strides == x.strides and base.shape == x.shape and base.dtype is x.dtype:
        return base
    return _view(x, _PLAIN)


def stands_for_element(x: ForwardArray) -> bool:
    """Whether an array without axes is an element of another one, and shares its memory."""
    return type(x.base) is ForwardArray


def _binary(call: Callable[[Any, Any], Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def forward(self: ForwardArray, other: Any) -> Any:
        found = call(_view(self, _PLAIN), _view(other, _PLAIN) if type(other) is ForwardArray else other)
        return _view(found, ForwardArray) if type(found) is _PLAIN else in_forward(found)

    def reflected(self: ForwardArray, other: Any) -> Any:
        found = call(other, _view(self, _PLAIN))
        return _view(found, ForwardArray) if type(found) is _PLAIN else in_forward(found)

    return forward, reflected


def _in_place(change: Callable[[Any, Any], Any], call: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def assign(self: ForwardArray, other: Any) -> Any:
        if not self.ndim and not stands_for_element(self):
            # A number of NumPy is immutable, and a name gets another one.
            return in_forward(call(_view(self, _PLAIN)[()], plain(other)))
        array = _view(self, _PLAIN)
        found = change(array, plain(other))
        return self if found is array else in_forward(found)

    return assign


def _unary(call: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda self: in_forward(call(_view(self, _PLAIN)))


def _install_operators() -> None:
    names = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
    for name in names:
        call = getattr(operator, name + "_" if name in ("and", "or") else name)
        forward, reflected = _binary(call)
        setattr(ForwardArray, f"__{name}__", forward)
        setattr(ForwardArray, f"__r{name}__", reflected)
        setattr(ForwardArray, f"__i{name}__", _in_place(getattr(operator, f"i{name}"), call))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(ForwardArray, f"__{name}__", _binary(getattr(operator, name))[0])
    for name in ("neg", "abs", "invert", "pos"):
        setattr(ForwardArray, f"__{name}__", _unary(getattr(operator, name)))


_install_operators()
