"""LBFGS: the optimizer of torch, whose steps are several iterations with many evaluations of the loss."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ... import numpy as fnp
from ...api.call import name_of, run, type_name
from ...api.derivatives import value_and_grad
from ...api.jit import jit
from ...api.loops import while_loop
from ...autograd.tensor import Tensor
from ...base.cell import concrete, read
from ...base.progress import working
from ...base.source import at_line, user_line
from ...core.program import Program
from ...core.trace import Tracer, current_builder
from ...core.types import is_complex
from ...xla import place, placement
from ..cells.kinds import Buffer, Cells, Parameter
from ..devices.placing import mesh_of
from ..modules.loading import as_numpy
from ..modules.module import Module
from .grouped import GroupedOptimizer, held_by, write
from .optax_update import traced_objective
from .quasi_newton import Carry, Limits, empty_memory, minimized

_SEARCHES = (None, "strong_wolfe")
# Rows of the memory, which torch has lists for.
_ROWS = ("old_stps", "old_dirs", "ro")


class LBFGS(GroupedOptimizer):
    """L-BFGS: directions from the last changes of gradients (Nocedal and Wright, Numerical Optimization, 2006).

    A step is up to `max_iter` iterations, and evaluates the loss again and again.  Given as a function of the model, it
    is compiled together with them as one program.  In `nn.fit` each batch gets such a step.

    Args:
        params: as for the other optimizers; in one group.
        lr: the step size, or the first one of each search.
        max_iter: number of iterations of a step.
        max_eval: number of evaluations after which no further iteration begins; 5/4 of `max_iter` by default.
        tolerance_grad: a step ends where no element of the gradient is larger.
        tolerance_change: a step ends where parameters or loss change less.
        history_size: number of changes that are remembered, each with two vectors as long as all parameters.
        line_search_fn: "strong_wolfe" for a search along each direction; None for steps of the size `lr`.

    Raises:
        ValueError: there are several groups, or a hyperparameter is out of its range.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> model = nn.Linear(2, 1)
        >>> optimizer = nn.optim.LBFGS(model, line_search_fn="strong_wolfe")
        >>> loss = optimizer.step(lambda model: ((model(np.eye(2, dtype=np.float32)) - 1) ** 2).mean())
        >>> bool(((model(np.eye(2)) - 1) ** 2).mean() < 1e-8)
        True
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if line_search_fn not in _SEARCHES:
            raise ValueError(f"line_search_fn is None or 'strong_wolfe', not {line_search_fn!r}{at_line(user_line())}")
        for name, value in (("max_iter", max_iter), ("history_size", history_size)):
            if value < 1:
                raise ValueError(f"{name} must be positive, not {value}{at_line(user_line())}")
        numbers = {"lr": lr, "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change}
        options: dict[str, Any] = {
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
        }
        options |= {"history_size": history_size, "line_search_fn": line_search_fn}
        super().__init__(params, numbers, options, {})

    def complete(self) -> None:
        if len(self.param_groups) > 1:
            raise ValueError(f"LBFGS has one direction for all parameters, in one group{at_line(user_line())}")
        (group,) = self.param_groups
        if self.state:
            return
        trained = [(path, p) for path, p in zip(group.paths, group.params, strict=True) if p.requires_grad]
        self.paths = tuple(path for path, _ in trained)
        if not trained:
            return
        dtype = np.result_type(*[np.zeros(0, p.dtype).real.dtype for _, p in trained])
        size = sum(p.size * (2 if is_complex(p.dtype) else 1) for _, p in trained)
        memory = empty_memory(size, group["history_size"], dtype)
        mesh = mesh_of(p for _, p in trained if isinstance(p, Parameter))
        placed = {name: x if mesh is None else place(x, placement(mesh, ())) for name, x in memory.items()}
        self.state = Cells({name: Buffer(x) for name, x in placed.items()})

    def names_of_state(self, group: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return (), ()

    def step(
        self,
        gradients: Any = None,
        *,
        value_fn: Callable[[Any], Any] | None = None,
        **extra: Any,
    ) -> Any:
        """Make the iterations of a step.

        Args:
            gradients: a function of the model that returns the loss, which is compiled; or, as in torch, one without
                arguments that clears the gradients, calls `backward` and returns the loss, which runs as it is.  Or
                gradients by path, as for the other optimizers, with `value` and `value_fn`.
            value_fn: the loss as a function of the model.
            extra: `value`, the loss that goes with the gradients; and `closure`, torch's name for such a function.

        Returns:
            The loss before the step.

        Raises:
            TypeError: it is none of these, or the loss is not a real scalar that depends on the parameters.
            ValueError: a function without arguments has computed no gradients.
            RuntimeError: the function of the model draws random numbers.

        Example:
            >>> import ftrans as ft
            >>> from ftrans import nn
            >>> x = ft.autograd.tensor([3.0, -2.0], requires_grad=True)
            >>> optimizer = nn.optim.LBFGS([x], line_search_fn="strong_wolfe")
            >>> def closure():
            ...     optimizer.zero_grad()
            ...     loss = ((x - 1) ** 4).sum()
            ...     loss.backward()
            ...     return loss
            >>> for _ in range(3):
            ...     loss = optimizer.step(closure)
            >>> bool(closure() < 1e-6)
            True
        """
        closure, value = extra.pop("closure", gradients), extra.pop("value", None)
        if extra:
            raise TypeError(f"step of LBFGS takes no {next(iter(extra))}={at_line(user_line())}")
        if value_fn is None and not callable(closure):
            raise TypeError(
                f"LBFGS evaluates the loss at other parameters, so step takes a function, not {type_name(closure)}: "
                "optimizer.step(lambda model: loss_of(model, x, y)), which is compiled, or torch's closure"
                + at_line(user_line())
            )
        if value_fn is None and not _takes_model(closure) and current_builder() is None:
            return self._step_of_closure(closure)
        if value_fn is None:
            function = closure if _takes_model(closure) else lambda model: closure()
            return self._step_of_objective(function, None, None)
        if value is None or closure is None:
            raise TypeError(
                "with value_fn, step takes gradients and value=loss as well: optimizer.step(gradients, value=loss, "
                f"value_fn=lambda model: ...){at_line(user_line())}"
            )
        return self._step_of_objective(value_fn, closure, value)

    def step_of_fit(self, gradients: Mapping[str, Any], loss: Any, value_fn: Callable[[Any], Any]) -> None:
        self.step(gradients, value=loss, value_fn=value_fn)

    def functional_step(self, *args: Any, **kwargs: Any) -> Any:
        """Not for LBFGS, whose steps evaluate the loss.

        Raises:
            TypeError: always.
        """
        raise TypeError(
            "a step of LBFGS evaluates the loss, so it is no function of gradients; ftrans.scipy.optimize.minimize is "
            f"differentiated as what it solves{at_line(user_line())}"
        )

    # The two ways to evaluate

    def _step_of_closure(self, closure: Callable[[], Any]) -> Any:
        """A step whose evaluations run the user's code, with the parameters changed in place."""
        parameters = list(self.trained_parameters().values())
        before = [np.array(concrete(read(p))) for p in parameters]
        like = [(x.shape, x.dtype) for x in before]
        losses: list[Any] = []

        def evaluate(x: Any) -> tuple[Any, Any]:
            work.advance()
            write(parameters, _parts(x, like))
            losses.append(closure())
            missing = [path for path, p in self.trained_parameters().items() if p.grad is None]
            if len(missing) == len(parameters):
                raise ValueError(
                    "the function without arguments that step was given has computed no gradients; call "
                    "loss.backward() in it, or give a function of the model, which is compiled: "
                    f"optimizer.step(lambda model: loss_of(model, x, y)){at_line(user_line())}"
                )
            gradients = [
                np.zeros(*s) if p.grad is None else p.grad.array for p, s in zip(parameters, like, strict=True)
            ]
            return np.float64(read(losses[-1]).concrete()), _vector(gradients, dtype)

        memory = {name: np.asarray(cell.value) for name, cell in self.state.items()}
        dtype = memory["d"].dtype
        numbers, limits = self._numbers_and_limits()
        start = _vector(before, dtype)
        try:
            with working("a step of L-BFGS, evaluation") as work:
                x, memory = minimized(evaluate, start, *evaluate(start), memory, numbers, limits, _python_loop)
        except BaseException:
            write(parameters, before)
            raise
        write([*parameters, *self.state.values()], [*_parts(x, like), *memory.values()])
        return losses[0]

    def _step_of_objective(self, objective: Callable[[Any], Any], gradients: Any, loss: Any) -> Any:
        """A step as one program: recorded in a running trace, else compiled."""
        named = self.trained_parameters()
        wrong = [path for path, p in named.items() if isinstance(p, Tensor)]
        if wrong:
            raise TypeError(
                f"{wrong[0]} is a tensor, and no parameter of a model; give step a function without arguments that "
                f"calls backward, as in torch{at_line(user_line())}"
            )
        parameters = list(named.values())
        program, captured = traced_objective(self._root(parameters), objective, parameters)
        given: list[Any] = []
        if gradients is not None:
            found = self.gradients_for(gradients, named)
            given = [loss, *(found.get(path, np.zeros(p.shape, p.dtype)) for path, p in named.items())]
        numbers, limits = self._numbers_and_limits()
        cells = [*parameters, *self.state.values()]
        names, key = tuple(self.state), ("lbfgs", tuple(self.state), limits, len(parameters), bool(given))
        step = _Step(program, names, limits, len(parameters), bool(given))
        operands = [[held_by(x) for x in cells], list(numbers.values()), given, captured]
        if any(type(x) is Tracer for part in operands for x in part):
            first, new = step(*operands)
        else:
            first, new = program.derive(key, lambda: jit(step))(*operands)
        write(cells, new)
        return first

    def _numbers_and_limits(self) -> tuple[dict[str, Any], Limits]:
        (group,) = self.param_groups
        numbers = {name: group[name] for name in ("lr", "tolerance_grad", "tolerance_change")}
        values = {name: x if type(x) is Tracer else np.float64(x) for name, x in numbers.items()}
        return values, Limits(group["max_iter"], group["max_eval"], group["line_search_fn"] is not None)

    def _root(self, parameters: Sequence[Parameter]) -> Module:
        """The model: the one that was given, or the outermost module that holds the parameters."""
        if self.model is not None:
            return self.model
        owner: Any = None if parameters[0].owner is None else parameters[0].owner()
        while owner is not None and (parent := owner.__dict__.get("_parent")) is not None and parent() is not None:
            owner = parent()
        return self if owner is None else owner

    # State dictionaries

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The state and the hyperparameters, in the form of torch, with all state under the first parameter."""
        found: dict[str, Any] = super().state_dict()
        if not self.state or not int(self.state["n_iter"].value):
            return found
        values = {name: np.array(cell.value) for name, cell in self.state.items()}
        held = values["ro"] != 0
        memory: dict[str, Any] = {name: [*x[held]] if name in _ROWS else x for name, x in values.items()}
        memory |= {name: int(values[name]) for name in ("n_iter", "func_evals")}
        return {**found, "state": {0: memory}}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> Any:
        """Overwrite the state and the hyperparameters.

        Args:
            state_dict: what `state_dict()` has returned, here or in torch; or arrays by path.
            strict: as for a module, for arrays by path.

        Raises:
            ValueError: it is of another optimizer, or of other parameters; nothing has been changed.
        """
        if set(state_dict) != {"state", "param_groups"}:
            return super().load_state_dict(state_dict, strict)
        given = dict(next(iter(state_dict["state"].values()), {}))
        with self.kept():
            super().load_state_dict({**state_dict, "state": {}})
            size, history = self.state["d"].size, self.param_groups[0]["history_size"]
            memory = empty_memory(size, history, self.state["d"].dtype)
            for name in memory if given else ():
                if name not in given:
                    raise ValueError(f"the state is of another optimizer: it has no {name}{at_line(user_line())}")
                rows = np.stack([as_numpy(x) for x in given[name]]) if name in _ROWS and given[name] else None
                value = as_numpy(given[name]) if name not in _ROWS else rows
                if (
                    value is not None
                    and value.shape[value.ndim - memory[name].ndim + (name in _ROWS) :]
                    != (memory[name].shape[name in _ROWS :])
                ):
                    raise ValueError(
                        f"{name} of the state is for other parameters: it has shape {value.shape}{at_line(user_line())}"
                    )
                if name in _ROWS:
                    memory[name][history - (0 if rows is None else len(rows)) :] = () if rows is None else rows
                else:
                    memory[name] = np.asarray(value, memory[name].dtype)
            self.state = Cells({name: Buffer(x) for name, x in memory.items()})
        return None


class _Step:
    """A step as a function of arrays.

    Args:
        objective: a program of the parameters and of captured values, whose first result is the loss.
        names: the names of what is remembered.
        limits: when the iterations end.
        count: number of parameters.
        is_given: whether loss and gradients are given where the step begins.
    """

    __name__ = "step of LBFGS"

    def __init__(self, objective: Program, names: tuple[str, ...], limits: Limits, count: int, is_given: bool) -> None:
        self.objective = objective
        self.names, self.limits, self.count, self.is_given = names, limits, count, is_given

    def __call__(
        self, held: list[Any], numbers: list[Any], given: list[Any], captured: list[Any]
    ) -> tuple[Any, list[Any]]:
        """The first loss, and the new parameters and memory."""
        values, memory = held[: self.count], dict(zip(self.names, held[self.count :], strict=True))
        like, dtype = [(tuple(x.shape), np.dtype(x.dtype)) for x in values], np.dtype(memory["d"].dtype)
        loss_and_gradients = value_and_grad(lambda xs: run(self.objective, [*xs, *captured])[0])

        def evaluate(x: Any) -> tuple[Any, Any]:
            loss, gradients = loss_and_gradients(_parts(x, like))
            return loss.astype(np.float64), _vector(gradients, dtype)

        if self.is_given:
            first = given[0]
            loss, g = fnp.asarray(first).astype(np.float64), _vector(given[1:], dtype)
        else:
            first, gradients = loss_and_gradients(values)
            loss, g = first.astype(np.float64), _vector(gradients, dtype)
        named = dict(zip(("lr", "tolerance_grad", "tolerance_change"), numbers, strict=True))
        x, memory = minimized(evaluate, _vector(values, dtype), loss, g, memory, named, self.limits, while_loop)
        return first, [*_parts(x, like), *(memory[name] for name in self.names)]


def _python_loop(condition: Callable[[Carry], Any], body: Callable[[Carry], Carry], carry: Carry) -> Carry:
    while bool(condition(carry)):
        carry = body(carry)
    return carry


def _vector(arrays: Sequence[Any], dtype: Any) -> Any:
    """Arrays as one vector, complex ones as real and imaginary parts."""
    parts = [fnp.stack([x.real, x.imag], -1) if is_complex(np.dtype(x.dtype)) else x for x in arrays]
    return fnp.concatenate([fnp.ravel(x).astype(dtype) for x in parts])


def _parts(x: Any, like: Sequence[tuple[tuple[int, ...], Any]]) -> list[Any]:
    """The arrays of these shapes and dtypes that a vector was made of."""
    found, start = [], 0
    for shape, dtype in like:
        size = int(np.prod(shape, dtype=np.int64)) * (2 if is_complex(dtype) else 1)
        part = x[start : start + size]
        part = part.reshape(-1, 2) if is_complex(dtype) else part
        found.append((part[:, 0] + 1j * part[:, 1] if is_complex(dtype) else part).reshape(shape).astype(dtype))
        start += size
    return found


def _takes_model(f: Callable[..., Any]) -> bool:
    """Whether a function takes an argument, the model."""
    try:
        inspect.signature(f).bind()
    except TypeError:
        return True
    except ValueError:
        raise TypeError(f"the arguments of {name_of(f)} are unknown{at_line(user_line())}") from None
    return False
