"""Named intermediate values: `tap` gives a value a name, and `value_and_grad(..., taps=True)` collects it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..base import tree
from ..base.source import at_line, user_line
from ..base.type_variables import Value
from ..control.rules.exposed import Place, expose
from ..control.rules.tap import tap as tap_primitive
from ..core.interpret import inline
from ..core.program import Program
from ..core.trace import Builder, Tracer, building, current_builder
from ..core.types import type_of
from ..numpy.promotion import asarray, is_weak
from ..ops.literals import full
from ..transforms.differentiate import linearize
from ..transforms.transpose import transpose
from .call import type_name


class Tap(NamedTuple):
    """A named intermediate value and its gradient.

    Attributes:
        value: the value.
        gradient: the derivative of the function's result with respect to it; None for integers and booleans.
    """

    value: Any
    gradient: Any


def tap(name: str, x: Value) -> Value:
    """Give an intermediate value a name, by which `value_and_grad(f, taps=True)` collects its value and gradient.

    A tap does not change the result of any transformation, and costs nothing unless values are collected.  In the body
    of a `scan` or `map`, the values of all steps are collected, along a leading axis; under `vmap`, those of the whole
    batch.  In a branch of `cond` that is not taken, value and gradient are zeros.  If only some elements of a batch
    take the branch, the others have the value of one that does, and the gradient zero.  `checkpoint` accepts the names
    as a policy.

    Use the return value of `tap`: the gradient is taken with respect to it.  A derivative or a `jit` inside the
    function can drop a tap that no result depends on.  Taps in custom derivative rules, and those that an inner
    `value_and_grad(..., taps=True)` collects, are not collected outside.

    Args:
        name: the name, unique within a function.
        x: array, number, or a container of them.

    Returns:
        The same value.

    Raises:
        TypeError: the name is not a string, or `x` holds something that is not an array.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> f = lambda x: 3 * ft.tap("square", x**2)
        >>> (value, taps), gradient = ft.value_and_grad(f, taps=True)(2.0)
        >>> taps["square"]
        Tap(value=np.float64(4.0), gradient=np.float64(3.0))
    """
    if not isinstance(name, str):
        raise TypeError(
            f"the name of a tap must be a string, not {type_name(name)}: write tap(name, x){at_line(user_line())}"
        )
    if current_builder() is None:
        return x
    leaves, structure = tree.flatten(x)
    return tree.unflatten(structure, [_tapped(name, x, i, leaf, structure) for i, leaf in enumerate(leaves)])


def _tapped(name: str, container: Any, index: int, x: Any, structure: tree.Structure) -> Any:
    try:
        tracer = asarray(x)
    except TypeError:
        raise TypeError(
            f"the tap {name!r} takes arrays, numbers and containers of them, but x{tree.paths(container)[index]} is "
            f"{type_name(x)}{at_line(user_line())}"
        ) from None
    named = tap_primitive(tracer, name=name, leaf=index, structure=structure)
    named.weak = is_weak(x)
    # Python may need a plain integer, for a size or an index.
    return named if isinstance(x, Tracer) or type_of(x).dtype.kind in "fc" else x


class TappedGradient(NamedTuple):
    """The program for the results of a function, its gradients, and the values and gradients of its taps.

    Attributes:
        program: takes what the function does; returns its results, the values of taps, gradients with respect to the
            active inputs, then gradients with respect to the taps that have one.
        places: the taps.
    """

    program: Program
    places: tuple[Place, ...]


def gradient_with_taps(program: Program, active: tuple[bool, ...]) -> TappedGradient:
    """The gradient of the first output, a scalar, with respect to the active inputs and to every tap."""
    return program.derive(("gradient with taps", active), lambda: _gradient_with_taps(program, active))


def _gradient_with_taps(program: Program, active: tuple[bool, ...]) -> TappedGradient:
    exposed, places = expose(program)
    _require_distinct(places)
    shift_types = [place.type for place in places if place.is_differentiable]
    parts = linearize(exposed, (*active, *(True for _ in shift_types)))
    wrt = [*(t for t, a in zip(program.in_types, active, strict=True) if a), *shift_types]
    builder = Builder(program.in_types)
    with building(builder):
        # Adding -0.0 changes nothing, not even the sign of a zero.
        shifts = [full(t.shape, -0.0, t.dtype) for t in shift_types]
        results = inline(parts.values, [*builder.inputs(), *shifts])
        count = len(exposed.outputs)
        gradients: list[Tracer | None] = [None] * len(wrt)
        if parts.out_active[0]:
            linear = (False,) * parts.residual_count + (True,) * len(wrt)
            turned = transpose(parts.linear, linear, (True, *(False,) * (parts.out_active.count(True) - 1)))
            one = full((), 1.0, exposed.out_types[0].dtype)
            pulled = iter(inline(turned.program, [*results[count:], one]))
            gradients = [next(pulled) if a else None for a in turned.in_active]
        filled = [full(t.shape, 0, t.dtype) if g is None else g for t, g in zip(wrt, gradients, strict=True)]
        return TappedGradient(builder.finish([*results[:count], *filled], f"grad({program.name})"), places)


def _require_distinct(places: Sequence[Place]) -> None:
    first: dict[tuple[str, int], Place] = {}
    for place in places:
        key = (place.name, place.leaf)
        if key in first:
            raise ValueError(
                f"the name {place.name!r} is used by two taps in one function, or its line runs twice; give each value "
                "a name of its own: in a Python loop include the iteration number in it, and let a function "
                f"that is called more than once take it as an argument{at_line(first[key].line)}{at_line(place.line)}"
            )
        first[key] = place


def collect(places: Sequence[Place], values: Sequence[Any], gradients: Sequence[Any]) -> dict[str, Tap]:
    """The taps by name, put together from the values of all places and the gradients of those that have one."""
    remaining = iter(gradients)
    leaves: dict[str, list[tuple[Place, Any, Any]]] = {}
    for place, value in zip(places, values, strict=True):
        gradient = next(remaining) if place.is_differentiable else None
        leaves.setdefault(place.name, []).append((place, value, gradient))
    return {name: _collected(name, found) for name, found in leaves.items()}


def _collected(name: str, found: list[tuple[Place, Any, Any]]) -> Tap:
    structure = found[0][0].structure
    found.sort(key=lambda leaf: leaf[0].leaf)
    if len(found) != structure.num_leaves:
        raise ValueError(
            f"a transformation inside the function has dropped a part of the tap {name!r} that nothing uses; tap "
            f"what is used alone, or collect inside{at_line(found[0][0].line)}"
        )
    values, gradients = ([leaf[i] for leaf in found] for i in (1, 2))
    return Tap(tree.unflatten(structure, values), tree.unflatten(structure, gradients))
