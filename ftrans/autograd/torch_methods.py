"""Tensor methods that torch has: calls written as in torch give the results of torch.

A keyword of torch, such as `dim=`, makes a call one of torch.  Without one, methods that NumPy has are NumPy's: `std`
and `var` divide by n, `nonzero()` is a tuple of indices, `sort()` sorts in place.  Other calls that would give
different numbers, such as `x.max(1)` and `x.transpose(0, 1)`, are errors that name both ways to write them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.source import at_line, user_line
from ..numpy.manipulation import normal_axis
from ..numpy.torch_names import missing, require_clear_repeat, require_clear_transpose
from .tensor import Tensor, held

Method = Callable[..., Any]


class ValuesAndIndices(NamedTuple):
    """Elements of a tensor along an axis, and their indices."""

    values: Any
    indices: Any


_RENAMED = {"dim": "axis", "keepdim": "keepdims"}


def _is_of_torch(args: Sequence[Any], kwargs: dict[str, Any], *names: str) -> bool:
    """Whether a call is written as in torch: by a keyword of torch, or with keepdim as the second argument."""
    return any(name in kwargs for name in ("dim", "keepdim", *names)) or (len(args) > 1 and isinstance(args[1], bool))


def _as_in_numpy(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of torch under their NumPy names."""
    if len(args) == 2 and isinstance(args[1], bool):
        first, flag = args
        args, kwargs = (first,), {**kwargs, "keepdim": flag}
    for name, other in _RENAMED.items():
        if name in kwargs and other in kwargs:
            raise TypeError(f"{name}= and {other}= are the same; give one of them{at_line(user_line())}")
    if isinstance(kwargs.get("dim"), list | tuple):
        # In torch, an empty tuple means all axes.
        kwargs = {**kwargs, "dim": tuple(kwargs["dim"]) or None}
    return args, {_RENAMED.get(name, name): x for name, x in kwargs.items()}


def _require_axes(args: Sequence[Any]) -> None:
    """Raise if an empty tuple of axes is given by position: it means all axes in torch, and none in NumPy."""
    if args and isinstance(args[0], tuple | list) and not args[0]:
        raise TypeError(
            "() stands for all axes in torch, and for none in NumPy; leave it out for the one, and write axis=() for "
            f"the other{at_line(user_line())}"
        )


def _reduction(numpy: Method) -> Method:
    def reduce(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        _require_axes(args)
        if kwargs or len(args) > 1:
            args, kwargs = _as_in_numpy(args, kwargs)
        return numpy(self, *args, **kwargs)

    return reduce


def _accumulation(numpy: Method) -> Method:
    def accumulate(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if "keepdim" in kwargs or any(isinstance(x, bool) for x in args[1:]):
            raise TypeError(
                "cumsum and cumprod keep all axes; they take dim= (or axis=) and dtype=, and np.flip turns an axis "
                f"round{at_line(user_line())}"
            )
        if kwargs:
            args, kwargs = _as_in_numpy(args, kwargs)
        return numpy(self, *args, **kwargs)

    return accumulate


def _deviation(numpy: Method) -> Method:
    def deviate(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        _require_axes(args)
        if any(isinstance(x, bool) for x in args):
            raise TypeError(
                "std and var take flags by name: unbiased= or ddof= for the divisor, keepdim= or keepdims= for the "
                f"axes{at_line(user_line())}"
            )
        if _is_of_torch(args, kwargs, "unbiased", "correction"):
            args, kwargs = _as_in_numpy(args, kwargs)
            # torch divides by n - 1.
            ddof = int(kwargs.pop("unbiased", True))
            given = kwargs.pop("correction", None)
            kwargs.setdefault("ddof", ddof if given is None else given)
        return numpy(self, *args, **kwargs)

    return deviate


def _extreme(numpy: Method, find: Method, of_two: np.ufunc) -> Method:
    """`max` or `min`: of all elements, of two tensors, or as in torch with indices along an axis."""

    def extreme(self: Any, *args: Any, **kwargs: Any) -> Any:
        other = kwargs.get("other", args[0] if args and isinstance(args[0], Tensor) else None)
        if other is not None:
            return of_two(self, other)
        if not _is_of_torch(args, kwargs):
            _require_clear_extreme(find.__name__[3:], args)
            return numpy(self, *args, **kwargs)
        args, kwargs = _as_in_numpy(args, kwargs)
        axis: Any = kwargs.pop("axis", args[0] if args else None)
        keepdims = kwargs.pop("keepdims", False)
        if not isinstance(axis, int | np.integer) or kwargs:
            raise TypeError(
                f"{find.__name__[3:]} takes dim=, one axis, and keepdim=, and gives values and their indices, as in "
                f"torch; or axis= and keepdims= as in NumPy, which gives values{at_line(user_line())}"
            )
        axis = int(axis)
        indices = find(self, axis, keepdims=True)
        values: Any = np.take_along_axis(self, indices, axis)
        return ValuesAndIndices(*(x if keepdims else np.squeeze(x, axis) for x in (values, indices)))

    return extreme


def _require_clear_extreme(name: str, args: tuple[Any, ...]) -> None:
    """Raise for `x.max(i)`, which has different results in NumPy and in torch."""
    _require_axes(args)
    if not args:
        return
    if isinstance(args[0], np.ndarray | list) and np.ndim(args[0]):
        raise TypeError(
            f"{name} takes an axis or a tensor; write np.{name}imum(x, y) for the {name}imum of two arrays"
            + at_line(user_line())
        )
    if isinstance(args[0], int | np.integer):
        raise TypeError(
            f"{name}({args[0]}) gives values and their indices in torch, and values alone in NumPy; write "
            f"x.{name}(dim={args[0]}) for the one, and x.{name}(axis={args[0]}) for the other{at_line(user_line())}"
        )


def _places(x: Any, axis: int, descending: bool, stable: bool) -> Any:
    """The order of elements along an axis; NaN is larger than all numbers."""
    if not descending:
        return np.argsort(x, axis, stable=stable)
    # Reversing twice keeps the order of equal elements.
    return x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, stable=True), axis)


def _with_direction(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of a sort; a flag in second position gets its torch name."""
    if len(args) == 2 and isinstance(args[1], bool):
        return args[:1], {**kwargs, "descending": args[1]}
    return args, kwargs


def _argsort(numpy: Method) -> Method:
    def argsort(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = _as_in_numpy(*_with_direction(args, kwargs))
        descending = kwargs.pop("descending", False)
        if not descending:
            return numpy(self, *args, **kwargs)
        return _places(self.detach(), kwargs.pop("axis", args[0] if args else -1), True, **{"stable": True} | kwargs)

    return argsort


def _sort(numpy: Method) -> Method:
    def sort(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Sort in place, as NumPy does; with `dim=` or `descending=`, return `(values, indices)` as torch does."""
        args, kwargs = _with_direction(args, kwargs)
        if not any(name in kwargs for name in ("dim", "descending")):
            return numpy(self, *args, **kwargs)
        axis, descending, stable = _sort_options(*args, **kwargs)
        indices = _places(self.detach(), axis, descending, stable)
        return ValuesAndIndices(np.take_along_axis(self, indices, axis), indices)

    return sort


def _sort_options(dim: int = -1, descending: bool = False, stable: bool = False) -> tuple[int, bool, bool]:
    return dim, descending, stable


def _squeeze(numpy: Method) -> Method:
    def squeeze(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if "dim" not in kwargs:
            _require_ones(self.shape, kwargs.get("axis", args[0] if args else None))
            return numpy(self, *args, **kwargs)
        # In torch, an axis of another size than one stays.
        dims = kwargs["dim"] if isinstance(kwargs["dim"], list | tuple) else [kwargs["dim"]]
        return numpy(self, tuple(i for i in dims if self.shape[i] == 1))

    return squeeze


def _require_ones(shape: tuple[int, ...], axis: Any) -> None:
    """Raise for `x.squeeze(i)` of an axis whose size is not one, which torch leaves unchanged."""
    axes = axis if isinstance(axis, tuple) else () if axis is None else (axis,)
    found = [i for i in axes if -len(shape) <= i < len(shape) and shape[i] != 1]
    if found:
        raise ValueError(
            f"squeeze takes away axes of size one, and axis {found[0]} of an array of shape {shape} has size "
            f"{shape[found[0]]}; write x.squeeze(dim={found[0]}), which leaves such an axis as it is"
            + at_line(user_line())
        )


def _diagonal(numpy: Method) -> Method:
    def diagonal(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        names = {"dim1": "axis1", "dim2": "axis2"}
        return numpy(self, *args, **{names.get(name, name): x for name, x in kwargs.items()})

    return diagonal


def _transpose(numpy: Method) -> Method:
    def transpose(self: Tensor, *axes: Any, **kwargs: Any) -> Any:
        if kwargs.keys() == {"dim0", "dim1"}:
            return np.swapaxes(self, kwargs["dim0"], kwargs["dim1"])
        require_clear_transpose(self.ndim, axes)
        return numpy(self, *axes, **kwargs)

    return transpose


def _repeat(numpy: Method) -> Method:
    def repeat(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        require_clear_repeat(args, kwargs)
        return numpy(self, *args, **kwargs)

    return repeat


def _flatten(numpy: Method) -> Method:
    def flatten(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if not kwargs.keys() & {"start_dim", "end_dim"} and not (args and isinstance(args[0], int)):
            return numpy(self, *args, **kwargs)
        start, end = (normal_axis(i, max(self.ndim, 1)) for i in _start_and_end(*args, **kwargs))
        if start > end:
            raise ValueError(f"flatten joins the axes from {start} to {end}, which are none{at_line(user_line())}")
        return np.reshape(self, (*self.shape[:start], math.prod(self.shape[start : end + 1]), *self.shape[end + 1 :]))

    return flatten


def _start_and_end(start_dim: int = 0, end_dim: int = -1) -> tuple[int, int]:
    return start_dim, end_dim


def _nonzero(numpy: Method) -> Method:
    def nonzero(self: Tensor, *, as_tuple: bool = True) -> Any:
        """Indices of nonzero elements: an array per axis, or with `as_tuple=False` an array with a row per element."""
        return numpy(self) if as_tuple else np.argwhere(self)

    return nonzero


def _sum(numpy: Method) -> Method:
    def add(self: Tensor, other: Any, *, alpha: Any = 1, **options: Any) -> Any:
        return numpy(self, other if isinstance(alpha, int) and alpha == 1 else alpha * held(other), **options)

    return add


def _inverse(numpy: Method) -> Method:
    def reciprocal_(self: Tensor) -> Any:
        if self.dtype.kind not in "fc":
            raise TypeError(
                f"a tensor that is {self.array_type} cannot hold reciprocals; write x = x.reciprocal()"
                + at_line(user_line())
            )
        return numpy(self)

    return reciprocal_


def _quotient(numpy: Method) -> Method:
    def divide(self: Tensor, other: Any, *, rounding_mode: str | None = None, **options: Any) -> Any:
        if rounding_mode is None:
            return numpy(self, other, **options)
        if rounding_mode == "floor":
            return np.floor_divide(self, other)
        if rounding_mode != "trunc":
            raise ValueError(f'rounding_mode is "floor", "trunc" or None, not {rounding_mode!r}{at_line(user_line())}')
        # For integers, a quotient of floating-point numbers would not be exact.
        return (
            np.floor_divide(self - np.fmod(self, other), other) if self.dtype.kind in "iu" else np.trunc(self / other)
        )

    return divide


# Python's error for unknown arguments must name the method that was called.
for _options, _name in ((_sort_options, "sort"), (_places, "argsort"), (_start_and_end, "flatten")):
    _options.__qualname__ = _name

_WRAPPED: dict[str, Callable[[Method], Method]] = {
    **dict.fromkeys(("sum", "prod", "mean", "any", "all", "argmax", "argmin"), _reduction),
    **dict.fromkeys(("cumsum", "cumprod"), _accumulation),
    **dict.fromkeys(("std", "var"), _deviation),
    "max": lambda numpy: _extreme(numpy, np.argmax, np.maximum),
    "min": lambda numpy: _extreme(numpy, np.argmin, np.minimum),
    **dict.fromkeys(("add", "add_", "sub", "sub_", "subtract", "subtract_"), _sum),
    **dict.fromkeys(("div", "divide"), _quotient),
    "reciprocal_": _inverse,
    "argsort": _argsort,
    "sort": _sort,
    "squeeze": _squeeze,
    "diagonal": _diagonal,
    "transpose": _transpose,
    "repeat": _repeat,
    "flatten": _flatten,
    "nonzero": _nonzero,
}


def as_in_torch(name: str, numpy: Method) -> Method:
    """A NumPy method that also accepts torch's arguments."""
    wrap = _WRAPPED.get(name)
    if wrap is None:
        return numpy
    method = wrap(numpy)
    method.__name__, method.__doc__ = name, method.__doc__ or numpy.__doc__
    return method


# Names that NumPy's arrays do not have


def norm(self: Any, p: Any = None, dim: Any = None, keepdim: bool = False, dtype: Any = None, **kwargs: Any) -> Any:
    """The norm of all elements, or along axes: `numpy.linalg.vector_norm` of order `p`, which is 2 by default.

    With `ord=`, `axis=` or `keepdims=` it is `numpy.linalg.norm`.
    """
    if kwargs:
        return np.linalg.norm(self, **{"ord": p, "axis": dim, "keepdims": keepdim} | kwargs)
    x = self if dtype is None else self.astype(dtype)
    if p == "nuc":
        return np.linalg.norm(x, "nuc", dim, keepdim)
    axis: Any = tuple(dim) or None if isinstance(dim, list | tuple) else dim
    return np.linalg.vector_norm(x, axis=axis, keepdims=keepdim, ord=2 if p is None or p == "fro" else p)


def to(self: Any, *args: Any, dtype: Any = None, device: Any = None, copy: bool = False, **kept: Any) -> Any:
    """The tensor in another dtype, or itself where it has this dtype.

    Args:
        args: a dtype, another tensor, whose dtype is taken, or "cpu", where tensors are.
        dtype: the dtype.
        device: "cpu".
        copy: whether to copy where nothing changes.
        kept: `non_blocking` and `memory_format`, which change nothing here.
    """
    for name in kept.keys() - {"non_blocking", "memory_format"}:
        raise TypeError(f"to() got an unexpected keyword argument {name!r}{at_line(user_line())}")
    for x in args:
        if isinstance(x, str) and x.split(":")[0] in _DEVICES:
            device = x
        elif not isinstance(x, bool):
            dtype = x if isinstance(x, type) else getattr(x, "dtype", x)
    if device is not None and str(device).split(":")[0] != "cpu":
        raise TypeError(
            f"tensors are in the memory of the host, and cannot be put on {device!r}; compiled functions (ft.jit, "
            f"nn.jit) run on JAX's default device{at_line(user_line())}"
        )
    if dtype is not None and np.dtype(dtype) != self.dtype:
        return self.astype(dtype)
    return self.copy() if copy else self


_DEVICES = ("cpu", "cuda", "gpu", "tpu", "mps", "meta", "xpu")


def of_type(self: Any, dtype: Any = None, **options: Any) -> Any:
    """The tensor in another dtype."""
    if dtype is None:
        raise TypeError(f"type() without a dtype is a name in torch; write x.dtype{at_line(user_line())}")
    return to(self, dtype, **options)


def expand(self: Any, *shape: Any, size: Any = None) -> Any:
    """The array broadcast to a shape, where -1 stands for the size that an axis has."""
    shape = shape if size is None else (size,)
    wanted = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], list | tuple) else shape
    behind = len(wanted) - len(self.shape)
    if any(n == -1 and i < behind for i, n in enumerate(wanted)):
        raise ValueError(
            f"expand{wanted} gives -1 for an axis that an array of shape {tuple(self.shape)} does not have; say how "
            f"long it is{at_line(user_line())}"
        )
    return np.broadcast_to(self, tuple(self.shape[i - behind] if n == -1 else n for i, n in enumerate(wanted)))


def permute(self: Any, *axes: Any, dims: Any = None) -> Any:
    """The axes in another order."""
    if axes and dims is not None:
        raise TypeError(f"permute takes the axes by position or as dims=, not both{at_line(user_line())}")
    given = axes if dims is None else (dims,)
    return np.transpose(self, given[0] if len(given) == 1 and isinstance(given[0], list | tuple) else given)


def t(self: Any) -> Any:
    """The transpose of a matrix."""
    if self.ndim > 2:
        raise TypeError(
            f"t() is for matrices and vectors, not for {self.ndim} axes; write x.mT for matrices along the leading "
            f"axes, and x.T for all axes turned round{at_line(user_line())}"
        )
    return self.T


def view(self: Any, *shape: Any, size: Any = None, dtype: Any = None) -> Any:
    """The same elements in another shape."""
    shape = shape if size is None else (size,)
    if dtype is not None or (len(shape) == 1 and isinstance(shape[0], type | np.dtype | str)):
        raise TypeError(
            f"a tensor has no bytes that could be read as another type; convert it by .astype{at_line(user_line())}"
        )
    return self.reshape(*shape)


def equal(self: Any, other: Any) -> bool:
    """Whether shape and all elements are equal."""
    return bool(np.array_equal(self, other))


def reciprocal(self: Any) -> Any:
    """One divided by each element; of integers too, where `numpy.reciprocal` gives zeros."""
    return 1 / self


def no_attribute(self: Tensor, name: str) -> Any:
    """Raise for an attribute that tensors do not have."""
    raise missing(f"a tensor ({self.array_type})", name)


NAMES: dict[str, Method] = {
    "norm": norm,
    "to": to,
    "type": of_type,
    "expand": expand,
    "permute": permute,
    "t": t,
    "view": view,
    "equal": equal,
    "reciprocal": reciprocal,
    "__getattr__": no_attribute,
}
