"""Parametrizations: parameters computed by a module from others that are trained, as in `torch.nn.utils.parametrize`.

    layer.weight = layer.parametrizations.weight()      # whenever the weight is read

`layer.parametrizations.weight` is a list of modules that are applied one after the other to what is trained, its
parameter `original`, or parameters `original0`, `original1`, ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from ...autograd.creation import sharing
from ...autograd.modes import current_mode, no_grad
from ...base.cell import Eager, read
from ...base.forward_code import reading, speaking
from ...base.source import at_line, user_line
from ...base.type_questions import is_plain
from ...core.trace import Tracer, current_builder
from ...core.types import type_of
from ..cells.array_cell import ArrayCell
from ..cells.kinds import Buffer, Parameter
from ..modules.computed import cell_of, exchange, own_class
from ..modules.containers import ModuleDict, ModuleList
from ..modules.module import Module

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]


def __dir__() -> list[str]:
    return sorted(__all__)


class _Parametrized(NamedTuple):
    """The rule of an attribute with parametrizations."""

    def compute(self, module: Any, name: str) -> Any:
        return _computed(module.parametrizations[name])

    def assign(self, module: Any, name: str, value: Any) -> None:
        module.parametrizations[name].right_inverse(value)


class ParametrizationList(ModuleList):
    """The parametrizations of one parameter, and what it is computed from.

    `register_parametrization` makes it.  Calling it computes the parameter.

    Args:
        modules: the parametrizations; each takes the result of the one before, the first takes what is trained.
        original: the parameter or buffer. It is overwritten by what the `right_inverse` of the parametrizations makes
            of its value, if they have one.
        unsafe: whether a parametrization may change shape or dtype.

    Attributes:
        original: what is trained; `original0`, `original1`, ... if `right_inverse` returns several arrays.
        is_tensor: whether there is one array.
        ntensors: the number of arrays.
        unsafe: as given.

    Raises:
        ValueError: the parametrizations change shape or dtype, and `unsafe` is not set.
    """

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        before = original.type
        given = _inverted(modules, original.value, if_known=True)
        self.unsafe = unsafe
        self.is_tensor = not isinstance(given, tuple | list)
        self.ntensors = 1 if self.is_tensor else len(given)
        if self.is_tensor:
            original.value = given
            self.original = original
        else:
            for i, x in enumerate(given):
                new: ArrayCell
                if isinstance(original, Parameter):
                    new = Parameter(x, original.requires_grad and x.dtype.kind in "fcV")
                else:
                    new = Buffer(x)
                setattr(self, f"original{i}", new)
        super().__init__(modules)
        if not unsafe:
            _require_same(before, self(), "the parametrizations")

    def _like(self, items: Iterable[Any]) -> Any:
        return ModuleList(items)

    def originals(self) -> list[Any]:
        """What the parameter is computed from."""
        names = ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]
        return [self.__dict__[name] for name in names]

    def forward(self) -> Any:
        """The parameter."""
        given = [read(x) for x in self.originals()]
        for module in self:
            given = [module(*given)]
        return given[0]

    def right_inverse(self, value: Any) -> None:
        """Overwrite what is trained so that the parameter has a given value.

        Args:
            value: an array.

        Raises:
            NotImplementedError: a parametrization has no `right_inverse`.
            ValueError: what `right_inverse` returns has another shape or dtype than what is trained.
        """
        for module in self:
            if not hasattr(module, "right_inverse"):
                raise NotImplementedError(
                    f"a value is assigned to a parameter that {module.described()} computes, which has no "
                    f"right_inverse(self, value) to say what it is computed from; assign the parameters in "
                    f"{self.path or 'parametrizations'} instead{at_line(user_line())}"
                )
        found = _inverted(self, read(value))
        given = [found] if self.is_tensor else list(found)
        cells = self.originals()
        if len(given) != len(cells) or any([x.shape != c.shape for x, c in zip(given, cells, strict=True)]):
            raise ValueError(
                f"the right_inverse of {self.path} gives {', '.join(str(type_of(x)) for x in given)}, where "
                f"{', '.join(str(c.type) for c in cells)} are held{at_line(user_line())}"
            )
        for cell, x in zip(cells, given, strict=True):
            cell.value = x.astype(cell.dtype)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Let a parameter or buffer of a module be computed by another module from now on.

    The parameter stays what is trained, under the name `parametrizations.weight.original`.  If `parametrization` has a
    method `right_inverse`, that is called first with the value of the parameter, and returns what is trained instead,
    one array or several; assigning to `module.weight` calls it, too.  Further parametrizations are applied after those
    that are there.

    Args:
        module: the module.
        tensor_name: the name of the parameter or buffer.
        parametrization: a module whose forward code takes what is trained and returns the parameter.
        unsafe: whether it may change shape or dtype.

    Returns:
        The module.

    Raises:
        ValueError: there is no such parameter, or shape or dtype change and `unsafe` is not set.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> class Symmetric(nn.Module):
        ...     def forward(self, x):
        ...         return np.triu(x) + np.triu(x, 1).T
        >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
        >>> bool(np.allclose(layer.weight, layer.weight.T))
        True
        >>> list(layer.state_dict())
        ['bias', 'parametrizations.weight.original']
    """
    if not isinstance(parametrization, Module):
        raise TypeError(
            f"register_parametrization takes a Module that computes the parameter, not "
            f"{type(parametrization).__name__}{at_line(user_line())}"
        )
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        _append(_lists_of(module)[tensor_name], parametrization, unsafe)
        return module
    original = cell_of(module, tensor_name, "register_parametrization")
    held = original.value
    try:
        made = ParametrizationList([parametrization], original, unsafe)
    except BaseException:
        original.value = held
        raise
    made.train(module.training)
    others = _lists_of(module).items() if is_parametrized(module) else ()
    lists = ModuleDict([*others, (tensor_name, made)])
    exchange(module, {tensor_name: _Parametrized()}, [tensor_name], {"parametrizations": lists})
    if made.is_tensor:
        original.owner = None
        made._adopt("original", original)
    return module


def _lists_of(module: Module) -> ModuleDict:
    """The parametrizations of a module, by the name of the parameter."""
    return module.__dict__["parametrizations"]


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a parameter of a module has parametrizations.

    Args:
        module: the module.
        tensor_name: the name of the parameter; by default any.
    """
    found = module.__dict__.get("parametrizations")
    names = found.keys() if isinstance(found, ModuleDict) else ()
    return bool(names) if tensor_name is None else tensor_name in names


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a parameter one that is trained itself again.

    Args:
        module: the module.
        tensor_name: the name of the parameter.
        leave_parametrized: whether it keeps its present value; otherwise it gets the value of what was trained.

    Returns:
        The module.

    Raises:
        ValueError: the parameter has no parametrization, or `leave_parametrized` is not set and it is computed from
            several arrays.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"{tensor_name!r} of {module.described()} has no parametrization{at_line(user_line())}")
    made = _lists_of(module)[tensor_name]
    originals = made.originals()
    cell = originals[0]
    if not made.is_tensor:
        if not leave_parametrized:
            raise ValueError(
                f"{tensor_name!r} of {module.described()} is computed from {made.ntensors} arrays, none of which has "
                f"its value; pass leave_parametrized=True{at_line(user_line())}"
            )
        requires_grad = any([isinstance(x, Parameter) and x.requires_grad for x in originals])
        array = _concrete(getattr(module, tensor_name))
        cell = Parameter(array, requires_grad) if isinstance(cell, Parameter) else Buffer(array)
    elif leave_parametrized:
        cell.value = _concrete(getattr(module, tensor_name))
    others = {name: x for name, x in _lists_of(module).items() if name != tensor_name}
    new = {"parametrizations": ModuleDict(others)} if others else {}
    exchange(module, {tensor_name: None}, ["parametrizations"], {**new, tensor_name: cell})
    return module


def type_before_parametrizations(module: Module) -> type[Any]:
    """The class of a module, without its parametrizations.

    Args:
        module: the module.
    """
    return own_class(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give a module the parametrizations of another one, which both share then, with copies of what is trained.

    Args:
        from_module: the module with parametrizations.
        to_module: the other one, which has parameters of the same names.
        tensor_name: the name of the parameter; by default all that have parametrizations.

    Returns:
        `to_module`.

    Raises:
        ValueError: `from_module` has no parametrization of that name.
    """
    if not is_parametrized(from_module, tensor_name):
        raise ValueError(f"{from_module.described()} has no parametrization{at_line(user_line())}")
    for name in list(_lists_of(from_module)) if tensor_name is None else [tensor_name]:
        held = _lists_of(from_module)[name]
        if not is_parametrized(to_module, name):
            for parametrization in held:
                register_parametrization(to_module, name, parametrization, unsafe=True)
        for mine, other in zip(_lists_of(to_module)[name].originals(), held.originals(), strict=True):
            mine.value = np.array(other.value)
    return to_module


# Values that are kept

_kept: ContextVar[dict[Any, Any] | None] = ContextVar("parameters computed in a block", default=None)


@contextmanager
def cached() -> Iterator[None]:
    """A block in which each parameter with parametrizations is computed once, as long as what is trained stays.

    It saves time where a layer is called again and again, as a cell in a loop.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> cell = nn.utils.parametrizations.orthogonal(nn.RNNCell(3, 4), "weight_hh")
        >>> h = np.zeros((1, 4), np.float32)
        >>> with nn.utils.parametrize.cached():
        ...     for x in np.ones((5, 1, 3), np.float32):
        ...         h = cell(x, h)
    """
    token = _kept.set({} if _kept.get() is None else _kept.get())
    try:
        yield
    finally:
        _kept.reset(token)


def _computed(parametrizations: ParametrizationList) -> Any:
    kept = _kept.get()
    if kept is None:
        return parametrizations()
    # What is read depends on the trace, on the mode, and on what a transformation has put into the cells.
    used = (parametrizations, current_builder(), *[p.array for p in parametrizations.parameters()])
    key = (*map(id, used), reading.get() == "arrays", speaking.get(), current_mode())
    if key not in kept:
        kept[key] = (used, parametrizations())
    return kept[key][1]


# Inverses


def _inverted(modules: Iterable[Any], value: Any, if_known: bool = False) -> Any:
    """What is trained, an array or several, so that the parametrizations give a value.

    With `if_known`, those that have no inverse are left out.
    """
    if is_plain(value, np.ndarray):
        value = sharing(value)
    with no_grad():
        for module in reversed(list(modules)):
            try:
                value = module.right_inverse(value) if hasattr(module, "right_inverse") or not if_known else value
            except NotImplementedError:
                if not if_known:
                    raise
    if isinstance(value, tuple | list):
        return [_concrete(x) for x in value]
    return _concrete(value)


def _concrete(x: Any) -> Any:
    """The array that a cell shall hold, a copy."""
    x = read(x)
    if type(x) is Tracer:
        return x
    return np.array(x.concrete() if isinstance(x, Eager) else x)


def _append(held: ParametrizationList, parametrization: Module, unsafe: bool) -> None:
    """Add a parametrization after others."""
    if not unsafe:
        with no_grad():
            before = held()
            after = parametrization(before)
            _require_same(type_of(before), after, "the parametrization")
            _require_same(type_of(before), _inverted([parametrization], after, if_known=True), "its right_inverse")
    held.append(parametrization)
    held.unsafe = held.unsafe or unsafe


def _require_same(before: Any, after: Any, what: str) -> None:
    after = read(after)
    if not hasattr(after, "shape") or type_of(after) != before:
        found = type_of(after) if hasattr(after, "shape") else type(after).__name__
        raise ValueError(
            f"{what} made {found} of {before}; a parametrization keeps shape and dtype, unless it is registered with "
            f"unsafe=True{at_line(user_line())}"
        )
