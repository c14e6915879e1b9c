"""Contents: what a module holds, and the switches that reach into all of it."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from ..base.source import at_line, user_line
from ..core.cell import Cell
from ..core.types import is_complex, is_inexact
from ..xla import put_on_device
from . import epoch
from .array_cell import ArrayCell
from .cells import Buffer, Parameter, RngState
from .nested import attributes, walk

if TYPE_CHECKING:
    from .module import Module

# What a module remembers about itself, which copies do not have.
REMEMBERED = ("_graph", "_graphs", "_parent")


class Contents:
    """The part of a module that lists its modules, parameters and buffers, and sets what they have in common."""

    training: bool = True

    # Modules and cells

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and those inside it, each once, with their paths."""
        for path, module in _graph_of(self).modules.items():
            yield joined(prefix, path) if path else prefix, module

    def modules(self) -> Iterator[Module]:
        """This module and those inside it, each once."""
        yield from _graph_of(self).modules.values()

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly inside, with their names."""
        seen: set[int] = set()
        for name, x in children_of(self):
            if isinstance(x, Contents) and id(x) not in seen:
                seen.add(id(x))
                yield name, cast("Module", x)

    def children(self) -> Iterator[Module]:
        """The modules directly inside."""
        for _, module in self.named_children():
            yield module

    def named_cells(self) -> Iterator[tuple[str, ArrayCell]]:
        """All parameters, buffers and streams of random numbers, each once, with their paths."""
        graph = _graph_of(self)
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
        if module is not None and not isinstance(module, Contents):
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
        from .state import load_state_dict

        return load_state_dict(cast("Module", self), state_dict, strict)


class LoadResult(tuple[list[str], list[str]]):
    """What `load_state_dict` found: a pair (missing_keys, unexpected_keys)."""

    def __new__(cls, missing: list[str], unexpected: list[str]) -> LoadResult:
        return super().__new__(cls, (missing, unexpected))  # type: ignore[arg-type]

    @property
    def missing_keys(self) -> list[str]:
        """Paths of the module that were not given."""
        return self[0]

    @property
    def unexpected_keys(self) -> list[str]:
        """Given paths that the module does not have."""
        return self[1]


def joined(path: str, name: Any) -> str:
    """The path of a part."""
    return f"{path}.{name}" if path else str(name)


def children_of(module: Contents) -> Iterator[tuple[str, Any]]:
    """The cells and modules among the attributes, also in lists and dicts, with their names."""
    for name, x in attributes(module).items():
        if name != "_hooks" and name not in REMEMBERED:
            for where, part in walk(name, x):
                if isinstance(part, ArrayCell | Contents):
                    yield where, part


def all_paths(module: Contents, prefix: str = "", above: tuple[int, ...] = ()) -> Iterator[tuple[str, ArrayCell]]:
    """All ways to cells, so that a cell that is reached twice appears twice."""
    for name, x in children_of(module):
        path = joined(prefix, name)
        if isinstance(x, ArrayCell):
            yield path, x
        elif id(x) not in above:
            yield from all_paths(x, path, (*above, id(module)))


def is_saved(cell: ArrayCell, rng: bool) -> bool:
    """Whether a cell is in the state dictionary; streams of random numbers only with `rng`."""
    if isinstance(cell, RngState):
        return rng
    return not isinstance(cell, Buffer) or cell.persistent


def _graph_of(module: Any) -> Any:
    from .graph import graph_of

    return graph_of(module)


def _is_dtype(x: Any) -> bool:
    if isinstance(x, type | np.dtype):
        return True
    try:
        return isinstance(x, str) and x not in ("cpu", "gpu", "tpu", "cuda") and np.dtype(x) is not None
    except TypeError:
        return False


def _check_name(module: Contents, name: str) -> None:
    if not isinstance(name, str) or not name or "." in name:
        raise ValueError(f"the name of an attribute is a text without dots, not {name!r}{at_line(user_line())}")
    if hasattr(type(module), name) and not isinstance(module.__dict__.get(name), Contents | Cell):
        raise ValueError(f"{type(module).__name__} has an attribute {name!r} already{at_line(user_line())}")
