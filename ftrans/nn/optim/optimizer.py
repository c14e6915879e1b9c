"""Optimizer: a gradient transformation of optax, its state in buffers, and the model whose parameters it updates."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...api.call import record_or_run, type_name
from ...base.cell import concrete, read
from ...base.pickles import is_plain_pickle
from ...base.source import at_line, user_line
from ...control.rules.jax_code import call_jax
from ...core.trace import current_builder
from ...core.types import ArrayType
from ...xla import jax_leaves
from ..cells.kinds import Buffer, Cells, Parameter
from ..devices.placing import placement_beside
from ..modules.graph import graph_of
from ..modules.module import Module
from ..modules.roots import require_module
from .groups import require_initialized
from .optax_update import NeedsObjective, made, missing_arguments, operand, traced_objective, update_of

_WHAT = "the update of the optimizer"


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
        if isinstance(transformation, type) and issubclass(transformation, Optimizer):
            name = transformation.__name__
            raise TypeError(
                f"{name} is a class of optimizers; write nn.optim.{name}(model.parameters(), lr=1e-3) in place of it"
                + at_line(user_line())
            )
        make, transformation = made(transformation)
        if not (callable(getattr(transformation, "init", None)) and callable(getattr(transformation, "update", None))):
            raise TypeError(
                f"Optimizer takes a gradient transformation of optax, such as optax.adam(1e-3), not "
                f"{type(transformation).__name__}{at_line(user_line())}"
            )
        require_module(model, "Optimizer takes")
        self.model = model
        self.transformation = transformation
        trained = graph_of(model).trained_parameters()
        require_initialized(trained.values())
        self.paths = tuple(trained)
        if not self.paths:
            raise ValueError(f"the model has no parameter with requires_grad=True to optimize{at_line(user_line())}")
        values = {path: p.array for path, p in trained.items()}
        names, leaves, structure = jax_leaves(transformation.init, values, placement_beside(trained))
        self.state = Cells({name: Buffer(x) for name, x in zip(names, leaves, strict=True)})
        self._update = update_of(transformation, self.paths, structure)
        self._update.make = self._update.make or make

    def step(
        self,
        gradients: Mapping[str, Any] | None = None,
        *,
        value_fn: Callable[[Any], Any] | None = None,
        **extra: Any,
    ) -> Any:
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
        parameters = self.trained_parameters()
        found = self.gradients_for(gradients, parameters)
        arrays = [found.get(path, np.zeros(p.shape, p.dtype)) for path, p in parameters.items()]
        cells = [*parameters.values(), *self.state.values()]
        # Without a trace, arrays stay where they are; in one, a cell knows whether it was given.
        held = [cell.array if current_builder() is None else cell.read() for cell in cells]
        values, states = held[: len(parameters)], held[len(parameters) :]
        is_wide = any([p.dtype.itemsize >= 8 for p in parameters.values()])
        more = [operand(name, x, is_wide) for name, x in extra.items()]
        captured: list[Any] = []
        if value_fn is None:
            code = self._update.code(tuple(extra))
        else:
            objective, captured = traced_objective(self.model, value_fn, [*parameters.values()])
            code = self._update.code_with(objective, tuple(extra))
        operands = [*arrays, *states, *values, *more, *captured]
        try:
            results = record_or_run(_WHAT, lambda xs: call_jax(*xs, code=code), operands)
        except TypeError as error:
            missing = missing_arguments(error)
            if missing is None:
                raise
            raise missing from None
        for (path, cell), new in zip([*parameters.items(), *self.state.items()], results, strict=True):
            if path in found or not isinstance(cell, Parameter):
                cell.value = new

    def functional_step(
        self,
        parameters: Mapping[str, Any],
        gradients: Mapping[str, Any],
        state: Mapping[str, Any] | None = None,
        **extra: Any,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The parameters and the state after a step, of values that are given; nothing is changed.

        It has derivatives with respect to all of them, of all orders, in transformations and for tensors: a training
        is differentiated through its updates.

        Args:
            parameters: values by path.
            gradients: gradients by path.
            state: what an earlier call returned; None begins anew.
            extra: further arguments of the transformation, such as `value=loss`.

        Returns:
            A pair of dictionaries: the new parameters, and the new state.

        Raises:
            ValueError: paths are missing or unknown.

        Example:
            >>> import numpy as np, optax, ftrans as ft
            >>> from ftrans import nn
            >>> optimizer = nn.Optimizer(nn.ParameterList([nn.Parameter(np.ones(2))]), optax.sgd(0.1))
            >>> (path,) = optimizer.paths
            >>> def trained(x):
            ...     for _ in range(3):
            ...         x = optimizer.functional_step({path: x}, {path: 2 * x})[0][path]
            ...     return x.sum()
            >>> ft.grad(trained)(np.ones(2)).round(6)
            array([0.512, 0.512])
        """
        self.require_paths("parameters", parameters)
        self.require_paths("gradients", gradients)
        values = [_given(parameters[path]) for path in self.paths]
        arrays = [_given(gradients[path]) for path in self.paths]
        if state is None:
            states = record_or_run(_WHAT, lambda xs: call_jax(*xs, code=self._update.first), values)
        else:
            states = [state[name] for name in self.state]
        is_wide = any(np.dtype(x.dtype).itemsize >= 8 for x in values)
        more = [operand(name, x, is_wide) for name, x in extra.items()]
        code = self._update.code(tuple(extra))
        new = record_or_run(_WHAT, lambda xs: call_jax(*xs, code=code), [*arrays, *states, *values, *more])
        count = len(self.paths)
        return dict(zip(self.paths, new[:count], strict=True)), dict(zip(self.state, new[count:], strict=True))

    def require_paths(self, what: str, given: Mapping[str, Any]) -> None:
        """Raise unless values are given for the parameters that are updated, and for no others.

        Raises:
            ValueError: they are not.
        """
        if set(given) != set(self.paths):
            raise ValueError(
                f"functional_step takes {what} for {', '.join(self.paths)}, but was given {', '.join(given)}"
                + at_line(user_line())
            )

    def step_of_fit(self, gradients: Mapping[str, Any], loss: Any, objective: Callable[[Any], Any]) -> None:
        """A step with what a training loop has; the objective is looked at only where the update evaluates it."""
        try:
            self.step(gradients, value=loss)
        except NeedsObjective:
            self.step(gradients, value=loss, value_fn=objective)

    def gradients_for(self, gradients: Mapping[str, Any] | None, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The gradients of a step, by the paths of these parameters: those given, or those of `backward`.

        Raises:
            TypeError: they are not a dictionary.
            ValueError: there are none, or a path is not that of a parameter.
        """
        if gradients is None:
            gradients = {path: p.grad for path, p in parameters.items() if p.grad is not None}
            if not gradients:
                raise ValueError(_no_gradients(parameters) + at_line(user_line()))
        if callable(gradients):
            raise TypeError(
                "step takes gradients, not a function that computes the loss; for a line search write "
                f"optimizer.step(gradients, value=loss, value_fn=lambda model: ...){at_line(user_line())}"
            )
        if not isinstance(gradients, Mapping):
            raise TypeError(
                "step takes a dictionary of gradients by parameter path, the second result of "
                f"nn.value_and_grad, but the argument is {type_name(gradients)}{_norm_advice(gradients)}"
                + at_line(user_line())
            )
        prefix = _prefix_of(gradients, parameters)
        unknown = [path for path in gradients if prefix + path not in parameters]
        if unknown:
            raise ValueError(
                f"step was given gradients for {', '.join(unknown)}, which this optimizer does not update; it updates "
                f"{', '.join(self.paths)}. Make a new Optimizer where parameters were added or unfrozen since"
                + at_line(user_line())
            )
        return {prefix + path: _gradient(path, x, parameters[prefix + path]) for path, x in gradients.items()}

    def changed_cells(self) -> list[Any]:
        """The parameters and buffers that a step changes."""
        return [*self.trained_parameters().values(), *self.state.values()]

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
            values = {path: p.array for path, p in self.trained_parameters().items()}
            _, _, structure = jax_leaves(self.transformation.init, values)
            self._update = update_of(self.transformation, self.paths, structure)
            self._update.make = make

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients that `backward` has accumulated in the parameters; see `Module.zero_grad`."""
        self.model.zero_grad(set_to_none)

    def trained_parameters(self) -> dict[str, Parameter]:
        """The parameters that are updated, by path."""
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


def _given(x: Any) -> Any:
    """A value of a parameter or a gradient, with its place in a graph where it has one."""
    return read(x) if hasattr(x, "dtype") else np.asarray(x)


def _prefix_of(gradients: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """What begins the paths of parameters where gradients are those of a module inside of another."""
    first = next(iter(gradients), None)
    if first is None or first in parameters:
        return ""
    for path in parameters:
        prefix = path.removesuffix(first)
        if path.endswith(f".{first}") and all(prefix + name in parameters for name in gradients):
            return prefix
    return ""


def _gradient(path: str, gradient: Any, parameter: Any) -> Any:
    gradient = concrete(read(gradient))
    if tuple(np.shape(gradient)) != tuple(parameter.shape):
        raise ValueError(
            f"the gradient of {path} has shape {tuple(np.shape(gradient))}, but the parameter is "
            f"{ArrayType(tuple(parameter.shape), parameter.dtype)}{at_line(user_line())}"
        )
    if not hasattr(gradient, "dtype"):
        gradient = np.asarray(gradient)
    return gradient if gradient.dtype == parameter.dtype else gradient.astype(parameter.dtype)


def _no_gradients(parameters: Mapping[str, Parameter]) -> str:
    """What is wrong with a step for which `backward` has left no gradients."""
    if current_builder() is not None:
        return (
            "step() without gradients uses those of backward(), and a compiled function has none; write "
            "loss, gradients = nn.value_and_grad(loss_of)(model) and step(gradients)"
        )
    return (
        "step() without gradients uses those of backward(), but there are none in the parameters; "
        "call loss.backward() first, or write step(gradients)"
    )


def _norm_advice(x: Any) -> str:
    """What to write if it is the norm that a function that clips gradients has returned."""
    if np.shape(x):
        return ""
    return "; clip_grad_norm_ returns the norm, and changes the gradients that it is given in place"
