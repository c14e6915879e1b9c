"""Checking derivative rules: what they return, and that they leave alone what they are given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..base import tree
from ..base.foreign import Said
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..core.program import literal
from ..core.trace import Tracer
from ..core.types import ArrayType, is_complex, is_inexact, type_of
from ..numpy.promotion import asarray, cast
from ..run.places import JAX, JAX_TRACE, TRACE, place_of_argument
from .call import name_of, type_name

Function = Callable[..., Any]


def called(what: str, f: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Call a function of the user's, and raise if it changes its arguments."""
    before, structures = _taken_apart(args, kwargs)
    atoms = [x.atom if type(x) is Tracer else None for x in before]
    try:
        out = f(*args, **kwargs)
    except ValueError as error:
        if Said.READ_ONLY in str(error) and any(is_plain(x, np.ndarray) for x in before):
            raise _changed(what, "an array that it is given") from error
        raise
    except TypeError as error:
        if _takes(f, args, kwargs):
            raise
        raise TypeError(
            f"{what} is called with {len(args)} argument{'s' * (len(args) != 1)}, but {error}{here()}"
        ) from None
    after, structures_after = _taken_apart(args, kwargs)
    if structures_after != structures or any(x is not y for x, y in zip(before, after, strict=True)):
        raise _changed(what, "a container that it is given")
    if any(type(x) is Tracer and x.atom is not atom for x, atom in zip(before, atoms, strict=True)):
        raise _changed(what, "an array that it is given")
    return out


def _taken_apart(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[list[Any], list[tree.Structure]]:
    """The leaves of arguments, and the structure of each."""
    leaves: list[Any] = []
    structures = []
    for x in (*args, *kwargs.values()):
        more, structure = tree.flatten(x)
        leaves += more
        structures.append(structure)
    return leaves, structures


def _takes(f: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a function can be called with such arguments, as far as can be seen."""
    try:
        signature = inspect.signature(f, follow_wrapped=False)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _changed(what: str, which: str) -> TypeError:
    return TypeError(
        f"{what} assigns to {which}; the caller's values must stay what they are, so change a copy: x = x.copy()"
        + here()
    )


def here() -> str:
    """The end of an error message: the line of the user's code that runs."""
    return at_line(user_line())


def described(kind: str, f: Function, rule: Function) -> str:
    code = getattr(inspect.unwrap(rule), "__code__", None)
    place = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    return f"the {kind} of {name_of(f)}{place}"


def pair_of(out: Any, what: str, pair: str) -> tuple[Any, Any]:
    if not isinstance(out, tuple) or len(out) != 2:
        raise TypeError(f"{what} must return a pair {pair}, but it returned {shown_value(out)}{here()}")
    return out


def arrays_of(out: Any, what: str) -> tuple[list[Tracer], tree.Structure]:
    """The leaves of a result, as tracers."""
    leaves, structure = tree.flatten(out)
    tracers = []
    for index, x in enumerate(leaves):
        try:
            tracers.append(asarray(x))
        except TypeError:
            raise TypeError(
                f"{what} returned {type_name(x)} at result{tree.paths(out)[index]}, which is not an array{here()}"
            ) from None
    return tracers, structure


def matched(given: Any, structure: tree.Structure, what: str, like: str) -> list[Any]:
    """One entry per leaf of a structure, where None may stand for any part of it."""
    leaves = tree.flatten(given)[0]
    if structure is tree.LEAF and len(leaves) == 1 and leaves[0] is given:
        return leaves
    like_it = tree.unflatten(structure, range(structure.num_leaves))
    try:
        pairs = zip(tree.broadcast_prefix(given, like_it), tree.broadcast_prefix(like_it, like_it), strict=True)
        entries = [x for x, leaf in pairs if leaf is not None]
    except ValueError:
        entries = []
    # An array stands for a leaf, not for a container.
    if len(entries) != structure.num_leaves or sum(x is not None for x in entries) != len(leaves):
        given_structure = tree.flatten(given)[1]
        raise TypeError(
            f"{what} of another structure than {like}: {shown(given_structure)}, not {shown(structure)}; None stands "
            f"for zero{here()}"
        )
    return entries


def fitted(x: Any, type: ArrayType, weak: bool, what: str, where: Callable[[int], str], index: int) -> Tracer:
    """What a rule returned, as a tracer of the type that it must have; None is zero.  `where(index)` is its place."""

    def misfit(returned: str, advice: str = "") -> TypeError:
        return TypeError(f"{what} returned {returned} {where(index)} {type}{advice}{here()}")

    if x is None or (not isinstance(x, Tracer) and _is_zero(x, type)):
        return _tracer_of_zero(type)
    try:
        y = asarray(x)
    except TypeError:
        raise misfit(type_name(x)) from None
    if y.type is type:
        return y
    if y.shape != type.shape:
        raise misfit(str(y.type), "; the shapes must agree")
    fits_kind = is_inexact(type.dtype) == is_inexact(y.dtype) and (is_complex(type.dtype) or not is_complex(y.dtype))
    is_number = y.weak and is_inexact(type.dtype) and not is_complex(y.dtype)
    if is_number or (fits_kind and (weak or y.weak)):
        return cast(y, type.dtype)
    raise misfit(str(y.type), f"; convert it with .astype(np.{type.dtype.name})" if fits_kind else "")


def _tracer_of_zero(type: ArrayType) -> Tracer:
    zero = asarray(0.0)
    return Tracer(zero.builder, literal(0, type))


def _is_zero(x: Any, type: ArrayType) -> bool:
    """Whether a concrete value is zero in every element, and may stand for zeros of a type."""
    return np.shape(x) in ((), type.shape) and place_of_argument(x) not in (JAX, JAX_TRACE, TRACE) and not np.any(x)


def shown(structure: tree.Structure) -> str:
    if structure is tree.LEAF:
        return "an array"
    return str(structure).removeprefix("PyTreeSpec(").split(", namespace=")[0].removesuffix(")")


def shown_value(x: Any) -> str:
    try:
        return str(type_of(x))
    except TypeError:
        return f"a {type(x).__name__} of {len(x)}" if isinstance(x, tuple | list) else type_name(x)
