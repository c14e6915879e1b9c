"""Groups of parameters: those that an optimizer updates with the same hyperparameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ... import numpy as fnp
from ...api.call import type_name
from ...autograd.tensor import Tensor
from ...base.cell import read
from ...base.source import at_line, user_line
from ...base.type_questions import is_plain
from ...core.trace import Tracer
from ..cells.kinds import Buffer, Parameter
from ..modules.module import Module

# Hyperparameters that are at least 0 and less than 1; all others of a name in NON_NEGATIVE are at least 0.
_FRACTIONS = {"betas", "rho"}
_ANY_NUMBER = {"momentum_decay", "beta2_decay", "alpha", "t0", "dampening", "ns_coefficients"}


def require_initialized(parameters: Iterable[Any]) -> None:
    """Raise if a parameter is that of a lazy layer, which will make others in its first call.

    Raises:
        RuntimeError: one is.
    """
    for p in parameters:
        owner = p.owner() if isinstance(p, Parameter) and p.owner is not None else None
        if owner is not None and hasattr(owner, "has_uninitialized_params"):
            raise RuntimeError(
                f"{p.path} belongs to a {type(owner).__name__}, which makes its parameters in its first call, so that "
                "the optimizer would never update them; call the model once, model(x), and then make the optimizer"
                + at_line(user_line())
            )


class Layout(NamedTuple):
    """What the update of a group depends on besides arrays.

    Attributes:
        places: where hyperparameters are in the vector of numbers: a name, a place, and how many there are, None for
            one that is no tuple.
        used: names of those that are not zero, or have not always been.
        options: flags by name.
        has: for each parameter whether it has a gradient.
        clocks: for each parameter the place of its counters: those that have always been updated together share them.
    """

    places: tuple[tuple[str, int, int | None], ...]
    used: tuple[str, ...]
    options: tuple[tuple[str, Any], ...]
    has: tuple[bool, ...]
    clocks: tuple[int, ...]


class ParamGroup(Module):
    """Parameters with common hyperparameters, which are read and set by name, as in a dictionary.

    Numbers are inputs of compiled steps, so a new learning rate compiles nothing.  Flags are not, and neither is
    whether a weight decay or a momentum is used at all.

    Args:
        params: the parameters, `nn.Parameter`s or tensors.
        paths: a name for each.
        numbers: hyperparameters that are numbers or tuples of numbers.
        options: hyperparameters that are flags.

    Attributes:
        numbers: all numbers in a vector, a buffer of type f64[n].
        clocks: by path, the place of the counters of each parameter that is updated.

    Example:
        >>> from ftrans import nn
        >>> group = nn.optim.SGD(nn.Linear(2, 1), lr=0.1).param_groups[0]
        >>> group["lr"] = 0.5 * group["lr"]
        >>> group["lr"]
        0.05
    """

    _borrowed = ("params",)

    def __init__(
        self,
        params: list[Any],
        paths: Iterable[str],
        numbers: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> None:
        self.params = params
        self.paths = tuple(paths)
        places: list[tuple[str, int, int | None]] = []
        flat: list[float] = []
        for name, value in numbers.items():
            is_tuple = is_plain(value, tuple | list)
            values = tuple(value) if is_tuple else (value,)
            _require_numbers(name, values)
            places.append((name, len(flat), len(values) if is_tuple else None))
            flat += [float(read(x)) for x in values]
        self.places = tuple(places)
        self.used = tuple(sorted(name for name, value in numbers.items() if _is_used(value)))
        self.options = dict(options)
        self.numbers = Buffer(np.array(flat, np.float64))
        self.clocks: dict[str, int] = {}
        # Whatever else users and schedulers write down here.
        self._notes: dict[str, Any] = {}

    def layout(self, has: tuple[bool, ...]) -> Layout:
        """What the update depends on besides arrays."""
        return Layout(self.places, self.used, tuple(sorted(self.options.items())), has, tuple(self.clocks.values()))

    def __getitem__(self, name: str) -> Any:
        if name == "params":
            return self.params
        if name in self.options:
            return self.options[name]
        place = self._place(name)
        if place is None:
            if name in self._notes:
                return self._notes[name]
            raise KeyError(f"a group of this optimizer has no {name!r}; it has {', '.join(self)}{at_line(user_line())}")
        start, count = place
        array: Any = self.numbers.value
        found = [array[i] for i in range(start, start + (count or 1))]
        values = [Tracer(x.builder, x.atom, True) if type(x) is Tracer else float(x) for x in found]
        return values[0] if count is None else tuple(values)

    def __setitem__(self, name: str, value: Any) -> None:
        place = self._place(name)
        if name == "params":
            raise KeyError(
                "the parameters of a group stay the same; optimizer.add_param_group({'params': ...}) adds others"
                + at_line(user_line())
            )
        if name in self.options:
            self.options = {**self.options, name: value}
        elif place is None:
            self._notes[name] = value
        else:
            self._set_number(name, place, value)

    def _set_number(self, name: str, place: tuple[int, int | None], value: Any) -> None:
        start, count = place
        values = (read(value),) if count is None else tuple(read(x) for x in value)
        if len(values) != (count or 1):
            raise ValueError(f"{name} has {count} numbers, not {len(values)}{at_line(user_line())}")
        _require_numbers(name, values)
        array = self.numbers.value
        if type(array) is Tracer or any(type(x) is Tracer for x in values):
            entries: list[Any] = [array[i] for i in range(len(array))]
            entries[start : start + len(values)] = [fnp.asarray(x, np.float64) for x in values]
            self.numbers.value = fnp.stack(entries)
        else:
            array = np.array(array)
            array[start : start + len(values)] = [float(x) for x in values]
            self.numbers.value = array
        if name not in self.used and _is_used(value):
            self.used = tuple(sorted([*self.used, name]))

    def _place(self, name: str) -> tuple[int, int | None] | None:
        return next(((start, count) for known, start, count in self.places if known == name), None)

    def keys(self) -> list[str]:
        """The names."""
        return ["params", *(name for name, _, _ in self.places), *self.options, *self._notes]

    def items(self) -> list[tuple[str, Any]]:
        """Names and values."""
        return [(name, self[name]) for name in self.keys()]

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a name, or `default` if there is none."""
        return self[name] if name in self.keys() else default

    def setdefault(self, name: str, default: Any = None) -> Any:
        """The value of a name, which is `default` from now on if there is none."""
        if name not in self:
            self[name] = default
        return self[name]

    def update(self, *others: Mapping[str, Any], **values: Any) -> None:
        """Set several values."""
        for name, value in {**dict(*others), **values}.items():
            self[name] = value

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def extra_repr(self) -> str:
        shown = [f"{name}={value}" for name, value in self.items() if name != "params"]
        return ", ".join([f"{len(self.params)} parameters", *shown])


def listed(params: Any, what: str) -> list[tuple[dict[str, Any], list[tuple[str, Any]]]]:
    """Groups as users give them: hyperparameters of each, and its parameters by path.

    Raises:
        TypeError: they are nothing of the kind.
        ValueError: there are none.
    """
    if isinstance(params, Module) or not isinstance(params, Iterable) or isinstance(params, Tensor | Mapping | str):
        return [({}, _named(params, what))]
    given = list(params)
    if given and all(isinstance(x, Mapping) for x in given):
        found = []
        for group in given:
            if "params" not in group:
                raise ValueError(
                    f"a group of parameters has the entry 'params', but this one has {', '.join(group) or 'none'}"
                    + at_line(user_line())
                )
            found.append(({k: x for k, x in group.items() if k != "params"}, _named(group["params"], what)))
        return found
    return [({}, _named(given, what))]


def _named(params: Any, what: str) -> list[tuple[str, Any]]:
    """Parameters with their paths."""
    if isinstance(params, Module):
        return [(path, p) for path, p in params.named_parameters() if p.requires_grad]
    if isinstance(params, Parameter):
        params = [params]
    if isinstance(params, Tensor | Mapping | str) or not isinstance(params, Iterable):
        raise TypeError(
            f"{what} takes model.parameters(), a model, a list of parameters, or a list of groups [{{'params': ..., "
            f"'lr': ...}}], not {type_name(params)}{at_line(user_line())}"
        )
    found = [_with_path(x, i, what) for i, x in enumerate(params)]
    if not found:
        raise ValueError(
            f"{what} was given no parameters; an iterator such as model.parameters() can be read once only, so write "
            f"list(model.parameters()) where two of them use it{at_line(user_line())}"
        )
    return found


def _with_path(x: Any, number: int, what: str) -> tuple[str, Any]:
    path = None
    if type(x) is tuple and len(x) == 2 and isinstance(x[0], str):
        path, x = x
    if isinstance(x, Parameter):
        return (path or x.path), x
    if isinstance(x, Tensor):
        if x.node is not None:
            raise ValueError(
                f"{what} updates leaves in place, and parameter {number} is the result of {x.node!r}; give "
                f"x.detach().requires_grad_(), or compute new values by optimizer.functional_step{at_line(user_line())}"
            )
        return path or str(number), x
    raise TypeError(
        f"{what} updates nn.Parameters and tensors, but parameter {number} is {type_name(x)}{at_line(user_line())}"
    )


def _is_used(value: Any) -> bool:
    values = value if is_plain(value, tuple | list) else (value,)
    return any(type(x) is Tracer or float(read(x)) != 0 for x in values)


def _require_numbers(name: str, values: tuple[Any, ...]) -> None:
    """Raise unless hyperparameters are in their range; traced ones are not looked at."""
    for x in values:
        if type(x) is Tracer:
            continue
        try:
            number = float(np.asarray(read(x)).astype(np.float64, casting="same_kind"))
        except (TypeError, ValueError):
            raise TypeError(f"{name} is a number, not {type_name(x)}{at_line(user_line())}") from None
        if name in _FRACTIONS and not 0 <= number < 1:
            raise ValueError(f"{name} must be at least 0 and less than 1, not {number}{at_line(user_line())}")
        if name not in _ANY_NUMBER and not number >= 0:
            raise ValueError(f"{name} must not be negative, but is {number}{at_line(user_line())}")
