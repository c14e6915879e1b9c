"""Optimizer: a transformation of optax, with its state in buffers, and the model whose parameters it changes."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..api.call import record_or_run, type_name
from ..control.jax_code import JaxCode, call_jax
from ..core.cell import Cell
from ..core.eager import Eager
from ..core.source import at_line, user_line
from ..core.trace import current_builder
from ..xla import jax_leaves
from .cells import Buffer, Cells, Parameter
from .graph import graph_of
from .module import Module
from .roots import require_module


class Optimizer(Module):
    """Changes the parameters of a model by a transformation of optax.

    It is itself a module, so that a compiled training step takes it beside the model.  Its state is in buffers.

    Args:
        model: the model.  Parameters whose `requires_grad` is set now are changed.
        transformation: a gradient transformation of optax, such as `optax.adam(1e-3)`, or several, joined by
            `optax.chain`: clipping, schedules, accumulation of gradients and the like are there.

    Raises:
        TypeError: the model is no module, or the transformation none of optax.
        ValueError: the model has nothing to train.

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
        names, leaves, structure = jax_leaves(transformation.init, values)
        self.state = Cells({name: Buffer(x) for name, x in zip(names, leaves, strict=True)})
        self._update = _update_of(transformation, self.paths, structure)

    def step(self, gradients: Mapping[str, Any] | None = None, **extra: Any) -> None:
        """Change the parameters, and the state.

        Args:
            gradients: arrays by the path of the parameter, as `nn.value_and_grad` returns them; by default what
                `backward` has left in the parameters.  A parameter without a gradient keeps its value.
            extra: what the transformation wants beside the gradients, such as `value=loss`; numbers and arrays.

        Raises:
            TypeError: the gradients are no dictionary.
            ValueError: there are no gradients, or a path is not that of a parameter which is optimized.
        """
        parameters = self._parameters()
        if gradients is None:
            gradients = {path: p.grad for path, p in parameters.items() if p.grad is not None}
            if not gradients:
                raise ValueError(
                    "step() without gradients uses those that backward() leaves in the parameters, but there are none; "
                    f"call loss.backward() before, or write step(gradients){at_line(user_line())}"
                )
        if not isinstance(gradients, Mapping):
            raise TypeError(
                "step takes a dictionary of gradients by the path of the parameter, the second of what "
                f"nn.value_and_grad returns; what was given is {type_name(gradients)}{at_line(user_line())}"
            )
        unknown = [path for path in gradients if path not in parameters]
        if unknown:
            raise ValueError(
                f"step was given gradients for {', '.join(unknown)}, which this optimizer does not change; it changes "
                f"{', '.join(self.paths)}. Make a new Optimizer where parameters were added or unfrozen since"
                + at_line(user_line())
            )
        arrays = [_gradient(path, gradients.get(path), p) for path, p in parameters.items()]
        cells = [*parameters.values(), *self.state.values()]
        # Un-jitted, arrays stay where they are; in a trace, a cell says whether it was given.
        held = [cell.array if current_builder() is None else cell.read() for cell in cells]
        values, states = held[: len(parameters)], held[len(parameters) :]
        code = self._update.code(tuple(extra))
        is_wide = any([p.dtype.itemsize >= 8 for p in parameters.values()])
        more = [x if hasattr(x, "dtype") else _number(x, is_wide) for x in extra.values()]
        operands = [*arrays, *states, *values, *more]
        results = record_or_run("the update of the optimizer", lambda xs: call_jax(*xs, code=code), operands)
        for (path, cell), new in zip([*parameters.items(), *self.state.items()], results, strict=True):
            if path in gradients or not isinstance(cell, Parameter):
                cell.value = new

    def zero_grad(self) -> None:
        """Forget the gradients that `backward` has left in the parameters."""
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


@functools.lru_cache(maxsize=32)
def _update_of(transformation: Any, paths: tuple[str, ...], structure: Any) -> _Update:
    """The update, one for equal optimizers, so that a compiled step is for all of them."""
    return _Update(transformation, paths, structure)


class _Update:
    """The update of a transformation as functions of lists of arrays."""

    def __init__(self, transformation: Any, paths: tuple[str, ...], structure: Any) -> None:
        self._transformation = transformation
        self._paths = paths
        self._structure = structure
        self._codes: dict[tuple[str, ...], JaxCode] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> _Update:
        return self

    def code(self, extra: tuple[str, ...]) -> JaxCode:
        """The function of gradients, state, parameters, and the arguments named in `extra`."""
        found = self._codes.get(extra)
        if found is None:
            found = self._codes[extra] = JaxCode("an optimizer of optax", lambda *arrays: self._new(arrays, extra))
        return found

    def _new(self, arrays: tuple[Any, ...], extra: tuple[str, ...]) -> list[Any]:
        import optax

        count, states = len(self._paths), self._structure.num_leaves
        gradients = dict(zip(self._paths, arrays[:count], strict=True))
        state = self._structure.unflatten(arrays[count : count + states])
        parameters = dict(zip(self._paths, arrays[count + states : 2 * count + states], strict=True))
        more = dict(zip(extra, arrays[2 * count + states :], strict=True))
        transformation = optax.with_extra_args_support(self._transformation)
        updates, state = transformation.update(gradients, state, parameters, **more)
        new = optax.apply_updates(parameters, updates)
        old_leaves = arrays[count : count + states]
        leaves = [y.astype(x.dtype) for x, y in zip(old_leaves, self._structure.flatten_up_to(state), strict=True)]
        return [*(new[path] for path in self._paths), *leaves]


def _number(x: Any, is_wide: bool) -> np.ndarray[Any, Any]:
    """A number of Python as an array; where nothing else has 64 bits, in the dtype that JAX gives it by default."""
    array = np.asarray(x)
    return array if is_wide else array.astype({"f": np.float32, "i": np.int32}.get(array.dtype.kind, array.dtype))


def _gradient(path: str, gradient: Any, parameter: Parameter) -> Any:
    if gradient is None:
        return np.zeros(parameter.shape, parameter.dtype)
    if isinstance(gradient, Cell):
        gradient = gradient.read()
    if isinstance(gradient, Eager):
        gradient = gradient.concrete()
    if tuple(np.shape(gradient)) != parameter.shape:
        raise ValueError(
            f"the gradient of {path} has shape {tuple(np.shape(gradient))}, but the parameter is {parameter.type}"
            + at_line(user_line())
        )
    if not hasattr(gradient, "dtype"):
        gradient = np.asarray(gradient)
    return gradient if gradient.dtype == parameter.dtype else gradient.astype(parameter.dtype)
