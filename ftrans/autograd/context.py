"""Context: what the forward of a Function saves for its backward, and checks of what backward returns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..api.rule_checks import matched
from ..base import tree
from ..base.cell import Eager
from ..base.source import Line, at_line, user_line
from ..base.type_questions import is_plain
from ..core.types import ArrayType, is_complex, is_inexact, type_of

# What may be left on a context, and cannot hide a value that depends on the arguments.
CONSTANT = (str, bytes, type, slice, np.dtype)

# A subclass of `Function`.
FunctionClass = type[Any]


class Context:
    """What `forward` saves for `backward` and `jvp`: arrays, and any attributes that are set on it.

    Attributes:
        needs_input_grad: for each argument of `apply`, whether a gradient with respect to it may be needed.
    """

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._saved: tuple[Any, ...] = ()
        self._saved_for_forward: tuple[Any, ...] | None = None
        self._marked: tuple[Any, ...] = ()
        self._materializes = True

    if TYPE_CHECKING:
        # What `forward` sets on it.
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The arguments of `save_for_backward`; in `jvp`, those of `save_for_forward`, if that was called."""
        return self._saved

    def save_for_backward(self, *arrays: Any) -> None:
        """Save arrays (or None) for `backward`."""
        self._saved = arrays

    def save_for_forward(self, *arrays: Any) -> None:
        """Save arrays (or None) for `jvp`; also for `backward`, if nothing else is saved for that."""
        self._saved_for_forward = arrays
        self._saved = self._saved or arrays

    def mark_non_differentiable(self, *results: Any) -> None:
        """Mark results of `forward` as having no derivative."""
        self._marked = results

    def mark_dirty(self, *arrays: Any) -> NoReturn:
        """Raise an error, because `forward` may not change its arguments."""
        raise in_place_error("mark_dirty says that forward changes an argument")

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether `backward` is given zeros (the default) or None for results without an incoming gradient.

        Where a Function is traced, these are the results that have no derivative.
        """
        self._materializes = bool(value)

    def left(self) -> dict[str, Any]:
        """What was saved on it, attributes included."""
        names = ("needs_input_grad", "_saved_for_forward", "_marked", "_materializes")
        return {name: x for name, x in vars(self).items() if name not in names}

    def with_left(self, left: dict[str, Any]) -> Context:
        """A context for the same call with other saved values."""
        found = Context(self.needs_input_grad)
        vars(found).update(left)
        found._materializes = self._materializes
        return found

    def for_jvp(self) -> Context:
        """The context that `jvp` sees."""
        return (
            self
            if self._saved_for_forward is None
            else self.with_left(self.left() | {"_saved": self._saved_for_forward})
        )


def in_place_error(what: str) -> RuntimeError:
    """The error for a Function that changes what it is given."""
    return RuntimeError(
        f"{what} in place, but others may still use that; change a copy: y = x.copy(){at_line(user_line())}"
    )


def as_tuple(x: Any) -> tuple[Any, ...]:
    """What a function returned, as a tuple of its results."""
    return tuple(x) if isinstance(x, tuple | list) else (x,)


def place_of(method: Callable[..., Any]) -> str:
    """Where a function is defined: ` (file:line)`."""
    code = getattr(inspect.unwrap(method), "__code__", None)
    return f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""


class Wanted:
    """The gradients that `backward` must return: one for each argument, like the argument.

    Args:
        function: the Function.
        flat: the leaves and the structure of each argument of `apply`.

    Attributes:
        types: for each leaf of the arguments, its type; None if it has no gradient.
    """

    def __init__(self, function: Any, flat: Sequence[tuple[Sequence[Any], tree.Structure]]) -> None:
        self._name = function.__name__
        self._backward = function.backward
        self._structures = [structure for _, structure in flat]
        self.types: list[ArrayType | None] = [_type_of_gradient(x) for leaves, _ in flat for x in leaves]

    def rebuilt(self, leaves: Iterator[Any]) -> tuple[Any, ...]:
        """The arguments, with other leaves."""
        return tuple([tree.unflatten(s, [next(leaves) for _ in range(s.num_leaves)]) for s in self._structures])

    def checked(self, found: Any, wanted: Sequence[bool], line: Line | None) -> list[Any]:
        """What `backward` returned for the leaves flagged in `wanted`: a tensor or an array of its shape, or None.

        Args:
            found: what it returned.
            wanted: flags for the leaves.
            line: the line of `apply`.

        Raises:
            RuntimeError: the number of gradients, or the shape or kind of one, is wrong.
        """
        what = f"{self._name}.backward{place_of(self._backward)}"
        gradients = as_tuple(found)
        count = len(self._structures)
        if len(gradients) < count or any(g is not None for g in gradients[count:]):
            raise RuntimeError(
                f"{what} returned {len(gradients)} gradient{'s' * (len(gradients) != 1)}, but forward was given "
                f"{count} argument{'s' * (count != 1)}; return one for each of them, None where there is none"
                + at_line(line)
            )
        entries: list[Any] = []
        for position, (g, structure) in enumerate(zip(gradients, self._structures, strict=False)):
            where = f"argument {position}"
            entries += [g] if structure is tree.LEAF else matched(g, structure, f"{what} returned a gradient", where)
        rows = zip(entries, self.types, wanted, strict=True)
        return [self._fitting(g, t, i, what, line) for i, (g, t, w) in enumerate(rows) if w]

    def _fitting(self, gradient: Any, type: ArrayType | None, leaf: int, what: str, line: Line | None) -> Any:
        if gradient is None or type is None:
            return None
        x: Any = gradient if isinstance(gradient, Eager) else np.asarray(gradient)[()]
        try:
            given = type_of(x)
        except TypeError:
            given = None
        if given is not None and given.shape == () and type.shape != () and not isinstance(x, Eager) and not x:
            return None
        if given is None or given.shape != type.shape or (is_complex(given.dtype) and not is_complex(type.dtype)):
            shown = given if given is not None else f"an object of type {gradient.__class__.__name__}"
            raise RuntimeError(
                f"{what} returned {shown} as the gradient of {self._leaf_name(leaf)}, which is {type}; a gradient has "
                f"the shape of its argument{at_line(line)}"
            )
        return x if given.dtype == type.dtype else x.astype(type.dtype)

    def _leaf_name(self, leaf: int) -> str:
        for position, structure in enumerate(self._structures):
            if leaf < structure.num_leaves:
                inside = (
                    ""
                    if structure is tree.LEAF
                    else tree.paths(tree.unflatten(structure, range(structure.num_leaves)))[leaf]
                )
                return f"argument {position}{inside}"
            leaf -= structure.num_leaves
        raise IndexError(leaf)


def _type_of_gradient(x: Any) -> ArrayType | None:
    if is_plain(x, int | float | complex) and not is_plain(x, np.generic):
        return None
    try:
        found = type_of(x)
    except TypeError:
        return None
    return found if is_inexact(found.dtype) else None
