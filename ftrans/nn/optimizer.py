"""Optimizer: a gradient transformation of optax, its state in buffers, and the model whose parameters it updates."""

from __future__ import annotations

import functools
import inspect
import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..api.call import name_of, record_or_run, require_scalar, trace_flat, type_name
from ..base import tree
from ..base.cell import Holder, concrete, read
from ..base.foreign import Said
from ..base.pickles import is_plain_pickle
from ..base.source import at_line, user_line
from ..control.rules.jax_code import JaxCode, call_jax, default_types, ignores
from ..core.program import Program
from ..core.trace import NoWitness, current_builder
from ..core.types import type_of
from ..run.jax_operation import JaxOperation
from ..xla import jax_leaves
from .calls import call_filled, settled
from .cells import Buffer, Cells, Parameter, RngState
from .graph import graph_of
from .module import Module
from .placing import placement_beside
from .roots import require_module
from .traces import require_untraced


class Optimizer(Module):
    """Updates the parameters of a model by a gradient transformation of optax.

    It is itself a module, so that a compiled training step takes it beside the model.  Its state is in buffers.  For a
    model on a mesh of devices (`nn.shard`), what belongs to a parameter is computed where the parameter is, and stays
    there.

    Transformations that take modules as containers of arrays, such as `jax.jit` and `ft.scan`, make a module of each
    argument.  Give these the optimizer alone, and use its model there, `optimizer.model`.

    Args:
        model: the model.  Parameters that have `requires_grad` set at this point are updated.
        transformation: a gradient transformation of optax, such as `optax.adam(1e-3)`, or several, combined by
            `optax.chain`; clipping, schedules and gradient accumulation are available there.  Optax makes it of local
            functions, which cannot be pickled: an optimizer that is to be pickled takes a function without arguments
            that returns it, such as `functools.partial(optax.adam, 1e-3)`.

    Raises:
        TypeError: `model` is not a module, or `transformation` is not from optax.
        ValueError: the model has no parameter to train.

    Example:
        >>> import numpy as np, optax
        >>> from ftrans import nn
        >>> model = nn.Linear(2, 1)
        >>> optimizer = nn.Optimizer(model, optax.sgd(0.1))
        >>> @nn.jit
        ... def step(model, optimizer, x, y):
        ...     loss, gradients = nn.value_and_grad(lambda model: ((model(x) - y) ** 2).mean())(model)
        ...     optimizer.step(gradients)
        ...     return loss
        >>> x, y = np.eye(2, dtype=np.float32), np.ones((2, 1), np.float32)
        >>> losses = [step(model, optimizer, x, y) for _ in range(50)]
        >>> bool(losses[-1] < 0.1 * losses[0])
        True
    """

    _borrowed = ("model",)

    def __init__(self, model: Module, transformation: Any) -> None:
        make, transformation = _made(transformation)
        if not (callable(getattr(transformation, "init", None)) and callable(getattr(transformation, "update", None))):
            raise TypeError(
                f"Optimizer takes a gradient transformation of optax, such as optax.adam(1e-3), not "
                f"{type(transformation).__name__}{at_line(user_line())}"
            )
        require_module(model, "Optimizer takes")
        self.model = model
        self.transformation = transformation
        trained = graph_of(model).trained_parameters()
        self.paths = tuple(trained)
        if not self.paths:
            raise ValueError(f"the model has no parameter with requires_grad=True to optimize{at_line(user_line())}")
        values = {path: p.array for path, p in trained.items()}
        names, leaves, structure = jax_leaves(transformation.init, values, placement_beside(trained))
        self.state = Cells({name: Buffer(x) for name, x in zip(names, leaves, strict=True)})
        self._update = _update_of(transformation, self.paths, structure)
        self._update.make = self._update.make or make

    def step(
        self,
        gradients: Mapping[str, Any] | None = None,
        *,
        value_fn: Callable[[Any], Any] | None = None,
        **extra: Any,
    ) -> None:
        """Update the parameters and the state.

        Args:
            gradients: gradients by parameter path, as returned by `nn.value_and_grad`; by default those that `backward`
                has accumulated in the parameters.  A parameter without a gradient is not changed.
            value_fn: for a transformation with a line search, such as `optax.lbfgs()`: the loss as a function of the
                model, which the search evaluates at other parameters.  It is traced once and must not branch on values;
                its changes of buffers are discarded.
            extra: further arguments of the transformation, such as `value=loss`; numbers and arrays.

        Raises:
            TypeError: `gradients` is not a dictionary; the transformation requires a `value` or `value_fn` that is
                missing, or does not take an argument in `extra`; or `value_fn` does not return a real scalar that
                depends on the model.
            ValueError: there are no gradients, or a path is not that of an optimized parameter.
            RuntimeError: `value_fn` draws random numbers, so that the loss would differ in each call.

        Example:
            >>> import numpy as np, optax
            >>> from ftrans import nn
            >>> model = nn.Linear(2, 1)
            >>> optimizer = nn.Optimizer(model, optax.lbfgs())
            >>> def objective(model):
            ...     return ((model(np.eye(2, dtype=np.float32)) - 1) ** 2).mean()
            >>> for _ in range(5):
            ...     loss, gradients = nn.value_and_grad(objective)(model)
            ...     optimizer.step(gradients, value=loss, value_fn=objective)
            >>> bool(objective(model) < 1e-8)
            True
        """
        parameters = self._parameters()
        if gradients is None:
            gradients = {path: p.grad for path, p in parameters.items() if p.grad is not None}
            if not gradients:
                raise ValueError(
                    "step() without gradients uses those of backward(), but there are none in the parameters; "
                    f"call loss.backward() first, or write step(gradients){at_line(user_line())}"
                )
        if callable(gradients):
            raise TypeError(
                "step takes gradients, not a function that computes the loss; for a line search write "
                f"optimizer.step(gradients, value=loss, value_fn=lambda model: ...){at_line(user_line())}"
            )
        if not isinstance(gradients, Mapping):
            raise TypeError(
                "step takes a dictionary of gradients by parameter path, the second result of "
                f"nn.value_and_grad, but the argument is {type_name(gradients)}{at_line(user_line())}"
            )
        unknown = [path for path in gradients if path not in parameters]
        if unknown:
            raise ValueError(
                f"step was given gradients for {', '.join(unknown)}, which this optimizer does not update; it updates "
                f"{', '.join(self.paths)}. Make a new Optimizer where parameters were added or unfrozen since"
                + at_line(user_line())
            )
        arrays = [_gradient(path, gradients.get(path), p) for path, p in parameters.items()]
        cells = [*parameters.values(), *self.state.values()]
        # Without a trace, arrays stay where they are; in one, a cell knows whether it was given.
        held = [cell.array if current_builder() is None else cell.read() for cell in cells]
        values, states = held[: len(parameters)], held[len(parameters) :]
        is_wide = any([p.dtype.itemsize >= 8 for p in parameters.values()])
        more = [_operand(name, x, is_wide) for name, x in extra.items()]
        captured: list[Any] = []
        if value_fn is None:
            code = self._update.code(tuple(extra))
        else:
            objective, captured = traced_objective(self.model, value_fn, [*parameters.values()])
            code = self._update.code_with(objective, tuple(extra))
        operands = [*arrays, *states, *values, *more, *captured]
        try:
            results = record_or_run("the update of the optimizer", lambda xs: call_jax(*xs, code=code), operands)
        except TypeError as error:
            missing = _missing_arguments(error)
            if missing is None:
                raise
            raise missing from None
        for (path, cell), new in zip([*parameters.items(), *self.state.items()], results, strict=True):
            if path in gradients or not isinstance(cell, Parameter):
                cell.value = new

    def __reduce_ex__(self, protocol: Any) -> Any:
        if not is_plain_pickle():
            return super().__reduce_ex__(protocol)
        make = self._update.make
        if make is None:
            raise pickle.PicklingError(
                "an Optimizer pickles if it makes its transformation itself, since optax makes it of local functions; "
                "write Optimizer(model, functools.partial(optax.adam, 1e-3)) in place of Optimizer(model, "
                f"optax.adam(1e-3)), or pickle by cloudpickle{at_line(user_line())}"
            )
        state = {k: v for k, v in self.__getstate__().items() if k not in ("transformation", "_update")}
        return object.__new__, (type(self),), {**state, "make": make}

    def __setstate__(self, state: dict[str, Any]) -> None:
        make = state.pop("make", None)
        super().__setstate__(state)
        if make is not None:
            self.transformation = make()
            values = {path: p.array for path, p in self._parameters().items()}
            _, _, structure = jax_leaves(self.transformation.init, values)
            self._update = _update_of(self.transformation, self.paths, structure)
            self._update.make = make

    def zero_grad(self) -> None:
        """Clear the gradients that `backward` has accumulated in the parameters."""
        self.model.zero_grad()

    def _parameters(self) -> dict[str, Parameter]:
        found = dict(self.model.named_parameters())
        missing = [path for path in self.paths if path not in found]
        if missing:
            raise ValueError(
                f"the model no longer has the parameters {', '.join(missing)}; make a new Optimizer"
                + at_line(user_line())
            )
        return {path: found[path] for path in self.paths}

    def extra_repr(self) -> str:
        return f"{len(self.paths)} parameters"


def _made(given: Any) -> tuple[Callable[[], Any] | None, Any]:
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
def _update_of(transformation: Any, paths: tuple[str, ...], structure: Any) -> _Update:
    """The update, shared by equal optimizers, so that a compiled step serves all of them."""
    return _Update(transformation, paths, structure)


class _Update:
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
        # Names of further arguments that the transformation is known to look at.
        self._taken: set[str] = set()

    def __deepcopy__(self, memo: dict[int, Any]) -> _Update:
        return self

    def code(self, extra: tuple[str, ...]) -> JaxCode:
        """The update as a function of gradients, state, parameters, and the arguments named in `extra`."""
        found = self._codes.get(extra)
        if found is None:
            found = self._codes[extra] = JaxCode("an optimizer of optax", lambda *arrays: self._new(arrays, extra))
        return found

    def code_with(self, objective: Program, extra: tuple[str, ...]) -> JaxCode:
        """The same, with an objective whose inputs are the parameters, then further arguments of the update."""

        def make() -> JaxCode:
            return JaxCode("an optimizer of optax", lambda *arrays: self._new(arrays, extra, objective))

        return objective.derive(("update", self, extra), make)

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


def _missing_arguments(error: TypeError) -> TypeError | None:
    """The error for a missing argument of a transformation, which says where to give it; None for another error."""
    if Said.MISSING_KEYWORD not in str(error):
        return None
    names = [name for name in re.findall(r"'(\w+)'", str(error).partition("required ")[2]) if name != "grad"]
    given = ["value=loss", "value_fn=lambda model: loss_of(model, x, y)"]
    return TypeError(
        f"this transformation of optax needs {' and '.join(names)} in addition to the gradients; write your own step "
        "with optimizer.step(gradients, "
        f"{', '.join(given if 'value_fn' in names else given[:1])}){at_line(user_line())}"
    )


def _operand(name: str, x: Any, is_wide: bool) -> Any:
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


def _gradient(path: str, gradient: Any, parameter: Parameter) -> Any:
    if gradient is None:
        return np.zeros(parameter.shape, parameter.dtype)
    gradient = concrete(read(gradient))
    if tuple(np.shape(gradient)) != parameter.shape:
        raise ValueError(
            f"the gradient of {path} has shape {tuple(np.shape(gradient))}, but the parameter is {parameter.type}"
            + at_line(user_line())
        )
    if not hasattr(gradient, "dtype"):
        gradient = np.asarray(gradient)
    return gradient if gradient.dtype == parameter.dtype else gradient.astype(parameter.dtype)
