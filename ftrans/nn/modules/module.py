"""Module: a mutable object with parameters and a `forward`, which the transformations of `ftrans.nn` take directly."""

from __future__ import annotations

import fnmatch
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from ...base.cell import Cell
from ...base.forward_code import ForwardArray, plain
from ...base.source import at_line, user_line
from ...core.trace import Tracer, current_builder
from ...core.types import is_complex, is_inexact
from ...xla import put_on_device
from ..cells import epoch
from ..cells.array_cell import ArrayCell
from ..cells.filling import filling
from ..cells.kinds import Buffer, Parameter
from .backward import overrides_backward
from .bare import REMEMBERED, joined
from .constants import is_constant, is_same
from .graph import graph_of
from .nested import attributes, walk
from .paths import all_modules, all_paths, children_of
from .pytrees import register
from .stateful import StatefulModule

_PACKAGE = __name__.partition(".")[0]


class Module(StatefulModule):
    """Base class of models and their layers.

    In a subclass, assign parameters (`Parameter`), buffers (`Buffer`), random states (`RngState`) and other modules to
    attributes, also in lists, tuples, dicts and dataclasses, and define `forward`, which runs when the module is
    called.  All other attributes are constants of the forward code.  Compiled functions check these constants on every
    call: numbers, strings, functions and arrays, also in containers, and attributes of the class.  The contents of
    other objects are read only while tracing.

    Attributes:
        training: whether the module is in training mode, which affects dropout and batch normalization.

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
                f"{cls.__name__} has __slots__, in which parameters would not be found; remove them"
                + at_line(user_line())
            )
        for name, x in vars(cls).items():
            if isinstance(x, Cell):
                raise TypeError(
                    f"{cls.__name__}.{name} is a class attribute, so all instances would share one "
                    f"{type(x).__name__} and none would list it; assign self.{name} in __init__{at_line(user_line())}"
                )
        register(cls)
        cls._overrides_backward = overrides_backward(cls)
        cls._is_of_user = getattr(cls.forward, "__module__", "").partition(".")[0] != _PACKAGE

    # Attributes

    def __setattr__(self, name: str, value: Any) -> None:
        if type(value) is ForwardArray:
            value = plain(value)
        held = self.__dict__.get(name)
        if isinstance(held, ArrayCell) and not isinstance(value, Cell) and value is not None:
            if isinstance(held, Parameter):
                raise TypeError(
                    f"{joined(self.path, name)} is a Parameter; to change its value, write "
                    f"{name}.value = array, and to replace it, assign an nn.Parameter{at_line(user_line())}"
                )
            held.value = value
            return
        if held is value and (value is not None or name in self.__dict__) and type(value) not in (list, dict):
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
            f"would not be updated in later calls; make it a Buffer: self.{name} = nn.Buffer(initial array) in "
            f"__init__, after which self.{name} = array in forward() updates it{at_line(user_line())}"
        )

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        epoch.bump()

    def _adopt(self, name: str, value: Any) -> None:
        """Tell cells and modules their path, for messages; the first owner counts."""
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

    def named_modules(
        self, memo: Any = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all modules inside it, with their paths.

        Args:
            memo: accepted as in torch, without effect.
            prefix: prepended to each path.
            remove_duplicate: whether a module with several paths comes once, with the first of them.
        """
        found = graph_of(self).modules.items() if remove_duplicate else all_modules(self)
        for path, module in found:
            yield joined(prefix, path) if path else prefix, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all modules inside it.

        Args:
            remove_duplicate: whether a module with several paths comes once.
        """
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly inside, each once, with their names."""
        seen: set[int] = set()
        for name, x in children_of(self):
            if isinstance(x, Module) and id(x) not in seen:
                seen.add(id(x))
                yield name, x

    def children(self) -> Iterator[Module]:
        """The modules directly inside, each once."""
        for _, module in self.named_children():
            yield module

    def named_cells(self) -> Iterator[tuple[str, ArrayCell]]:
        """All parameters, buffers and streams of random numbers, each once, with their paths."""
        graph = graph_of(self)
        yield from zip(graph.paths, graph.cells, strict=True)

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters, with their paths.

        Args:
            prefix: prepended to each path.
            recurse: whether to include parameters of modules inside.
            remove_duplicate: whether a parameter with several paths comes once, with the first of them.
        """
        for path, cell in self.named_cells() if remove_duplicate else all_paths(self):
            if isinstance(cell, Parameter) and (recurse or "." not in path):
                yield joined(prefix, path) if prefix else path, cell

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once.

        Args:
            recurse: whether to include parameters of modules inside.
        """
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Buffer]]:
        """The buffers, with their paths.

        Args:
            prefix: prepended to each path.
            recurse: whether to include buffers of modules inside.
            remove_duplicate: whether a buffer with several paths comes once, with the first of them.
        """
        for path, cell in self.named_cells() if remove_duplicate else all_paths(self):
            if isinstance(cell, Buffer) and (recurse or "." not in path):
                yield joined(prefix, path) if prefix else path, cell

    def buffers(self, recurse: bool = True) -> Iterator[Buffer]:
        """The buffers, each once.

        Args:
            recurse: whether to include buffers of modules inside.
        """
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The module at a path, such as `encoder.0`; this module for the empty path.

        Args:
            target: the path.

        Raises:
            AttributeError: there is none.
        """
        for candidate, module in self.named_modules():
            if candidate == target:
                return module
        raise self._not_there("module", target, [p for p, _ in self.named_modules() if p])

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replace the module at a path, or add one where the path has none yet.

        Args:
            target: the path, such as `encoder.0`.
            module: the module.
            strict: whether there must be a module at the path already.

        Raises:
            ValueError: the path is empty.
            AttributeError: there is no module that it could be put into, or with `strict` none at the path.
            TypeError: `module` is not a module.
        """
        if not isinstance(module, Module):
            raise TypeError(f"set_submodule takes a Module, not {type(module).__name__}{at_line(user_line())}")
        if not target:
            raise ValueError(f"set_submodule takes the path of a module inside this one, not ''{at_line(user_line())}")
        if strict:
            self.get_submodule(target)
        parent, _, name = target.rpartition(".")
        owner: Any = self.get_submodule(parent)
        if hasattr(owner, "__setitem__") and not hasattr(owner, name):
            owner[int(name) if name.isdecimal() else name] = module
        else:
            setattr(owner, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path, such as `encoder.0.weight`.

        Args:
            target: the path.

        Raises:
            AttributeError: there is none.
        """
        return self._cell_at(target, Parameter, "parameter")

    def get_buffer(self, target: str) -> Buffer:
        """The buffer at a path, such as `encoder.1.running_mean`.

        Args:
            target: the path.

        Raises:
            AttributeError: there is none.
        """
        return self._cell_at(target, Buffer, "buffer")

    def _cell_at(self, target: str, kind: Any, what: str) -> Any:
        found = [(path, cell) for path, cell in all_paths(self) if isinstance(cell, kind)]
        for path, cell in found:
            if path == target:
                return cell
        raise self._not_there(what, target, [path for path, _ in found])

    def _not_there(self, what: str, path: str, known: list[str]) -> AttributeError:
        there = f"it has {', '.join(known)}" if known else "it has none"
        return AttributeError(f"{type(self).__name__} has no {what} {path!r}; {there}{at_line(user_line())}")

    def add_module(self, name: str, module: Module | None) -> None:
        """Assign a module to an attribute.

        Args:
            name: name of the attribute.
            module: the module, or None.
        """
        _check_name(self, name)
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"add_module takes a Module, not {type(module).__name__}{at_line(user_line())}")
        setattr(self, name, module)

    register_module = add_module

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Assign a buffer to an attribute.

        Args:
            name: name of the attribute.
            tensor: its initial value, or None to leave it empty.
            persistent: whether it is part of `state_dict()`.
        """
        _check_name(self, name)
        setattr(self, name, tensor if tensor is None or isinstance(tensor, Buffer) else Buffer(tensor, persistent))

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Assign a parameter to an attribute.

        Args:
            name: name of the attribute.
            param: the parameter, or None.
        """
        _check_name(self, name)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"register_parameter takes an nn.Parameter, not {type(param).__name__}; write nn.Parameter(array)"
                + at_line(user_line())
            )
        setattr(self, name, param)

    # Switches

    def train(self, mode: bool = True) -> Self:
        """Set this module and all modules inside it to training mode.

        Args:
            mode: True for training mode, False for evaluation mode.

        Returns:
            The module.
        """
        for module in self.modules():
            if module.training is not mode:
                object.__setattr__(module, "training", bool(mode))
                epoch.bump()
        return self

    def eval(self) -> Self:
        """Set this module and all modules inside it to evaluation mode; return the module."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether gradients with respect to the parameters are computed; return the module."""
        for parameter in self.parameters():
            if is_inexact(parameter.dtype):
                parameter.requires_grad = requires_grad
        return self

    def freeze(self, *patterns: str) -> Self:
        """Exclude parameters from training: set `requires_grad` of those whose path matches a pattern to False.

        Args:
            patterns: paths, with `*` for any characters, such as `"enc.*"`; all parameters by default.

        Returns:
            The module.

        Raises:
            ValueError: a pattern matches no parameter.
        """
        return self._set_trained(patterns, False)

    def unfreeze(self, *patterns: str) -> Self:
        """Include parameters in training again, the opposite of `freeze`.

        Args:
            patterns: as for `freeze`.

        Returns:
            The module.

        Raises:
            ValueError: a pattern matches no parameter.
        """
        return self._set_trained(patterns, True)

    def _set_trained(self, patterns: tuple[str, ...], requires_grad: bool) -> Self:
        parameters = dict(self.named_parameters())
        for pattern in patterns or ("*",):
            found = [p for path, p in parameters.items() if fnmatch.fnmatchcase(path, pattern)]
            if not found:
                inside = any(path.startswith(f"{pattern}.") for path in parameters)
                hint = f"; write {pattern + '.*'!r} for all parameters of that module" if inside else ""
                raise ValueError(
                    f"no parameter matches {pattern!r}; there are {', '.join(parameters) or 'none'}{hint}"
                    + at_line(user_line())
                )
            for parameter in found:
                parameter.requires_grad = requires_grad
        return self

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call a function with every module inside, innermost first, and finally with this one.

        Args:
            fn: a function of a module.

        Returns:
            The module.
        """
        for module in reversed(list(self.modules())):
            fn(module)
        return self

    def to(self, device: Any = None, dtype: Any = None) -> Self:
        """Convert floating-point parameters and buffers to a dtype, or move all cells to a device.

        Args:
            device: a JAX device, or the name of a platform such as "cpu" or "gpu".
            dtype: dtype for the floating-point cells; may be the only argument.

        Returns:
            The module.

        Raises:
            TypeError: a cell holds complex numbers, and the dtype is real.
        """
        if device is not None and dtype is None and _is_dtype(device):
            device, dtype = None, device
        for _, cell in self.named_cells():
            if dtype is not None and is_inexact(cell.dtype):
                cell.to(dtype)
            if device is not None:
                cell.move(put_on_device(cell.value, device))
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
        """Move all cells to the CPU."""
        return self.to("cpu")

    def cuda(self) -> Self:
        """Move all cells to the GPU."""
        return self.to("cuda")

    def double(self) -> Self:
        """Convert real floating-point parameters and buffers to float64."""
        return self._with_real(np.float64)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients that `backward` has accumulated in the parameters.

        Args:
            set_to_none: whether gradients become None; otherwise they become zeros, where there are any.
        """
        for parameter in self.parameters():
            parameter.zero_grad(set_to_none)

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

    def _repr_html_(self) -> str:
        from .module_page import page_of_module

        return page_of_module(self)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in attributes(self).items() if name not in REMEMBERED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name, value in state.items():
            self._adopt(name, value)
        epoch.bump()

    def __copy__(self) -> Self:
        """A shallow copy: a module with its own attributes, which are the same cells, modules and containers."""
        new = self.__class__.__new__(self.__class__)
        state = self.__getstate__()
        if "_hooks" in state:
            state["_hooks"] = {kind: dict(hooks) for kind, hooks in state["_hooks"].items()}
        new.__setstate__(state)
        return new


def holds_traced(value: Any) -> bool:
    """Whether a value is traced, or a container of traced values."""
    return type(value) is Tracer or any(type(x) is Tracer for _, x in walk("", value))


def _is_dtype(x: Any) -> bool:
    if isinstance(x, type | np.dtype):
        return True
    try:
        return isinstance(x, str) and x not in ("cpu", "gpu", "tpu", "cuda") and np.dtype(x) is not None
    except TypeError:
        return False


def _check_name(module: Module, name: str) -> None:
    if not isinstance(name, str) or not name or "." in name:
        raise ValueError(f"the name of an attribute must be a string without dots, not {name!r}{at_line(user_line())}")
    if hasattr(type(module), name) and not isinstance(module.__dict__.get(name), Module | Cell):
        raise ValueError(f"{type(module).__name__} already has an attribute {name!r}{at_line(user_line())}")
