"""The update of an optax transformation: JAX code as a part of programs, which JAX differentiates."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...api.call import name_of, require_scalar, trace_flat, type_name
from ...base import tree
from ...base.cell import Holder, concrete
from ...base.foreign import Said
from ...base.source import at_line, user_line
from ...control.rules.jax_code import JaxCode, default_types, ignores
from ...core.program import Program
from ...core.trace import NoWitness
from ...core.types import type_of
from ...run.jax_operation import JaxOperation
from ..cells.kinds import Parameter, RngState
from ..modules.calls import call_filled, settled
from ..modules.graph import graph_of
from ..modules.module import Module
from ..transformations.traces import require_untraced

_WHAT = "an optimizer of optax"


def adam(asked_by: str) -> Callable[[float], Any]:
    """optax's Adam as a function of its learning rate, for those who name no optimizer.

    Args:
        asked_by: what needs it, for the error.

    Raises:
        ImportError: optax is not installed.
    """
    try:
        import optax
    except ImportError:
        raise ImportError(
            f"the default optimizer of {asked_by} is optax's, and optax is not installed: pip install 'ftrans[nn]', or "
            f"give an optimizer of nn.optim{at_line(user_line())}"
        ) from None
    return optax.adam


def made(given: Any) -> tuple[Callable[[], Any] | None, Any]:
    """A function that makes a transformation, or None, and the transformation."""
    if not callable(given) or hasattr(given, "update"):
        return None, given
    try:
        return given, given()
    except TypeError as error:
        raise TypeError(
            f"Optimizer takes a gradient transformation of optax, such as optax.adam(1e-3), or a function without "
            f"arguments that makes one; {name_of(given)} takes some ({error}){at_line(user_line())}"
        ) from None


@functools.lru_cache(maxsize=32)
def update_of(transformation: Any, paths: tuple[str, ...], structure: Any) -> Update:
    """The update, shared by equal optimizers, so that a compiled step serves all of them."""
    return Update(transformation, paths, structure)


class Update:
    """The update of a transformation as functions of lists of arrays.

    Attributes:
        make: a function that makes the transformation, or None if there is none.
    """

    def __init__(self, transformation: Any, paths: tuple[str, ...], structure: Any) -> None:
        self.make: Callable[[], Any] | None = None
        self._transformation = transformation
        self._paths = paths
        self._structure = structure
        self._codes: dict[tuple[str, ...], JaxCode] = {}
        # The first state as a function of the parameters.
        self.first = JaxCode(_WHAT, self._first, is_differentiable=True)
        # Names of further arguments that the transformation is known to look at.
        self._taken: set[str] = set()

    def __deepcopy__(self, memo: dict[int, Any]) -> Update:
        return self

    def code(self, extra: tuple[str, ...]) -> JaxCode:
        """The update as a function of gradients, state, parameters, and the arguments named in `extra`."""
        found = self._codes.get(extra)
        if found is None:
            found = self._codes[extra] = JaxCode(
                _WHAT, lambda *arrays: self._new(arrays, extra), is_differentiable=True
            )
        return found

    def code_with(self, objective: Program, extra: tuple[str, ...]) -> JaxCode:
        """The same, with an objective whose inputs are the parameters, then further arguments of the update."""

        def make() -> JaxCode:
            return JaxCode(_WHAT, lambda *arrays: self._new(arrays, extra, objective), is_differentiable=True)

        return objective.derive(("update", self, extra), make)

    def _first(self, *parameters: Any) -> list[Any]:
        with default_types(parameters):
            state = self._transformation.init(dict(zip(self._paths, parameters, strict=True)))
            return list(self._structure.flatten_up_to(state))

    def _new(self, arrays: tuple[Any, ...], extra: tuple[str, ...], objective: Program | None = None) -> list[Any]:
        import optax

        count, states = len(self._paths), self._structure.num_leaves
        gradients = dict(zip(self._paths, arrays[:count], strict=True))
        state = self._structure.unflatten(arrays[count : count + states])
        parameters = dict(zip(self._paths, arrays[count + states : 2 * count + states], strict=True))
        start = 2 * count + states
        more = dict(zip(extra, arrays[start : start + len(extra)], strict=True))
        if objective is not None:
            function, captured = JaxOperation(objective), arrays[start + len(extra) :]
            more |= {
                "grad": gradients,
                "value_fn": lambda parameters: function(*[parameters[path] for path in self._paths], *captured)[0],
            }
        transformation = optax.with_extra_args_support(self._transformation)
        # Values that the objective captures do not influence the types of the update.
        with default_types(arrays[: start + len(extra)]):
            self._require_taken(transformation.update, (gradients, state, parameters), more)
            updates, state = transformation.update(gradients, state, parameters, **more)
            new = optax.apply_updates(parameters, updates)
        old_leaves = arrays[count : count + states]
        leaves = [y.astype(x.dtype) for x, y in zip(old_leaves, self._structure.flatten_up_to(state), strict=True)]
        return [*(new[path] for path in self._paths), *leaves]

    def _require_taken(self, update: Callable[..., Any], args: tuple[Any, ...], more: dict[str, Any]) -> None:
        """Raise for a further argument that the transformation ignores.

        Most transformations of optax take arguments of any name and pass them on.
        """
        known = {"value", "grad", "value_fn", *inspect.signature(update).parameters, *self._taken}
        for name in more.keys() - known:
            if ignores(update, args, more, name):
                raise TypeError(
                    f"this transformation of optax takes no {name}=; hyperparameters are set where it is made, and "
                    "with optax.inject_hyperparams they are in optimizer.state, where they may be changed"
                    + at_line(user_line())
                )
            self._taken.add(name)


def traced_objective(
    model: Module, f: Callable[[Any], Any], parameters: Sequence[Parameter]
) -> tuple[Program, list[Any]]:
    """A function of a model as a program of its parameters and of the other values that it reads; and those values."""
    graph = graph_of(model)
    place_of = {id(cell): i for i, cell in enumerate(graph.cells)}
    places = [place_of[id(p)] for p in parameters]

    def rebuild(tracers: list[Any]) -> Any:
        out, changed = call_filled(graph, dict(zip(places, tracers, strict=True)), lambda: settled(f(model)))
        require_untraced(graph)
        streams = [graph.paths[i] for i in changed if isinstance(graph.cells[i], RngState)]
        if streams:
            raise RuntimeError(
                f"value_fn draws random numbers from {', '.join(streams)}, so a line search would compare "
                f"losses of different draws; call model.eval() for such an optimizer{at_line(user_line())}"
            )
        return out

    none = NoWitness("an optimizer evaluates value_fn for many parameters, so a branch inside it has no single value")
    traced, _ = trace_flat(f, [type_of(p) for p in parameters], rebuild, [none] * len(parameters))
    if traced.structure != tree.LEAF:
        raise TypeError(
            f"value_fn must return only the loss, a scalar, which {name_of(f)} does not{at_line(user_line())}"
        )
    require_scalar(traced.program, f, "value_fn", "np.sum or np.mean")
    if not _depends(traced.program, len(parameters)):
        raise TypeError(
            f"the result of value_fn does not depend on the parameters, so a line search sees a constant; "
            f"{name_of(f)} must compute the loss of the model that it is given, value_fn=lambda model: loss_of(model)"
            + at_line(user_line())
        )
    return traced.program, [*map(concrete, traced.captured)]


def _depends(program: Program, count: int) -> bool:
    """Whether the first output of a program depends on one of its first inputs."""
    found: set[Any] = set(program.inputs[:count])
    for eqn in program.eqns:
        if not found.isdisjoint(eqn.operands):
            found.update(eqn.outputs)
    return program.outputs[0] in found


class NeedsObjective(TypeError):
    """The error for a step without the objective that a transformation evaluates."""


def missing_arguments(error: TypeError) -> TypeError | None:
    """The error for a missing argument of a transformation, which says where to give it; None for another error."""
    if Said.MISSING_KEYWORD not in str(error):
        return None
    names = [name for name in re.findall(r"'(\w+)'", str(error).partition("required ")[2]) if name != "grad"]
    given = ["value=loss", "value_fn=lambda model: loss_of(model, x, y)"]
    return (NeedsObjective if "value_fn" in names else TypeError)(
        f"this transformation of optax needs {' and '.join(names)} in addition to the gradients; write your own step "
        "with optimizer.step(gradients, "
        f"{', '.join(given if 'value_fn' in names else given[:1])}){at_line(user_line())}"
    )


def operand(name: str, x: Any, is_wide: bool) -> Any:
    """A further argument of the update as an array."""
    if isinstance(x, Holder):
        return x.concrete()
    if callable(x) or isinstance(x, Mapping):
        raise TypeError(
            f"{name}= of step is {type_name(x)}; it takes numbers and arrays. The function that it takes is value_fn=, "
            f"and grad= are the gradients themselves{at_line(user_line())}"
        )
    return x if hasattr(x, "dtype") else _number(x, is_wide)


def _number(x: Any, is_wide: bool) -> np.ndarray[Any, Any]:
    """A Python number as an array; if nothing else has 64 bits, in the default dtype of JAX."""
    array = np.asarray(x)
    return array if is_wide else array.astype({"f": np.float32, "i": np.int32}.get(array.dtype.kind, array.dtype))
