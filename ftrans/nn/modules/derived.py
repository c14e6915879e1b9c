"""Automatic derivatives of the forward code of a module that defines its own `backward`.

They are what `ctx.vjp()` returns for `backward` to edit, and replace gradients that `backward` leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...api.call import type_name
from ...api.derivatives import vjp
from ...api.rule_checks import matched
from ...autograd.context import Context, Wanted, place_of
from ...base import tree
from ...base.cell import Eager, read
from ...base.source import at_line, user_line
from ...control.rules.black_box import Code, black_box
from ...core.trace import Tracer, current_builder
from ...core.types import ArrayType, is_complex, is_inexact, type_of
from ..cells.kinds import Parameter
from .bare import BareModule
from .graph import Graph


class Rule(NamedTuple):
    """How a module computes its result and its gradients.

    These are functions of the module, a context, and the arguments of `forward` or `backward`; and the user's methods,
    for messages.
    """

    name: str
    forward: Callable[..., Any]
    backward: Callable[..., Any]
    forward_method: Callable[..., Any]
    backward_method: Callable[..., Any]

    @property
    def described(self) -> str:
        """The backward half, with its line, for messages."""
        return f"{self.name}.backward{place_of(self.backward_method)}"


class ModuleContext(Context):
    """Values that `forward` of a module saves for its `backward`, as in a `Function`; and the derivative to edit.

    Attributes:
        needs_input_grad: for each argument of `forward`, whether its gradient may be needed.
    """

    def __init__(self, needs_input_grad: tuple[bool, ...], derived: Derived | None = None) -> None:
        super().__init__(needs_input_grad)
        self._derived = derived

    def vjp(self, *grad_outputs: Any) -> tuple[Any, dict[str, Any]]:
        """The gradients by automatic differentiation of `forward`, for `backward` to edit.

        For that, `forward` is traced, and computed once more unless the program is compiled.

        Args:
            grad_outputs: a gradient for each result; by default those that `backward` was given.

        Returns:
            `(grad_input, gradients)`: the gradient of the argument of `forward`, a tuple if there are several; and a
            dictionary of the gradients of parameters by path, such as `"weight"`.

        Raises:
            RuntimeError: `forward` cannot be traced, or this is not called from `backward`.
        """
        if self._derived is None:
            raise RuntimeError(
                "ctx.vjp() returns the gradients for backward to edit; call it in backward, not in "
                f"forward{at_line(user_line())}"
            )
        return self._derived.edited(grad_outputs)

    def left(self) -> dict[str, Any]:
        return {name: x for name, x in super().left().items() if name != "_derived"}


class Operation(Protocol):
    """What the derivative needs of a module as an operation with a rule."""

    rule: Rule
    # Code that says that a gradient is not known, by the cell and its type.
    refusals: dict[Any, Code]

    def call_filled(self, arrays: Sequence[Any], f: Callable[[BareModule], Any]) -> tuple[Any, dict[int, Any]]:
        """Call a function of the module while its cells hold other arrays; return the result, and changes of cells."""


class _Named:
    """A rule as messages about gradients name it."""

    def __init__(self, rule: Rule) -> None:
        self.__name__ = rule.name
        self.backward = rule.backward_method


class Derived:
    """Automatic derivatives of the forward code, for one call of `backward`.

    Args:
        operation: the operation.
        module: the module that the forward code runs on.
        graph: its cells.
        operands: keyword arguments, arrays of the cells, arguments.
        cotangent: gradient of the result.
    """

    def __init__(self, operation: Operation, module: BareModule, graph: Graph, operands: Any, cotangent: Any) -> None:
        self._operation = operation
        self._module = module
        self._graph = graph
        self._operands = operands
        self._cotangent = cotangent
        kwargs, cells, args = operands
        self._flat = [tree.flatten(kwargs), *(([x], tree.LEAF) for x in cells), *map(tree.flatten, args)]
        self._leaves = [x for leaves, _ in self._flat for x in leaves]
        self._types = Wanted(_Named(operation.rule), self._flat).types
        self._first_of_cells = len(self._flat[0][0])
        self.first_of_arguments = self._first_of_cells + len(cells)
        self._known: dict[int, Any] = {}

    def place_of_cell(self, index: int) -> int:
        """The place of a cell among the leaves."""
        return self._first_of_cells + index

    def edited(self, grad_outputs: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
        """What `ctx.vjp` returns."""
        parameters = {
            path: self.place_of_cell(i)
            for i, (path, cell) in enumerate(zip(self._graph.paths, self._graph.cells, strict=True))
            if isinstance(cell, Parameter) and is_inexact(cell.dtype)
        }
        arguments = range(self.first_of_arguments, len(self._leaves))
        places = [*parameters.values(), *(i for i in arguments if self._types[i] is not None)]
        if grad_outputs:
            is_tuple = isinstance(self._cotangent, tuple | list)
            found = self._pulled(places, type(self._cotangent)(grad_outputs) if is_tuple else grad_outputs[0])
        else:
            found = self._of(places)
        gradients = self._together([found.get(i) for i in range(len(self._leaves))])[1 + len(self._graph.cells) :]
        return gradients[0] if len(gradients) == 1 else gradients, {path: found[i] for path, i in parameters.items()}

    def by_place(self, gradients: Sequence[Any]) -> dict[int, Any]:
        """Gradients of the arguments by the place of their leaves."""
        entries: list[Any] = []
        for i, (g, (_, structure)) in enumerate(zip(gradients, self._flat[-len(gradients) :], strict=True)):
            what = f"{self._operation.rule.described} gave a gradient"
            entries += [g] if structure is tree.LEAF else matched(g, structure, what, f"argument {i}")
        return dict(enumerate(entries, self.first_of_arguments))

    def completed(self, given: dict[int, Any], needs: Sequence[bool]) -> tuple[Any, ...]:
        """Gradients of all operands: those that were given, and automatic ones where one is missing and needed."""
        rule = self._operation.rule
        flags = [n for n, (leaves, _) in zip(needs, self._flat, strict=True) for _ in leaves]
        active = {i: t for i, (t, n) in enumerate(zip(self._types, flags, strict=True)) if t is not None and n}
        found = {i: _fitting(rule, given[i], t, self._name(i)) for i, t in active.items() if given.get(i) is not None}
        missing = [i for i in active if i not in found]
        try:
            found |= self._of(missing)
        except _NotDerived as error:
            found |= {i: self._refused(i, error) for i in missing}
        return self._together([found.get(i) for i in range(len(self._leaves))])

    def _name(self, place: int) -> str:
        """The name of a leaf in messages."""
        index = place - self._first_of_cells
        if 0 <= index < len(self._graph.paths):
            return self._graph.paths[index]
        place -= self.first_of_arguments
        for i, (leaves, _) in enumerate(self._flat[1 + len(self._graph.cells) :]):
            if 0 <= place < len(leaves):
                return f"argument {i}"
            place -= len(leaves)
        return "a keyword argument"

    def _together(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        remaining = iter(leaves)
        return tuple([tree.unflatten(s, [next(remaining) for _ in part]) for part, s in self._flat])

    def _of(self, places: Sequence[int]) -> dict[int, Any]:
        """Gradients of some leaves."""
        missing = [i for i in places if i not in self._known]
        if missing:
            self._known |= self._pulled(missing, self._cotangent)
        return {i: self._known[i] for i in places}

    def _pulled(self, places: Sequence[int], cotangent: Any) -> dict[int, Any]:
        rule = self._operation.rule
        cells = len(self._graph.cells)
        wanted: list[Any] = []

        def forward(*xs: Any) -> list[Any]:
            leaves = list(self._leaves)
            for i, x in zip(places, xs, strict=True):
                leaves[i] = x
            kwargs, *operands = self._together(leaves)
            ctx = ModuleContext((True,) * (len(operands) - cells))
            out, _ = self._operation.call_filled(
                operands[:cells], lambda _: rule.forward(self._module, ctx, *operands[cells:], **kwargs)
            )
            results, structure = tree.flatten(out)
            is_active = [_has_derivative(x) and not any(x is m for m in ctx._marked) for x in results]
            cts = matched(cotangent, structure, f"{rule.name}: a gradient", "the result")
            wanted[:] = [ct for ct, a in zip(cts, is_active, strict=True) if a]
            return [x for x, a in zip(results, is_active, strict=True) if a]

        forward.__name__ = rule.name
        try:
            out, pull = vjp(forward, *[self._leaves[i] for i in places])
        except Exception as error:
            if isinstance(error, NameError | ImportError):
                raise
            raise _NotDerived(_why(rule, error)) from error
        cts = [np.zeros(y.shape, y.dtype) if ct is None else ct for ct, y in zip(wanted, out, strict=True)]
        return dict(zip(places, pull(cts), strict=True))

    def _refused(self, place: int, error: _NotDerived) -> Any:
        """A stand-in for an unknown gradient, which raises when something uses it."""
        index, type, name = place - self._first_of_cells, self._types[place], self._name(place)
        assert type is not None
        cell = self._graph.cells[index] if 0 <= index < len(self._graph.cells) else None
        if current_builder() is None:
            if cell is not None and not (isinstance(cell, Parameter) and cell.requires_grad):
                # Of all gradients of a black box, those of buffers are hardly ever used.
                return np.full(type.shape, np.nan, type.dtype)
            raise _left_out(self._operation.rule, name, str(error)) from error
        key = (name, type)
        code = self._operation.refusals.get(key)
        if code is None:
            rule, reason = self._operation.rule, str(error)

            def refuse(*_: Any) -> Sequence[Any]:
                raise _left_out(rule, name, reason)

            code = self._operation.refusals[key] = Code(f"{rule.name}.backward", refuse, [type], reason)
        return black_box.apply(code, [x for x in tree.flatten(self._cotangent)[0] if isinstance(x, Tracer)])[0]


class _NotDerived(RuntimeError):
    """The forward code cannot be traced, so it has no automatic derivative."""


def _why(rule: Rule, error: Exception) -> str:
    first = str(error).partition("\n")[0]
    return (
        f"the gradient of {rule.name} cannot be derived, because {rule.name}.forward{place_of(rule.forward_method)} "
        f"cannot be traced: {type(error).__name__}: {first}"
    )


def _left_out(rule: Rule, name: str, reason: str) -> RuntimeError:
    what = "return its gradient" if "argument" in name else f"set self.{name}.grad = ..."
    return RuntimeError(
        f"{rule.described} leaves out the gradient of {name}, and {reason}\n"
        f"  {what} in backward (zeros if there is none), or write forward with functions of NumPy."
    )


def _fitting(rule: Rule, gradient: Any, type: ArrayType, name: str) -> Any:
    """A gradient that `backward` returned, checked against its operand; the number 0 means zeros."""
    g: Any = read(gradient)
    g = g if isinstance(g, Eager | Tracer) else np.asarray(g)[()]
    try:
        found: ArrayType | None = type_of(g)
    except TypeError:
        found = None
    if found is not None and found.shape == () != type.shape and not isinstance(g, Eager | Tracer) and not g:
        return np.zeros(type.shape, type.dtype)
    if found is None or found.shape != type.shape or (is_complex(found.dtype) and not is_complex(type.dtype)):
        raise RuntimeError(
            f"{rule.described} gave {found or type_name(gradient)} as the gradient of {name}, which is {type}; a "
            f"gradient must have the shape of its operand{at_line(user_line())}"
        )
    return g if found.dtype == type.dtype else g.astype(type.dtype)


def _has_derivative(x: Any) -> bool:
    return hasattr(x, "dtype") and is_inexact(x.dtype)
