"""Methods that both NumPy's arrays and torch's tensors have: which of the two a call means.

A keyword of torch, such as `dim=`, or arguments that NumPy's method does not take make a call one of torch.  Others are
NumPy's.  Where torch would give another result for such a call, as for `x.max(1)` or `x.std()`, it is an error that
shows both ways to write it: for tensors, and for all values inside forward code.  Outside of it, arrays and traced
values are NumPy's.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from ...base.foreign import calls_attribute
from ...base.forward_code import speaking
from ...base.source import at_line, of_package, user_line
from ...base.type_questions import is_plain
from ...core.trace import Tracer
from ...numpy import after_trace
from ...numpy.manipulation import normal_axis
from . import METHODS
from .pointwise import OWN, SECOND, UFUNCS

Method = Callable[..., Any]
# What lies between the user's call and the code here.
_BETWEEN = (__file__, after_trace.__file__)
_TO_TORCH = {"axis": "dim", "keepdims": "keepdim"}


def _unclear(x: Any, said: str) -> None:
    """Raise for a call that means one thing to NumPy and another one to torch, where both are spoken.

    Libraries speak NumPy.
    """
    if is_plain(x, np.ndarray | Tracer):
        frame = sys._getframe(1)
        while frame.f_code.co_filename in _BETWEEN and frame.f_back is not None:
            frame = frame.f_back
        if not speaking.get() or of_package(frame.f_code.co_filename) is not None:
            return
    raise TypeError(said + at_line(user_line()))


def _is_of_torch(args: Sequence[Any], kwargs: dict[str, Any], *names: str) -> bool:
    """Whether a call is written as in torch: by a keyword of torch, or with keepdim as the second argument."""
    return any(name in kwargs for name in ("dim", "keepdim", *names)) or (len(args) > 1 and isinstance(args[1], bool))


def _as_in_torch(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keywords of NumPy under their torch names."""
    for name, other in _TO_TORCH.items():
        if name in kwargs and other in kwargs:
            raise TypeError(f"{other}= and {name}= are the same; give one of them{at_line(user_line())}")
    return {_TO_TORCH.get(name, name): x for name, x in kwargs.items()}


def _require_axes(x: Any, args: Sequence[Any]) -> None:
    """Raise if an empty tuple of axes is given by position: it means all axes in torch, and none in NumPy."""
    if args and isinstance(args[0], tuple | list) and not args[0]:
        _unclear(
            x,
            "() stands for all axes in torch, and for none in NumPy; leave it out for the one, and write axis=() for "
            "the other",
        )


def _reduction(numpy: Method, torch: Method) -> Method:
    def reduce(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not args and not kwargs:
            return numpy(self)
        # NumPy takes no lists of axes.
        if _is_of_torch(args, kwargs) or (args and isinstance(args[0], list) and args[0]):
            return torch(self, *args, **_as_in_torch(kwargs))
        _require_axes(self, args)
        return numpy(self, *args, **kwargs)

    return reduce


def _accumulation(numpy: Method, torch: Method) -> Method:
    def accumulate(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "keepdim" in kwargs or any(isinstance(x, bool) for x in args[1:]):
            raise TypeError(
                "cumsum and cumprod keep all axes; they take dim= (or axis=) and dtype=, and np.flip turns an axis "
                f"round{at_line(user_line())}"
            )
        return torch(self, *args, **_as_in_torch(kwargs)) if "dim" in kwargs else numpy(self, *args, **kwargs)

    return accumulate


def _deviation(numpy: Method, torch: Method) -> Method:
    name = torch.__name__

    def deviate(self: Any, *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, bool) for x in args):
            raise TypeError(
                "std and var take flags by name: unbiased= or ddof= for the divisor, keepdim= or keepdims= for the "
                f"axes{at_line(user_line())}"
            )
        if _is_of_torch(args, kwargs, "unbiased", "correction"):
            if "ddof" in kwargs:
                kwargs["correction"] = kwargs.pop("ddof")
            return torch(self, *args, **_as_in_torch(kwargs))
        _require_axes(self, args)
        if not kwargs:
            first = f"{args[0]!r}, " if args else ""
            _unclear(
                self,
                f"{name}({first[:-2]}) divides by n - 1 in torch, and by n in NumPy; write x.{name}({first}"
                f"correction=1) for the one, and x.{name}({first}ddof=0) for the other",
            )
        return numpy(self, *args, **kwargs)

    return deviate


def _extreme(numpy: Method, torch: Method) -> Method:
    name = torch.__name__

    def extreme(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not args and not kwargs:
            return numpy(self)
        if "other" in kwargs or (args and hasattr(args[0], "dtype") and not is_plain(args[0], np.integer)):
            return torch(self, *args, **kwargs)
        if _is_of_torch(args, kwargs):
            return torch(self, *args, **_as_in_torch(kwargs))
        _require_axes(self, args)
        if args and isinstance(args[0], int | np.integer):
            _unclear(
                self,
                f"{name}({args[0]}) gives values and their indices in torch, and values alone in NumPy; write "
                f"x.{name}(dim={args[0]}) for the one, and x.{name}(axis={args[0]}) for the other",
            )
        return numpy(self, *args, **kwargs)

    return extreme


def _argsort(numpy: Method, torch: Method) -> Method:
    def argsort(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_of_torch(args, kwargs, "descending"):
            return torch(self, *args, **_as_in_torch(kwargs))
        return numpy(self, *args, **kwargs)

    return argsort


def _sort(numpy: Method, torch: Method) -> Method:
    def sort(self: Any, *args: Any, **kwargs: Any) -> Any:
        """Sort in place, as NumPy does; with `dim=` or `descending=`, return `(values, indices)` as torch does."""
        if _is_of_torch(args, kwargs, "descending"):
            return torch(self, *args, **kwargs)
        if not kwargs:
            given = args[0] if args else -1
            _unclear(
                self,
                f"sort({', '.join(map(repr, args))}) gives the sorted values and their indices in torch, and sorts in "
                f"place in NumPy; write x.sort(dim={given}) for the one, and x.sort(axis={given}) for the other",
            )
        return numpy(self, *args, **kwargs)

    return sort


def _squeeze(numpy: Method, torch: Method) -> Method:
    def squeeze(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "dim" in kwargs:
            return torch(self, *args, **kwargs)
        if args or kwargs:
            _require_ones(self, kwargs.get("axis", args[0] if args else None))
        return numpy(self, *args, **kwargs)

    return squeeze


def _require_ones(x: Any, axis: Any) -> None:
    """Raise for `x.squeeze(i)` of an axis whose size is not one, which torch leaves unchanged."""
    shape = tuple(x.shape)
    axes = axis if isinstance(axis, tuple) else () if axis is None else (axis,)
    found = [i for i in axes if -len(shape) <= i < len(shape) and shape[i] != 1]
    if found:
        raise ValueError(
            f"squeeze takes away axes of size one, and axis {found[0]} of an array of shape {shape} has size "
            f"{shape[found[0]]}; write x.squeeze(dim={found[0]}), which leaves such an axis as it is"
            + at_line(user_line())
        )


def _transpose(numpy: Method, torch: Method) -> Method:
    def transpose(self: Any, *axes: Any, **kwargs: Any) -> Any:
        if kwargs:
            return torch(self, *axes, **kwargs)
        ndim = self.ndim
        if len(axes) == 2 and is_plain(axes[0], int | np.integer):
            i, j = axes
            if ndim != 2:
                # For NumPy, these are not all axes.
                return torch(self, i, j)
            if normal_axis(i, 2) < normal_axis(j, 2):
                _unclear(
                    self,
                    f"transpose({i}, {j}) of an array of 2 axes exchanges them in torch, and leaves them as they are "
                    f"in NumPy; write x.transpose({j}, {i}), np.swapaxes(x, {i}, {j}) or x.mT for the one, and x for "
                    "the other",
                )
        if len(axes) == 1 and isinstance(axes[0], tuple | list) and len(axes[0]) != ndim:
            raise TypeError(
                f"transpose({axes[0]}) of an array of {ndim} axes: transpose takes all axes in their new order; write "
                f"np.swapaxes(x, i, j) to exchange two of them{at_line(user_line())}"
            )
        return numpy(self, *axes)

    return transpose


def _repeat(numpy: Method, torch: Method) -> Method:
    def repeat(self: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) > 2:
            return torch(self, *args, **kwargs)
        if args and not kwargs:
            given = ", ".join(map(repr, args))
            _unclear(
                self,
                f"repeat({given}) repeats the whole array in torch, and its elements in NumPy; write "
                f"x.tile({given}) for the one, and np.repeat(x, repeats, axis) for the other",
            )
        return numpy(self, *args, **kwargs)

    return repeat


def _flatten(numpy: Method, torch: Method) -> Method:
    def flatten(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.keys() & {"start_dim", "end_dim"} or (args and isinstance(args[0], int)):
            return torch(self, *args, **kwargs)
        return numpy(self, *args, **kwargs)

    return flatten


def _nonzero(numpy: Method, torch: Method) -> Method:
    def nonzero(self: Any, **kwargs: Any) -> Any:
        """Indices of nonzero elements: with `as_tuple` a vector per axis, without it an array with a row for each."""
        if not kwargs:
            _unclear(
                self,
                "nonzero() is an array with a row of indices for each element in torch, and a tuple of vectors in "
                "NumPy; write x.nonzero(as_tuple=False) for the one, and x.nonzero(as_tuple=True) for the other",
            )
            return numpy(self)
        return torch(self, **kwargs)

    return nonzero


def _view(numpy: Method, torch: Method) -> Method:
    def view(self: Any, *shape: Any, size: Any = None, **kwargs: Any) -> Any:
        """The same elements in another shape; with a dtype, the same bytes as elements of that."""
        given = shape if size is None else (size,)
        sizes = given[0] if len(given) == 1 and isinstance(given[0], tuple | list) else given
        if given and not kwargs and all(is_plain(n, int | np.integer) for n in sizes):
            return torch(self, sizes)
        return numpy(self, *shape, **kwargs)

    return view


def _put(numpy: Method, torch: Method) -> Method:
    def put(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "accumulate" in kwargs:
            return torch(self, *args, **kwargs)
        if not kwargs:
            _unclear(
                self,
                "put(indices, values) gives a new array in torch, and changes x in NumPy; write "
                "x.clone().put_(indices, values) for the one, and np.put(x, indices, values) for the other",
            )
        return numpy(self, *args, **kwargs)

    return put


def _by_keyword(*names: str) -> Callable[[Method, Method], Method]:
    """The rule for a method that is torch's with one of these arguments, and otherwise the same in both."""

    def rule(numpy: Method, torch: Method) -> Method:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs and any(name in kwargs for name in names):
                return torch(self, *args, **kwargs)
            return numpy(self, *args, **kwargs)

        return method

    return rule


RULES: dict[str, Callable[[Method, Method], Method]] = {
    **{name: _by_keyword(*SECOND) for name, ufunc in UFUNCS.items() if ufunc.nin == 2 and name not in OWN},
    **dict.fromkeys(("sum", "prod", "mean", "any", "all", "argmax", "argmin"), _reduction),
    **dict.fromkeys(("cumsum", "cumprod"), _accumulation),
    **dict.fromkeys(("std", "var"), _deviation),
    **dict.fromkeys(("max", "min"), _extreme),
    **dict.fromkeys(("add", "sub", "subtract"), _by_keyword("alpha", "other")),
    **dict.fromkeys(("div", "divide", "true_divide"), _by_keyword("rounding_mode", "other")),
    "argsort": _argsort, "sort": _sort, "squeeze": _squeeze, "diagonal": _by_keyword("dim1", "dim2"),
    "transpose": _transpose, "repeat": _repeat, "flatten": _flatten, "nonzero": _nonzero, "view": _view, "put": _put,
}  # fmt: skip


def shared(name: str, numpy: Method, torch: Method | None = None) -> Method:
    """A method of NumPy that also takes torch's arguments; methods that mean the same in both as they are.

    Args:
        name: its name.
        numpy: the method of NumPy.
        torch: the method of torch; by default that of the table.
    """
    rule = RULES.get(name)
    if rule is None:
        return numpy
    method = rule(numpy, METHODS[name] if torch is None else torch)
    method.__name__ = method.__qualname__ = name
    method.__doc__ = method.__doc__ or numpy.__doc__
    return method


class ElementCount(int):
    """The number of elements of an array, which is called for its shape."""

    shape: tuple[int, ...]

    @overload
    def __call__(self, dim: None = None) -> tuple[int, ...]: ...
    @overload
    def __call__(self, dim: int) -> int: ...
    def __call__(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[normal_axis(dim, len(self.shape))]


def size_or_shape(x: Any) -> int:
    """`x.size` of NumPy, the number of elements; where it is called, `x.size()` of torch, the shape."""
    shape = tuple(x.shape)
    if not calls_attribute(sys._getframe(1), "size"):
        return math.prod(shape)
    found = ElementCount(math.prod(shape))
    found.shape = shape
    return found
