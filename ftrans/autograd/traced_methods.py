"""The methods of torch's tensors for traced values, and for arrays inside forward code.

What would give the array itself away, such as `numpy()` or `item()`, and what only a graph has, such as `backward`, has
no meaning for a traced value.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.cell import read
from ..base.forward_code import ForwardArray, in_forward, plain
from ..base.source import at_line, user_line
from ..core.trace import Tracer
from ..numpy.array_api import device
from ..numpy.indexing import require_kept
from ..numpy.methods import name_methods
from ..numpy.torch_names import advise
from .torch_methods import IN_PLACE, METHODS
from .torch_methods.kinds import requires_grad
from .torch_methods.pointwise import OWN, UFUNCS
from .torch_methods.shared import RULES, shared, size_or_shape

Method = Callable[..., Any]


def in_place(name: str, function: Method) -> Method:
    """A function that gives a new array, as a method that changes the array, and returns it."""

    def change(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = function(self, *args, **kwargs)
        if not np.can_cast(found.dtype, self.dtype, "same_kind"):
            raise TypeError(
                f"an array of dtype {self.dtype} cannot hold what {name}_ makes of it, which has dtype {found.dtype}; "
                f"write x = x.{name}(...){at_line(user_line())}"
            )
        np.copyto(self, found, casting="same_kind")
        return self

    change.__doc__ = f"{function.__doc__}  In place."
    return change


def zero_(self: Any) -> Any:
    """Set all elements to zero, in place."""
    return fill_(self, 0)


def fill_(self: Any, value: Any) -> Any:
    """Set all elements, in place."""
    self.fill(value)
    return self


def copy_(self: Any, source: Any) -> Any:
    """Copy the values of another array into this one, converted to its dtype."""
    require_kept(source, self.dtype)
    self[...] = read(source)
    return self


def changing_methods() -> dict[str, Method]:
    """Methods that change a value in place, by their names."""
    ufuncs = {name: METHODS[name] for name, f in UFUNCS.items() if any(t.endswith("d->d") for t in f.types)}
    methods = {f"{name}_": in_place(name, f) for name, f in (ufuncs | IN_PLACE).items()}
    return methods | {"zero_": zero_, "fill_": fill_, "copy_": copy_}


_PROPERTIES: dict[str, property] = {
    "size": property(size_or_shape, doc="Number of elements; called as a method, the shape."),
    "requires_grad": property(requires_grad, doc=requires_grad.__doc__),
    "is_cuda": property(lambda self: False, doc="False: it is not torch that puts it anywhere."),
}


# Names that mean something else of a traced value.
_OF_TRACERS = ("type", "size")


def install_on_traced_values() -> None:
    """Give traced values the methods of tensors."""
    own = {name: f for name, f in vars(Tracer).items() if name not in OWN or name in RULES or hasattr(np.ndarray, name)}
    methods: dict[str, Any] = {
        name: shared(name, own[name]) if name in own else method
        for name, method in METHODS.items()
        if name not in _OF_TRACERS
    }
    methods |= changing_methods() | _PROPERTIES
    methods["view"] = shared("view", vars(Tracer)["view"])
    for name, method in methods.items():
        setattr(Tracer, name, method)
    name_methods(Tracer, methods)


# Arrays inside forward code


def _of_arrays(function: Method) -> Method:
    """A function of arrays as a method of arrays inside forward code."""

    @functools.wraps(function)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if args:
            args = tuple([plain(x) for x in read(args)])
        if kwargs:
            kwargs = {name: plain(x) for name, x in read(kwargs).items()}
        found = function(plain(self), *args, **kwargs)
        return found.view(ForwardArray) if type(found) is np.ndarray else in_forward(found)

    return method


def _numpy(self: Any, *, force: bool = False) -> Any:
    """The array itself."""
    return plain(self)


def _data(self: Any) -> Any:
    raise AttributeError(
        "x.data is a tensor without gradient in torch, and the memory of x in NumPy; write x.detach() for the one, and "
        f"memoryview(x) for the other{at_line(user_line())}"
    )


# Methods of NumPy whose results are numbers or plain arrays.
_OF_NUMPY = ("argmax", "argmin", "dot", "trace", "nonzero", "searchsorted", "choose", "compress", "take")


# Methods of NumPy whose results are of the class of the array, and never numbers.
_KEEPING_CLASS = ("transpose", "squeeze", "flatten", "view", "repeat")


def install_on_arrays() -> None:
    """Give arrays inside forward code the methods of tensors."""
    methods: dict[str, Any] = {name: _of_arrays(getattr(np.ndarray, name)) for name in _OF_NUMPY}
    for name, method in METHODS.items():
        numpy = getattr(np.ndarray, name, None)
        if numpy is None:
            methods[name] = _of_arrays(method)
        else:
            methods[name] = shared(name, numpy if name in _KEEPING_CLASS else _of_arrays(numpy))
        if numpy is not None and name in ("clip", "conj", "ravel", "reshape", "round", "swapaxes"):
            del methods[name]
    methods |= changing_methods() | _PROPERTIES
    methods |= {
        "numpy": lambda self, **options: plain(self),
        "data": property(_data),
        "device": property(device, doc=device.__doc__),
    }
    for name, method in methods.items():
        setattr(ForwardArray, name, method)
    name_methods(ForwardArray, methods)
    advise(ForwardArray, lambda x: "an array")
