"""Weights of models that were written for torch: state dicts with other names, loaded into a model and made of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...api.call import type_name
from ...base.foreign_arrays import tensor_of_numpy
from ...base.source import at_line, user_line
from ...xla import are_equal
from ..cells.array_cell import ArrayCell
from ..cells.kinds import RngState
from ..modules.loading import array_of, checked_array, put_arrays, saved_cells
from ..modules.module import Module
from ..modules.roots import require_module
from ..training.saving import load
from .renaming import Renaming, Target, Transposed


def from_torch(
    state_dict: Any, model: Module, rename: Any = None, *, transpose: Any = (), strict: bool = True
) -> Module:
    """Load the weights of a model of torch into a model whose parameters have other names.

    This is about weights: the model is one of ftrans, such as `examples/pretrained.py` has for GPT-2, BERT, ResNet and
    ViT, and needs no torch.  `ft.from_torch` is about functions: it calls a function or module of torch as it is, and
    torch computes.  Where the names are the same, `model.load_state_dict(state_dict)` is enough.

    Args:
        state_dict: arrays by name, of torch, NumPy or JAX, or the path of a safetensors file or of an index of several.
        model: the model, whose parameters and buffers are overwritten.
        rename: what a name of the state dict is called in the model.  A dictionary: an entry is for a whole name, or
            for what a name begins with, up to a dot, and the longest entry counts.  A sequence of pairs of a regular
            expression and its replacement, as for `re.sub`: all of them are applied, in order.  A function of the name.
            A new name of None leaves an array out.  `path[i/n]` is the part `i` of `n` equal ones along the first axis
            of a parameter, such as `attention.in_proj_weight[0/3]` for the queries.
        transpose: regular expressions that are found in the names of the matrices (as they are in `state_dict`) to
            transpose, such as those of the layers `Conv1D` of GPT-2.
        strict: whether all paths of the model must be given, and all arrays have a place in it.  Otherwise, what is not
            given stays as it is, as a new last layer does.

    Returns:
        `model`.

    Raises:
        ValueError: names or shapes do not match.  The message lists all of them, and nothing has been changed.
        TypeError: an argument is of the wrong kind.
        FileNotFoundError: there is no such file.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> weights = {"h.0.fc.weight": np.ones((3, 2), np.float32), "h.0.fc.bias": np.zeros(2, np.float32)}
        >>> model = nn.Sequential(nn.Linear(3, 2))
        >>> model = nn.from_torch(weights, model, rename={"h.0.fc": "0"}, transpose=r"fc\\.weight")
        >>> model(np.ones(3, np.float32))
        array([3., 3.], dtype=float32)
    """
    require_module(model, "nn.from_torch loads into")
    arrays = _arrays_in(state_dict)
    renaming, transposed = Renaming(rename), Transposed(transpose)
    places = _Places()
    for name, x in arrays.items():
        target = renaming.target(name)
        if target is not None:
            places.add(name, target, _oriented(name, x, name in transposed, places.problems))
    put_arrays(model, places.whole_arrays(), strict, "from_torch", places.origins(), places.problems)
    return model


class _Places:
    """What belongs where in a model, put together of its parts.

    Attributes:
        problems: what does not fit together.
    """

    def __init__(self) -> None:
        self._found: dict[str, dict[Target, tuple[str, Any]]] = {}
        self.problems: list[str] = []

    def add(self, name: str, target: Target, x: Any) -> None:
        """Note an array for a place.  Tied parameters may have several names."""
        others = self._found.setdefault(target.path, {})
        for other, (known, y) in others.items():
            if other.parts != target.parts or (other == target and not are_equal(x, y)):
                why = "has another value" if other == target else f"is {other}"
                self.problems.append(f"{name} is renamed to {target}, but {known} {why}")
                return
        others[target] = name, x

    def origins(self) -> dict[str, str]:
        """The names that belong to each path."""
        return {path: ", ".join(name for name, _ in found.values()) for path, found in self._found.items()}

    def whole_arrays(self) -> dict[str, Any]:
        """The arrays by path."""
        whole = {}
        for path, found in self._found.items():
            parts = [found[target][1] for target in sorted(found)]
            numbers, count = [target.part for target in sorted(found)], next(iter(found)).parts
            shapes = {x.shape for x in parts}
            if numbers != [*range(count)]:
                self.problems.append(f"{path} needs the parts 0 to {count - 1} of {count}, given were {numbers}")
            elif count > 1 and (len(shapes) > 1 or () in shapes):
                self.problems.append(f"{path} has parts of the shapes {', '.join(str(x.shape) for x in parts)}")
            else:
                whole[path] = parts[0] if count == 1 else np.concatenate(parts)
        return whole


def to_torch(
    model: Module, rename: Any = None, *, transpose: Any = (), like: Any = None, numpy: bool = False
) -> dict[str, Any]:
    """The weights of a model as a state dict with the names and layouts of a model of torch.

    It is the way back of `nn.from_torch`, with the same `rename` and `transpose`.  `ft.to_torch` is about functions: it
    makes one of torch of one that is written with ftrans.

    Args:
        model: the model.
        rename: as for `nn.from_torch`: what names of the state dict are called in the model.  A dictionary is read
            backwards; the others need `like`.
        transpose: as for `nn.from_torch`.
        like: the names that are wanted, such as `module.state_dict()` of the model of torch.  If it holds arrays, their
            shapes are compared, and those that `rename` leaves out are taken over.
        numpy: whether to return NumPy arrays, for `nn.save`; torch is then not needed.

    Returns:
        Tensors of torch by name, copies, for `load_state_dict` of the model of torch.

    Raises:
        ValueError: names or shapes do not match; the message lists all of them.
        TypeError: an argument is of the wrong kind.
        ImportError: torch is not installed.

    Example:
        >>> from ftrans import nn
        >>> model = nn.Sequential(nn.Linear(3, 2))
        >>> weights = nn.to_torch(model, rename={"h.0.fc": "0"}, transpose=r"fc\\.weight", numpy=True)
        >>> {name: x.shape for name, x in weights.items()}
        {'h.0.fc.weight': (3, 2), 'h.0.fc.bias': (2,)}
    """
    require_module(model, "nn.to_torch takes")
    to_tensor = (lambda x: x) if numpy else _maker_of_tensors()
    renaming, transposed = Renaming(rename), Transposed(transpose)
    cells = {path: cell for path, cell in saved_cells(model).items() if not isinstance(cell, RngState)}
    wanted: dict[str, Any] = dict.fromkeys(renaming.names_of(cells)) if like is None else _names_in(like)
    targets = {name: renaming.target(name) for name in wanted}
    problems = _uncovered(cells, targets)
    found: dict[str, Any] = {}
    for name, target in targets.items():
        if target is None:
            if wanted[name] is not None:
                found[name] = checked_array(name, wanted[name]).copy()
        elif target.path in cells:
            x = _oriented(name, _part_of(cells[target.path], target, name, problems), name in transposed, problems)
            # safetensors does not write tensors that share memory.
            found[name] = x = np.array(x, order="C")
            shape = getattr(wanted[name], "shape", x.shape)
            if tuple(shape) != x.shape:
                problems.append(f"{name} has the shape {tuple(shape)}, that of the model {x.shape}")
    if problems:
        raise ValueError(
            f"to_torch of {type(model).__name__} was given names that do not match:"
            + "".join(f"\n  {problem}" for problem in problems)
            + at_line(user_line())
        )
    return {name: to_tensor(x) for name, x in found.items()}


def _uncovered(cells: Mapping[str, ArrayCell], targets: Mapping[str, Target | None]) -> list[str]:
    """What keeps names from being all names of a model."""
    problems = []
    covered: dict[int, list[Target]] = {}
    for name, target in targets.items():
        if target is not None and target.path in cells:
            covered.setdefault(id(cells[target.path]), []).append(target)
        elif target is not None:
            problems.append(f"{name} is {target} in the model, which has no such path")
    for path, cell in cells.items():
        given = covered.get(id(cell))
        if given is None:
            problems.append(f"{path} has no name")
        elif not {*range(given[0].parts)} <= {target.part for target in given}:
            problems.append(f"{path} has names for {', '.join(map(str, given))} alone")
    return problems


def _arrays_in(state_dict: Any) -> dict[str, Any]:
    """The arrays of a state dict, of NumPy or on a mesh of devices."""
    if isinstance(state_dict, str | os.PathLike):
        state_dict = load(state_dict)
    if isinstance(state_dict, Mapping):
        return {str(name): checked_array(str(name), x) for name, x in state_dict.items()}
    if hasattr(state_dict, "state_dict"):
        hint = "write module.state_dict()"
    elif callable(state_dict):
        hint = "a function of torch becomes one of arrays by ft.from_torch"
    else:
        hint = "module.state_dict() or nn.load(path) gives one"
    raise TypeError(
        f"nn.from_torch takes a dictionary of arrays by name, not {type_name(state_dict)}; {hint}{at_line(user_line())}"
    )


def _names_in(like: Any) -> dict[str, Any]:
    """The names that are wanted, and the arrays that are known under them."""
    if isinstance(like, Mapping):
        return dict(like)
    if isinstance(like, str) or hasattr(like, "state_dict") or not hasattr(like, "__iter__"):
        raise TypeError(
            f"like is a dictionary or a list of names, such as module.state_dict(), not {type_name(like)}"
            + at_line(user_line())
        )
    return dict.fromkeys(like)


def _oriented(name: str, x: Any, is_transposed: bool, problems: list[str]) -> Any:
    """An array in the other layout, if it is one that is transposed."""
    if is_transposed and x.ndim != 2:
        problems.append(f"{name} has the shape {tuple(x.shape)}, and only matrices are transposed")
    return x.T if is_transposed and x.ndim == 2 else x


def _part_of(cell: ArrayCell, target: Target, name: str, problems: list[str]) -> Any:
    x = np.asarray(array_of(cell, gather=True))
    if target.parts == 1:
        return x
    if not x.ndim or x.shape[0] % target.parts or target.part >= target.parts:
        problems.append(f"{name} is {target} in the model, where the array of shape {x.shape} has no such part")
        return x
    return np.split(x, target.parts)[target.part]


def _maker_of_tensors() -> Callable[[Any], Any]:
    try:
        import torch  # noqa: F401
    except ImportError:
        raise ImportError(
            "nn.to_torch makes tensors of torch, which is not installed; numpy=True gives NumPy arrays"
            + at_line(user_line())
        ) from None
    return tensor_of_numpy
