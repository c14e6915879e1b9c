"""Module: a mutable object with parameters and a `forward`, which transformations of `ftrans.nn` accept as it is."""

from __future__ import annotations

import fnmatch
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import numpy as np

from ..base.source import at_line, user_line
from ..core.cell import Cell
from ..core.trace import Tracer, current_builder
from ..core.types import is_complex, is_inexact
from ..xla import put_on_device
from . import epoch
from .array_cell import ArrayCell
from .backward import overrides_backward
from .bare import REMEMBERED, joined
from .calling import CalledModule
from .cells import Buffer, Parameter
from .constants import is_constant, is_same
from .filling import filling
from .graph import graph_of
from .loading import LoadResult, load_state_dict
from .nested import attributes, walk
from .paths import all_paths, children_of, is_saved
from .pytrees import register


class Module(CalledModule):
    """Base class of neural networks and their layers.

    A subclass assigns parameters (`Parameter`), buffers (`Buffer`), streams of random numbers (`RngState`) and other
    modules to its attributes, directly or in lists, tuples, dicts and dataclasses, and computes in `forward`.  Calling
    the module runs it.  All else among the attributes is a constant of the forward code.  Compiled functions look at
    these constants in each call: at numbers, texts, functions and arrays, also in containers, and at attributes of the
    class.  What other objects hold, they see only while they are traced.

    Attributes:
        training: whether layers behave as in training, which dropout and batch normalization look at.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> class Model(nn.Module):
        ...     def __init__(self):
        ...         self.layer = nn.Linear(3, 2)
        ...     def forward(self, x):
        ...         return np.tanh(self.layer(x))
        >>> Model()(np.ones(3, np.float32)).shape
        (2,)
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("__slots__"):
            raise TypeError(
                f"{cls.__name__} has __slots__, in which no parameter would be found; leave them out"
                + at_line(user_line())
            )
        for name, x in vars(cls).items():
            if isinstance(x, Cell):
                raise TypeError(
                    f"{cls.__name__}.{name} is an attribute of the class, where all its instances would share one "
                    f"{type(x).__name__} and none would list it; assign self.{name} in __init__{at_line(user_line())}"
                )
        register(cls)
        cls._overrides_backward = overrides_backward(cls)

    # Attributes

    def __setattr__(self, name: str, value: Any) -> None:
        held = self.__dict__.get(name)
        if isinstance(held, ArrayCell) and not isinstance(value, Cell) and value is not None:
            if isinstance(held, Parameter):
                raise TypeError(
                    f"{joined(self.path, name)} is a Parameter; to change what it holds, write "
                    f"{name}.value = array, and to replace it, assign an nn.Parameter{at_line(user_line())}"
                )
            held.value = value
            return
        if held is value and (value is not None or name in self.__dict__) and value.__class__ not in (list, dict):
            return
        around = filling.get()
        if holds_traced(value) or (around is not None and id(self) in around.modules and current_builder() is not None):
            if not is_constant(value) or (held is not None and not is_same(held, value)):
                raise self._not_a_cell(name, value)
            if held is not None:
                return
        if isinstance(value, property):
            raise TypeError(f"{name} of a module cannot be a property of the instance")
        object.__setattr__(self, name, value)
        self._adopt(name, value)
        epoch.bump()

    def _not_a_cell(self, name: str, value: Any) -> TypeError:
        what = "a traced value" if holds_traced(value) else type(value).__name__
        if is_constant(value):
            what = f"another {what} than the one it has"
        return TypeError(
            f"the attribute {joined(self.path, name)} was assigned {what} in forward code that is being traced, and "
            f"would not follow later calls; make it a Buffer: self.{name} = nn.Buffer(initial array) in __init__, "
            f"after which self.{name} = array in forward() changes what it holds{at_line(user_line())}"
        )

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        epoch.bump()

    def _adopt(self, name: str, value: Any) -> None:
        """Tell cells and modules where they are, for messages; the first owner counts."""
        if name in self._borrowed:
            return
        for where, x in walk(name, value):
            if isinstance(x, ArrayCell):
                if x.owner is None or x.owner() is None:
                    x.owner, x.name = weakref.ref(self), where
            elif isinstance(x, Module):
                parent = x.__dict__.get("_parent")
                if parent is None or parent() is None:
                    object.__setattr__(x, "_parent", weakref.ref(self))
                    object.__setattr__(x, "_name", where)

    # Modules and cells

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and those inside it, each once, with their paths."""
        for path, module in graph_of(self).modules.items():
            yield joined(prefix, path) if path else prefix, module

    def modules(self) -> Iterator[Module]:
        """This module and those inside it, each once."""
        yield from graph_of(self).modules.values()

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly inside, with their names."""
        seen: set[int] = set()
        for name, x in children_of(self):
            if isinstance(x, Module) and id(x) not in seen:
                seen.add(id(x))
                yield name, x

    def children(self) -> Iterator[Module]:
        """The modules directly inside."""
        for _, module in self.named_children():
            yield module

    def named_cells(self) -> Iterator[tuple[str, ArrayCell]]:
        """All parameters, buffers and streams of random numbers, each once, with their paths."""
        graph = graph_of(self)
        yield from zip(graph.paths, graph.cells, strict=True)

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Parameter]]:
        """The parameters, each once, with their paths.

        Args:
            prefix: what stands before each path.
            recurse: whether those of the modules inside count, too.
        """
        for path, cell in self.named_cells():
            if isinstance(cell, Parameter) and (recurse or "." not in path):
                yield joined(prefix, path) if prefix else path, cell

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Buffer]]:
        """The buffers, each once, with their paths."""
        for path, cell in self.named_cells():
            if isinstance(cell, Buffer) and (recurse or "." not in path):
                yield joined(prefix, path) if prefix else path, cell

    def buffers(self, recurse: bool = True) -> Iterator[Buffer]:
        """The buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, path: str) -> Module:
        """The module at a path, such as `encoder.0`.

        Raises:
            AttributeError: there is none.
        """
        for candidate, module in self.named_modules():
            if candidate == path:
                return module
        raise AttributeError(
            f"{type(self).__name__} has no module {path!r}; it has "
            + ", ".join(p for p, _ in self.named_modules() if p)
        )

    def get_parameter(self, path: str) -> Parameter:
        """The parameter at a path, such as `encoder.0.weight`.

        Raises:
            AttributeError: there is none.
        """
        for candidate, cell in all_paths(self):
            if candidate == path and isinstance(cell, Parameter):
                return cell
        raise AttributeError(
            f"{type(self).__name__} has no parameter {path!r}; it has "
            + ", ".join(p for p, _ in self.named_parameters())
        )

    def add_module(self, name: str, module: Module | None) -> None:
        """Make a module an attribute."""
        _check_name(self, name)
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"add_module takes a Module, not {type(module).__name__}{at_line(user_line())}")
        setattr(self, name, module)

    register_module = add_module

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Make an array a buffer.

        Args:
            name: the attribute.
            tensor: the initial value, or None for none yet.
            persistent: whether it is part of `state_dict()`.
        """
        _check_name(self, name)
        setattr(self, name, tensor if tensor is None or isinstance(tensor, Buffer) else Buffer(tensor, persistent))

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Make a parameter an attribute."""
        _check_name(self, name)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"register_parameter takes an nn.Parameter, not {type(param).__name__}; write nn.Parameter(array)"
                + at_line(user_line())
            )
        setattr(self, name, param)

    # Switches

    def train(self, mode: bool = True) -> Self:
        """Put this module and those inside it into training; return it."""
        for module in self.modules():
            if module.training is not mode:
                object.__setattr__(module, "training", bool(mode))
                epoch.bump()
        return self

    def eval(self) -> Self:
        """Put this module and those inside it into evaluation; return it."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether gradients are taken with respect to the parameters; return the module."""
        for parameter in self.parameters():
            if is_inexact(parameter.dtype):
                parameter.requires_grad = requires_grad
        return self

    def freeze(self, *patterns: str) -> Self:
        """Take no gradients with respect to the parameters whose path fits one of the patterns.

        Args:
            patterns: paths with `*` for any text, such as `"enc.*"`; all parameters by default.

        Returns:
            The module.

        Raises:
            ValueError: a pattern fits no parameter.
        """
        return self._set_trained(patterns, False)

    def unfreeze(self, *patterns: str) -> Self:
        """The opposite of `freeze`."""
        return self._set_trained(patterns, True)

    def _set_trained(self, patterns: tuple[str, ...], requires_grad: bool) -> Self:
        parameters = dict(self.named_parameters())
        for pattern in patterns or ("*",):
            found = [p for path, p in parameters.items() if fnmatch.fnmatchcase(path, pattern)]
            if not found:
                inside = any(path.startswith(f"{pattern}.") for path in parameters)
                hint = f"; write {pattern + '.*'!r} for all parameters of that module" if inside else ""
                raise ValueError(
                    f"no parameter fits {pattern!r}; there are {', '.join(parameters) or 'none'}{hint}"
                    + at_line(user_line())
                )
            for parameter in found:
                parameter.requires_grad = requires_grad
        return self

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call a function with every module inside, the innermost first, and with this one; return the module."""
        for module in reversed(list(self.modules())):
            fn(module)
        return self

    def to(self, device: Any = None, dtype: Any = None) -> Self:
        """Convert floating-point parameters and buffers, or put all cells on a device; return the module.

        Args:
            device: a JAX device, or the name of a platform such as "cpu" or "gpu".
            dtype: dtype of the floating-point cells; may be given as the only argument.

        Raises:
            TypeError: a cell holds complex numbers, and the dtype is for real ones.
        """
        if device is not None and dtype is None and _is_dtype(device):
            device, dtype = None, device
        for _, cell in self.named_cells():
            if dtype is not None and is_inexact(cell.dtype):
                cell.to(dtype)
            if device is not None:
                cell.array = put_on_device(cell.value, device)
        return self

    def _with_real(self, dtype: Any) -> Self:
        for _, cell in self.named_cells():
            if is_inexact(cell.dtype) and not is_complex(cell.dtype):
                cell.to(dtype)
        return self

    def float(self) -> Self:
        """Convert real floating-point parameters and buffers to float32."""
        return self._with_real(np.float32)

    def half(self) -> Self:
        """Convert real floating-point parameters and buffers to float16."""
        return self._with_real(np.float16)

    def bfloat16(self) -> Self:
        """Convert real floating-point parameters and buffers to bfloat16."""
        return self._with_real("bfloat16")

    def cpu(self) -> Self:
        """Put all cells on the CPU."""
        return self.to("cpu")

    def cuda(self) -> Self:
        """Put all cells on the GPU."""
        return self.to("cuda")

    def double(self) -> Self:
        """Convert real floating-point parameters and buffers to float64."""
        return self._with_real(np.float64)

    def zero_grad(self) -> None:
        """Forget the gradients that `backward` has left in the parameters."""
        for parameter in self.parameters():
            parameter.zero_grad()

    # State

    def state_dict(self, prefix: str = "", rng: bool = False) -> dict[str, np.ndarray[Any, Any]]:
        """Copies of the parameters and persistent buffers, as NumPy arrays by path.

        Args:
            prefix: what stands before each path.
            rng: whether the streams of random numbers are in it, too.

        Returns:
            A dictionary with the names and layouts that torch uses for the same layers.  Cells that are one, such as
            tied weights, appear under each of their paths.
        """
        return {prefix + path: np.array(cell.value) for path, cell in all_paths(self) if is_saved(cell, rng)}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> LoadResult:
        """Overwrite parameters and buffers.

        Args:
            state_dict: arrays by path, as `state_dict()` gives them; also tensors of torch.
            strict: whether missing and unexpected paths are an error.

        Returns:
            The lists `missing_keys` and `unexpected_keys`.

        Raises:
            ValueError: paths are missing or unexpected, shapes differ, values do not fit the dtype (imaginary parts,
                fractions in integers), or paths of one array have different values; the message lists all of it.
                Nothing has been changed then.
        """
        return load_state_dict(self, state_dict, strict)

    # Print, copies

    def __repr__(self) -> str:
        lines = []
        for name, module in self.named_children():
            first, *rest = repr(module).split("\n")
            lines += [f"  ({name}): {first}", *("  " + line for line in rest)]
        extra = self.extra_repr()
        if not lines:
            return f"{type(self).__name__}({extra})"
        return "\n".join([f"{type(self).__name__}({extra}", *lines, ")"])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in attributes(self).items() if name not in REMEMBERED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name, value in state.items():
            self._adopt(name, value)
        epoch.bump()

    def __copy__(self) -> Self:
        """A module with attributes of its own, which are the cells, modules and containers of this one."""
        new = self.__class__.__new__(self.__class__)
        state = self.__getstate__()
        if "_hooks" in state:
            state["_hooks"] = {kind: dict(hooks) for kind, hooks in state["_hooks"].items()}
        new.__setstate__(state)
        return new


def holds_traced(value: Any) -> bool:
    """Whether a value is a traced one, or a container of such."""
    return value.__class__ is Tracer or any(x.__class__ is Tracer for _, x in walk("", value))


def _is_dtype(x: Any) -> bool:
    if isinstance(x, type | np.dtype):
        return True
    try:
        return isinstance(x, str) and x not in ("cpu", "gpu", "tpu", "cuda") and np.dtype(x) is not None
    except TypeError:
        return False


def _check_name(module: Module, name: str) -> None:
    if not isinstance(name, str) or not name or "." in name:
        raise ValueError(f"the name of an attribute is a text without dots, not {name!r}{at_line(user_line())}")
    if hasattr(type(module), name) and not isinstance(module.__dict__.get(name), Module | Cell):
        raise ValueError(f"{type(module).__name__} has an attribute {name!r} already{at_line(user_line())}")
