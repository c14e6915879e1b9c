"""GroupedOptimizer: optimizers with groups of parameters, whose update is a program of ftrans.

A subclass is a rule for one parameter, written in NumPy.  The updates of all parameters are one program, made once for
each layout of the groups; it is recorded in a running trace and otherwise runs where the parameters are.  So it has
derivatives of all orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ... import numpy as fnp
from ...api.call import run
from ...api.jit import jit
from ...autograd.tensor import Tensor
from ...base.cell import Eager, read
from ...base.interrupts import uninterrupted
from ...base.source import at_line, user_line
from ...core.program import Program
from ...core.trace import Tracer, current_builder
from ...core.types import ArrayType, is_complex, type_of
from ...xla import is_jax, is_jax_tracer, place
from ..cells import epoch
from ..cells.filling import filling
from ..cells.kinds import Buffer, Cells, Parameter
from ..devices.placing import placement_beside
from ..modules.module import Module
from . import states
from .groups import Layout, ParamGroup, listed, require_initialized
from .optimizer import Optimizer
from .updates import update_program


class Plan(NamedTuple):
    """What a step does, as long as no structure changes.

    Attributes:
        epoch: of the structure.
        reads: cells and tensors that the program reads, None where a gradient comes.
        writes: those that its results are put into.
        program: the program.
    """

    epoch: int
    reads: list[Any]
    writes: list[Any]
    program: Program


# The plans of each optimizer, by the paths of gradients.
_plans: WeakKeyDictionary[Any, dict[tuple[str, ...], Plan]] = WeakKeyDictionary()


class GroupedOptimizer(Optimizer):
    """Base class of the optimizers of `nn.optim`: an update of each parameter, with hyperparameters by group.

    Attributes:
        param_groups: the groups, a list of `ParamGroup`.
        state: the buffers that belong to parameters, by the name in torch and the path of the parameter; and those with
            one number for each parameter of a group, by name and number of the group.
        paths: the paths of the parameters that are updated.
    """

    _borrowed = ("model",)
    # How one parameter is updated, a subclass of `Rule`.
    _rule: ClassVar[Any]

    def __init__(self, params: Any, numbers: dict[str, Any], options: dict[str, Any], hints: Mapping[str, Any]) -> None:
        unknown = [name for name in hints if name not in states.NO_UPDATE]
        if unknown:
            raise TypeError(
                f"{type(self).__name__} has no {unknown[0]}; it has {', '.join([*numbers, *options])}"
                + at_line(user_line())
            )
        if hints.get("differentiable"):
            raise TypeError(
                f"{type(self).__name__} changes parameters in place; to differentiate through updates, "
                "write parameters, state = optimizer.functional_step(parameters, gradients, state), or step in a "
                f"function that is differentiated by nn.grad{at_line(user_line())}"
            )
        self._notes: dict[str, Any] = {"defaults": {**numbers, **options}}
        self._numbers, self._options = tuple(numbers), tuple(options)
        self.model: Any = params if isinstance(params, Module) else None
        self.paths: tuple[str, ...] = ()
        self.param_groups: list[ParamGroup] = []
        self.state = Cells({})
        for given, named in listed(params, type(self).__name__):
            self._add(given, named)

    # Groups

    @property
    def defaults(self) -> dict[str, Any]:
        """Hyperparameters of groups that do not say otherwise."""
        return dict(self._notes["defaults"])

    @property
    def hyperparameters(self) -> set[str]:
        """The names of the numbers that an update depends on."""
        return {*self._numbers}

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Add parameters, with hyperparameters of their own.

        Args:
            param_group: a dictionary with the entry "params", and hyperparameters that differ from the defaults.

        Raises:
            ValueError: a parameter is in another group.

        Example:
            >>> from ftrans import nn
            >>> body, head = nn.Linear(2, 2), nn.Linear(2, 1)
            >>> optimizer = nn.optim.Adam(body.parameters(), lr=1e-4)
            >>> optimizer.add_param_group({"params": head.parameters(), "lr": 1e-3})
            >>> [group["lr"] for group in optimizer.param_groups]
            [0.0001, 0.001]
        """
        ((given, named),) = listed([param_group], type(self).__name__)
        self._add(given, named)

    def _add(self, given: dict[str, Any], named: list[tuple[str, Any]]) -> None:
        require_initialized(p for _, p in named)
        taken = {path for group in self.param_groups for path in group.paths}
        known = {id(p) for group in self.param_groups for p in group.params}
        paths = []
        for path, p in named:
            if id(p) in known:
                raise ValueError(f"the parameter {path} appears twice; each belongs to one group{at_line(user_line())}")
            known.add(id(p))
            paths.append(_unlike(taken, path))
            taken.add(paths[-1])
        values = {**self.defaults, **given}
        numbers = {name: values.pop(name) for name in self._numbers}
        options = {name: values.pop(name) for name in self._options}
        group = ParamGroup([p for _, p in named], paths, numbers, options)
        group.update(values)
        self.param_groups = [*self.param_groups, group]
        self.complete()

    def complete(self) -> None:
        """Make what is missing of the state of parameters that are trained."""
        new: dict[str, Any] = {}
        for number, group in enumerate(self.param_groups):
            trained = [(path, p) for path, p in _pairs(group) if p.requires_grad or path in self.paths]
            self.paths += tuple(path for path, _ in trained if path not in self.paths)
            beside = placement_beside({path: p for path, p in trained if isinstance(p, Parameter)})
            for path, p in trained:
                for slot in self._slots(group):
                    if f"{slot}.{path}" not in self.state:
                        new[f"{slot}.{path}"] = _placed(self._first(slot, p, group), path, beside)
            fresh = [path for path, _ in trained if path not in group.clocks]
            if fresh:
                # They begin together, at a time of their own if others have begun before.
                clock = 1 + max(group.clocks.values(), default=-1)
                group.clocks = {path: group.clocks.get(path, clock) for path, _ in trained}
                for name in self._rule.counters:
                    held = self.state.get(f"{name}.{number}")
                    before = np.zeros(0) if held is None else np.asarray(held.value)
                    vector = np.append(before, self._rule.first_counter(name))
                    new[f"{name}.{number}"] = _placed(vector, "", beside)
            if beside is not None and group.numbers.sharding is None:
                group.numbers.move(_placed(group.numbers.array, "", beside))
        if new:
            self.state = Cells({**self.state, **{name: Buffer(x) for name, x in new.items()}})

    def names_of_state(self, group: ParamGroup) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of numbers and of arrays that the state has for each parameter of a group."""
        return self._rule.counters, self._slots(group)

    def first_counter(self, name: str) -> float:
        """The first value of a number of the state."""
        return self._rule.first_counter(name)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """A block after which groups and state are as they were, if an error ends it."""
        before = [(group, group.numbers.array, group.options, group.used) for group in self.param_groups]
        state, paths = self.state, self.paths
        try:
            yield
        except BaseException:
            for group, numbers, options, used in before:
                group.numbers.array, group.options, group.used = numbers, options, used
            self.state, self.paths = state, paths
            raise

    def _slots(self, group: ParamGroup) -> tuple[str, ...]:
        return self._rule.slots(group.used, group.options)

    def _first(self, slot: str, like: Any, group: ParamGroup) -> np.ndarray[Any, Any]:
        """The first value of an array of the state."""
        first = self._rule.first_slot(slot, dict(group.items()))
        return np.full(like.shape, first * (1 + 1j) if is_complex(like.dtype) else first, like.dtype)

    def _trained(self, group: ParamGroup) -> list[tuple[str, Any]]:
        return [(path, p) for path, p in _pairs(group) if path in self.paths]

    def trained_parameters(self) -> dict[str, Any]:
        """The parameters that are updated, by path."""
        return {path: p for group in self.param_groups for path, p in self._trained(group)}

    # Steps

    def step(self, gradients: Any = None, *, value_fn: Any = None, **extra: Any) -> Any:
        """Update the parameters and the state.

        Args:
            gradients: gradients by parameter path, as returned by `nn.value_and_grad`; by default those that `backward`
                has accumulated in the parameters.  Or, as in torch, a function without arguments that clears the
                gradients, calls `backward` and returns the loss.  A parameter without a gradient is not changed, and
                neither is its state.
            extra: `closure`, torch's name for such a function; `value=loss` is not looked at, so that steps serve for
                all optimizers.
            value_fn: not looked at, either.

        Returns:
            What such a function returned, else None.

        Raises:
            TypeError: `gradients` is nothing of the kind.
            ValueError: there are no gradients, or a path is not that of an optimized parameter.

        Example:
            >>> import ftrans as ft
            >>> from ftrans import nn
            >>> model, x = nn.Linear(2, 1), ft.autograd.tensor([[1.0, 0.0], [0.0, 1.0]])
            >>> optimizer = nn.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            >>> for _ in range(100):
            ...     optimizer.zero_grad()
            ...     loss = ((model(x) - 1) ** 2).mean()
            ...     loss.backward()
            ...     optimizer.step()
            >>> bool(loss < 0.05)
            True
        """
        gradients = extra.pop("closure", gradients)
        unknown = [name for name in extra if name != "value"]
        if unknown:
            raise TypeError(f"step of {type(self).__name__} takes no {unknown[0]}={at_line(user_line())}")
        loss = None
        if callable(gradients):
            loss, gradients = gradients(), None
        if gradients is None:
            self._complete_unfrozen()
        found = self._gradients(gradients)
        plan = self._plan(tuple(found))
        given = iter(found.values())
        results = run_update(plan.program, [next(given) if x is None else held_by(x) for x in plan.reads])
        write(plan.writes, results)
        return loss

    def functional_step(
        self,
        parameters: Mapping[str, Any],
        gradients: Mapping[str, Any],
        state: Mapping[str, Any] | None = None,
        **numbers: Any,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The parameters and the state after a step, of values that are given; nothing is changed.

        It has derivatives with respect to all of them, and hyperparameters, of all orders: in transformations, and for
        tensors.  So a training is differentiated through its updates.

        Args:
            parameters: values by path.
            gradients: gradients by path.
            state: what an earlier call returned; None begins anew.
            numbers: hyperparameters in place of those of the groups, such as `lr=rate`.

        Returns:
            A pair of dictionaries: the new parameters, and the new state.

        Raises:
            ValueError: paths are missing or unknown.
            TypeError: the optimizer has no such hyperparameter.

        Example:
            >>> import numpy as np, ftrans as ft
            >>> from ftrans import nn
            >>> optimizer = nn.optim.Adam([nn.Parameter(np.ones(2))], lr=0.1)
            >>> def trained(rate, x):
            ...     (path,), state = optimizer.paths, None
            ...     for _ in range(3):
            ...         parameters, state = optimizer.functional_step({path: x}, {path: 2 * x}, state, lr=rate)
            ...         x = parameters[path]
            ...     return (x**2).sum()
            >>> ft.grad(trained)(0.1, np.ones(2)).round(3)
            np.float64(-8.309)
        """
        self.require_paths("parameters", parameters)
        self.require_paths("gradients", gradients)
        wrong = [name for name in numbers if name not in self._numbers]
        if wrong:
            raise TypeError(
                f"{type(self).__name__} has no number {wrong[0]}; it has {', '.join(self._numbers)}"
                + at_line(user_line())
            )
        layouts, operands, names = [], [], []
        for number, group in enumerate(self.param_groups):
            trained = self._trained(group)
            layouts.append(group.layout((True,) * len(trained)))
            counters = [f"{name}.{number}" for name in self._rule.counters]
            values = [_numbers_of(group, numbers)]
            values += [
                np.full(len(self.state[f"{name}.{number}"].value), self._rule.first_counter(name))
                if state is None
                else state[f"{name}.{number}"]
                for name in self._rule.counters
            ]
            operands += values
            names += counters
            for path, _ in trained:
                slots = self._slots(group)
                x = read(parameters[path])
                operands += [read(gradients[path]), x]
                operands += [
                    self._first(slot, x, group) if state is None else state[f"{slot}.{path}"] for slot in slots
                ]
                names += [path, *(f"{slot}.{path}" for slot in slots)]
        new = dict(zip(names, self._run(layouts, operands), strict=True))
        return {path: new.pop(path) for path in self.paths}, new

    def _gradients(self, gradients: Mapping[str, Any] | None) -> dict[str, Any]:
        """The gradients of a step, in the order of the parameters."""
        parameters = self.trained_parameters()
        if gradients is None:
            tensors = {path: p.grad for path, p in parameters.items()}
            found = {path: x.array for path, x in tensors.items() if x is not None}
            if found and all(x.dtype == parameters[path].dtype for path, x in found.items()):
                return found
        found = self.gradients_for(gradients, parameters)
        return {path: found[path] for path in self.paths if path in found}

    def _separate(self, given: set[str]) -> None:
        """Give counters of their own to parameters without a gradient, where others that had the same have one.

        Raises:
            RuntimeError: the step is traced, where no structure can change.
        """
        for number, group in enumerate(self.param_groups):
            runs = {clock for path, clock in group.clocks.items() if path in given}
            rests = [path for path, clock in group.clocks.items() if path not in given and clock in runs]
            if not rests:
                continue
            if current_builder() is not None:
                raise RuntimeError(
                    f"{', '.join(rests)} has no gradient in a compiled step in which others of its group have one, so "
                    "it would have another number of steps; put it into a group of its own, {'params': ...}, or make "
                    f"the optimizer when it is frozen{at_line(user_line())}"
                )
            clocks = dict(group.clocks)
            vectors = {name: np.asarray(self.state[f"{name}.{number}"].value) for name in self._rule.counters}
            for old in {clocks[path] for path in rests}:
                count = len(next(iter(vectors.values())))
                clocks |= {path: count for path in rests if clocks[path] == old}
                vectors = {name: np.append(x, x[old]) for name, x in vectors.items()}
            for name, x in vectors.items():
                self.state[f"{name}.{number}"].value = x
            group.clocks = clocks

    def set_counters(self, number: int, rows: Mapping[str, tuple[float, ...]]) -> None:
        """Set the counters of the parameters of a group, given by path."""
        group = self.param_groups[number]
        different = [*dict.fromkeys(rows.values())]
        for i, name in enumerate(self._rule.counters):
            self.state[f"{name}.{number}"].value = np.array([row[i] for row in different], np.float64)
        group.clocks = {path: different.index(row) for path, row in rows.items()}

    def _plan(self, given: tuple[str, ...]) -> Plan:
        """What a step with gradients for these paths reads, runs and writes."""
        plans = _plans.setdefault(self, {})
        plan = plans.get(given)
        if plan is None or plan.epoch != epoch.now():
            self._separate(set(given))
            plan = plans[given] = self._new_plan(set(given))
        return plan

    def _new_plan(self, given: set[str]) -> Plan:
        self._complete_switched_on()
        layouts, writes = [], []
        reads: list[Any] = []
        for number, group in enumerate(self.param_groups):
            trained = self._trained(group)
            layouts.append(group.layout(tuple(path in given for path, _ in trained)))
            cells: list[Any] = [self.state[f"{name}.{number}"] for name in self._rule.counters]
            reads += [group.numbers, *cells]
            writes += cells
            for path, p in trained:
                if path in given:
                    cells = [p, *(self.state[f"{slot}.{path}"] for slot in self._slots(group))]
                    reads += [None, *cells]
                    writes += cells
        # A gradient, which has no cell here, has the type of the parameter behind it.
        like = [x if x is not None else reads[i + 1] for i, x in enumerate(reads)]
        types = tuple(ArrayType(tuple(x.shape), np.dtype(x.dtype)) for x in like)
        return Plan(epoch.now(), reads, writes, update_program(self._rule, tuple(layouts), types))

    def _run(self, layouts: Sequence[Layout], operands: Sequence[Any]) -> list[Any]:
        program = update_program(self._rule, tuple(layouts), tuple(map(type_of, operands)))
        return run_update(program, operands)

    def _complete_unfrozen(self) -> None:
        """Make the state of parameters that have got their first gradient since the optimizer was made."""
        if any(
            p.grad is not None for group in self.param_groups for path, p in _pairs(group) if path not in self.paths
        ):
            self.complete()

    def _complete_switched_on(self) -> None:
        """Make the state for what has been switched on since the optimizer was made, such as a momentum."""
        names = [f"{slot}.{path}" for g in self.param_groups for path, _ in self._trained(g) for slot in self._slots(g)]
        missing = [name for name in names if name not in self.state]
        if missing and current_builder() is not None:
            raise RuntimeError(
                f"{type(self).__name__} has no {missing[0]} yet, since what it is for, such as a momentum, was "
                "switched on after the optimizer was made, and a compiled step cannot add it; before it, call "
                "optimizer.complete()" + at_line(user_line())
            )
        if missing:
            self.complete()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients that `backward` has accumulated in the parameters.

        Args:
            set_to_none: whether they become None, as opposed to zeros.
        """
        for group in self.param_groups:
            for p in group.params:
                if set_to_none or p.grad is None:
                    p.grad = None
                else:
                    p.grad = Tensor.of(np.zeros(p.shape, p.dtype))

    def changed_cells(self) -> list[Any]:
        return [*self.trained_parameters().values(), *self.state.values()]

    # State dictionaries, copies

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The state and the hyperparameters, in the form of torch.

        Returns:
            A dictionary with two entries: "state", a dictionary of arrays for each parameter, which are numbered
            throughout; and "param_groups", a list of dictionaries of hyperparameters.

        Example:
            >>> from ftrans import nn
            >>> nn.optim.SGD(nn.Linear(2, 1), lr=0.1).state_dict()["param_groups"][0]["lr"]
            0.1
        """
        return states.state_dict(self)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> Any:
        """Overwrite the state and the hyperparameters.

        Args:
            state_dict: what `state_dict()` has returned here, or in torch for the same optimizer; or arrays by path, as
                `nn.load` reads them from a file.
            strict: as for a module, for arrays by path.

        Raises:
            ValueError: it is of another optimizer, or of other parameters; nothing has been changed.
        """
        if set(state_dict) == {"state", "param_groups"}:
            return states.load(self, state_dict)
        return super().load_state_dict(state_dict, strict)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Module.__reduce_ex__(self, protocol)

    def __setstate__(self, state: dict[str, Any]) -> None:
        Module.__setstate__(self, state)

    def extra_repr(self) -> str:
        return f"{len(self.paths)} parameters"


def _pairs(group: ParamGroup) -> Iterator[tuple[str, Any]]:
    return zip(group.paths, group.params, strict=True)


def _unlike(taken: set[str], path: str) -> str:
    """A path that is not taken."""
    return path if path not in taken else next(new for i in count(1) if (new := f"{path}.{i}") not in taken)


def _placed(array: Any, path: str, beside: Callable[..., Any] | None) -> Any:
    """An array on the mesh of the parameters, if they are on one."""
    return array if beside is None else place(array, beside((path,), array))


def _numbers_of(group: ParamGroup, numbers: Mapping[str, Any]) -> Any:
    """The vector of hyperparameters of a group, with some replaced."""
    values = held_by(group.numbers)
    if not numbers:
        return values
    entries = [values[i] for i in range(len(values))]
    for name, start, size in group.places:
        if name in numbers:
            entries[start : start + (size or 1)] = [numbers[name]] if size is None else numbers[name]
    return fnp.stack([fnp.asarray(read(x), np.float64) for x in entries])


def run_update(program: Program, operands: Sequence[Any]) -> list[Any]:
    """The results of an update: recorded where a trace runs or tensors are given, compiled for arrays of JAX."""
    kinds = set(map(type, operands))
    if kinds == {np.ndarray} or any(issubclass(kind, Tracer | Eager) for kind in kinds):
        return run(program, operands)
    if any(map(is_jax_tracer, operands)) or not any(map(is_jax, operands)):
        return run(program, operands)
    compiled = program.derive("compiled update", lambda: jit(lambda *xs: run(program, xs)))
    return list(compiled(*operands))


def held_by(x: Any) -> Any:
    """The array of a cell or a tensor where it is; in a trace, a cell knows whether it was given."""
    if isinstance(x, Tensor):
        return x.array
    return x.array if current_builder() is None else x.read()


@uninterrupted
def write(places: Sequence[Any], arrays: Sequence[Any]) -> None:
    """Put new arrays into cells and tensors."""
    is_plain = current_builder() is None and filling.get() is None
    for x, new in zip(places, arrays, strict=True):
        if isinstance(x, Tensor):
            x.data = new
        elif is_plain and type(new) is np.ndarray and x.sharding is None:
            # It has the type of the array before.
            x.held = new
        else:
            x.value = new
