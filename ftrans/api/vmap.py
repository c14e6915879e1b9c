"""vmap: a function of one example -> a function of a batch of examples."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Protocol, overload

import numpy as np

from ..base import tree
from ..base.foreign_arrays import ForeignArrays, is_foreign
from ..base.lookalikes import refuse_lookalike
from ..base.pickles import makes_picklable
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..base.type_variables import Array, Covariant, Scalar
from ..core.trace import NoWitness, Tracer
from ..core.types import type_of
from ..core.witness import ConcretizationError, example_of
from ..numpy.manipulation import broadcast_to, moveaxis
from ..xla import is_jax
from .by_values import AllElements, Batched, apply, run_by_values
from .call import check_function, name_of, named, trace_flat, type_name
from .foreign_arrays import takes_foreign_arrays

Axes = Any


class Mapped(Protocol[Covariant]):
    """A function of batches, for type checkers: which arguments have an axis more, types can't say."""

    def __call__(self, *args: Any, **kwargs: Any) -> Covariant: ...


@overload
def vmap(
    f: Callable[..., Array[Scalar] | Scalar], in_axes: Axes = 0, out_axes: int = 0, axis_size: int | None = None
) -> Mapped[Array[Scalar]]: ...
@overload
def vmap(
    f: Callable[..., float], in_axes: Axes = 0, out_axes: int = 0, axis_size: int | None = None
) -> Mapped[Array[Any]]: ...
@overload
def vmap(f: Callable[..., Any], in_axes: Axes = 0, out_axes: Axes = 0, axis_size: int | None = None) -> Mapped[Any]: ...
@makes_picklable
def vmap(
    f: Callable[..., Any], in_axes: Axes = 0, out_axes: Axes = 0, axis_size: int | None = None
) -> Callable[..., Any]:
    """Map a function over an axis of its arguments, as one vectorised program.

    Args:
        f: the function of one example.
        in_axes: the axis of each argument to map over: one integer for all, or a tuple with an entry per positional
            argument.  An entry is an integer, None for an argument that is not mapped, or a container of these like
            the argument.
        out_axes: the position of the mapped axis in the results: an integer, or a container of integers like the
            result.
        axis_size: size of the mapped axis; needed only if no argument is mapped.

    Returns:
        A function of the same arguments, with the mapped axis in arguments and results.  Keyword arguments are mapped
        over axis 0.

    Raises:
        ValueError: the sizes of mapped axes differ, or an axis does not exist; the message lists the arguments.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.vmap(np.dot)(np.ones((4, 3)), np.ones((4, 3)))
        array([3., 3., 3., 3.])
    """

    check_function(f, "vmap")

    @functools.wraps(f)
    def vmap_of_f(*args: Any, **kwargs: Any) -> Any:
        return placed(run_batched(f, in_axes, args, kwargs, axis_size), out_axes)

    return named(takes_foreign_arrays(vmap_of_f), f, "vmap")


def placed(found: Batched, out_axes: Axes) -> Any:
    """The result of a batch, with the mapped axis where it is wanted."""
    try:
        wanted = _spread(out_axes, tree.unflatten(found.structure, found.outs), "out_axes")
    except ValueError as error:
        raise ValueError(
            f"vmap out_axes {out_axes} does not fit the containers of the result: {error}{at_line(user_line())}"
        ) from None
    outs = [place(y, b, axis, found.size) for y, b, axis in zip(found.outs, found.is_batched, wanted, strict=True)]
    return tree.unflatten(found.structure, outs)


def run_batched(
    f: Callable[..., Any], in_axes: Axes, args: tuple[Any, ...], kwargs: dict[str, Any], axis_size: int | None
) -> Batched:
    """The results of `f` for all elements at once."""
    leaves, structure = tree.flatten((args, kwargs))
    axes = axes_of_leaves(f, in_axes, args, kwargs)
    size = common_size(f, args, kwargs, leaves, axes, axis_size)
    for x, axis in zip(leaves, axes, strict=True):
        if axis is None and is_foreign(x):
            refuse_lookalike(x)
    # Arrays that are the same for all elements are traced too, so that traced indices can reach into them.
    traced_leaves = [i for i, x in enumerate(leaves) if axes[i] is not None or is_plain(x, np.ndarray) or is_jax(x)]
    flags = tuple(axes[i] is not None for i in traced_leaves)
    values = [moveaxis(leaves[i], axes[i], 0) if axes[i] else leaves[i] for i in traced_leaves]
    types = [t.with_shape(t.shape[1:]) if b else t for t, b in zip(map(type_of, values), flags, strict=True)]
    reason = f"vmap runs {name_of(f)} for all {size} elements at once, and the value differs between them"
    witnesses = [
        NoWitness(reason, functools.partial(_first, x), lie_alike=True) if b else x
        for x, b in zip(values, flags, strict=True)
    ]

    def call(tracers: list[Tracer]) -> Any:
        new = list(leaves)
        for i, tracer in zip(traced_leaves, tracers, strict=True):
            new[i] = tracer
        new_args, new_kwargs = tree.unflatten(structure, new)
        return f(*new_args, **new_kwargs)

    try:
        traced, _ = trace_flat(f, types, call, witnesses, builder_type=AllElements)
    except ConcretizationError:
        if not size:
            raise
        traced = None
    return run_by_values(f, types, call, values, flags, size) if traced is None else apply(traced, values, flags, size)


def _first(batch: Any) -> Any:
    """The first element of a batch, as an array; None where it is not known."""
    values = example_of(batch)
    return None if values is None or not len(values) else values[0]


def _spread(axes: Any, container: Any, name: str) -> list[int | None]:
    """One axis for each leaf.  None is an axis, but in a container it is no leaf."""
    leaves = tree.broadcast_prefix(container, container)
    found = [axis for axis, x in zip(tree.broadcast_prefix(axes, container), leaves, strict=True) if x is not None]
    for axis in found:
        if axis is not None and not isinstance(axis, Integral):
            raise TypeError(
                f"{name} of vmap is the number of an axis, None, or a container of these like the arguments, but it "
                f"holds {axis!r}{at_line(user_line())}"
            )
    return found


def axes_of_leaves(f: Any, in_axes: Axes, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int | None]:
    """The mapped axis of each leaf of `(args, kwargs)`; None for one that is the same for all elements."""
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ValueError(
            f"vmap in_axes has {len(in_axes)} entries, but {name_of(f)} was called with {len(args)} positional ones"
            + at_line(user_line())
        )
    try:
        axes = _spread(in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args), args, "in_axes")
    except ValueError as error:
        raise ValueError(
            f"vmap in_axes {in_axes} does not fit the containers of the arguments of {name_of(f)}: {error}"
            + at_line(user_line())
        ) from None
    return [*axes, *(0 for _ in tree.flatten(kwargs)[0])]


def common_size(
    f: Any, args: Any, kwargs: Any, leaves: Sequence[Any], axes: list[int | None], axis_size: int | None
) -> int:
    """The size of the mapped axis; normalises `axes` in place."""
    if not isinstance(axis_size, Integral | None):
        raise TypeError(f"axis_size of vmap must be an integer, not {type_name(axis_size)}{at_line(user_line())}")
    sizes: dict[int, int] = {}
    for index, (x, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is None:
            continue
        where = _path(args, kwargs, index)
        try:
            type = type_of(x)
        except ForeignArrays:
            raise
        except TypeError:
            raise TypeError(
                f"vmap maps over arrays, but {where} is {type_name(x)}; give it in_axes=None{at_line(user_line())}"
            ) from None
        if not -type.ndim <= axis < type.ndim:
            raise ValueError(
                f"vmap was asked to map over axis {axis} of {where}, which is {type}; give it in_axes=None if it is "
                f"the same for all elements{at_line(user_line())}"
            )
        axes[index] = axis % type.ndim
        sizes[index] = type.shape[axis]
    if axis_size is not None:
        sizes[-1] = axis_size
    if not sizes:
        raise ValueError(f"vmap of {name_of(f)} has no argument to map over; give axis_size{at_line(user_line())}")
    if len(set(sizes.values())) > 1:
        listing = ", ".join(f"{_path(args, kwargs, i) if i >= 0 else 'axis_size'} has {n}" for i, n in sizes.items())
        raise ValueError(f"vmap got mapped axes of different sizes: {listing}{at_line(user_line())}")
    return next(iter(sizes.values()))


def _path(args: Any, kwargs: Any, index: int) -> str:
    count = len(tree.flatten(args)[0])
    return f"argument {tree.paths(args)[index]}" if index < count else f"argument {tree.paths(kwargs)[index - count]}"


def place(y: Any, is_batched: bool, axis: int | None, size: int) -> Any:
    """A result with the mapped axis, which is in front if there is one, where it is wanted."""
    if axis is None:
        if is_batched:
            raise ValueError(
                f"vmap was told by out_axes=None that a result is the same for all elements, but it differs"
                f"{at_line(user_line())}"
            )
        return y
    if not is_batched:
        shape = getattr(y, "shape", ())
        y = broadcast_to(y, (size, *shape))
        y = y if isinstance(y, Tracer) or not hasattr(y, "flags") else y.copy()
    if not -y.ndim <= axis < y.ndim:
        raise ValueError(
            f"vmap cannot put the mapped axis at {axis} of a result with {y.ndim} axes{at_line(user_line())}"
        )
    return moveaxis(y, 0, axis) if axis else y
