"""Saving and loading arrays by name: in one file, or in a folder to which each process writes its parts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...base.source import at_line, user_line
from ...xla import is_readable, place, this_process
from ..modules.module import Module
from ..modules.paths import all_paths
from ..modules.roots import require_module
from .files import TRAINING, files_of_index, read_arrays, write_arrays
from .folders import SUFFIX, arrays_of, read_folder, write_folder
from .nested import LAYOUT, is_flat, put_together, taken_apart


def save(path: str | os.PathLike[str], model: Module | Mapping[str, Any]) -> None:
    """Write the parameters and buffers of a model, or a dictionary, to a file or folder.

    If the path ends with `.orbax`, it becomes a folder in the format of Orbax (`pip install 'ftrans[scale]'`), to which
    each process writes the parts that it holds; all processes must call `save`.  Any other path becomes a safetensors
    file, which process 0 writes.  The file has the names and layouts of torch, so `safetensors.torch.load_file` reads a
    state dict from it.  An existing file or folder is replaced atomically: a process that is killed leaves the old one
    or the new one.

    Args:
        path: the file, usually with the suffix `.safetensors`, or the folder, with the suffix `.orbax`.
        model: a module, whose `state_dict()` is written; or arrays by name; or a dictionary with state dicts, numbers,
            strings, None, lists and tuples among its values, which only a file can hold.  There, an array in inner
            dictionaries has its path for a name, such as `model.0.weight`.

    Raises:
        TypeError: a value is something else, or an array has a dtype that the format does not support.
        ValueError: parts of an array are in other processes, and the path is that of a file.
        ImportError: the package for the format is not installed.

    Example:
        >>> import numpy as np, os, tempfile
        >>> from ftrans import nn
        >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
        >>> nn.save(path, {"weight": np.arange(3.0)})
        >>> nn.load(path)["weight"]
        array([0., 1., 2.])
        >>> nn.save(path, {"model": nn.Linear(2, 1).state_dict(), "epoch": 3})
        >>> nn.load(path)["epoch"]
        3
    """
    if not isinstance(model, Module | Mapping):
        swapped = "; the path comes first: nn.save(path, model)" if isinstance(path, Module | Mapping) else ""
        raise TypeError(
            f"save takes a module or a dictionary of arrays by name, not {type(model).__name__}{swapped}"
            f"{at_line(user_line())}"
        )
    # That of an optimizer of `nn.optim` is no flat dictionary of arrays.
    arrays, metadata = Module.state_dict(model) if isinstance(model, Module) else model, {}
    if Path(path).suffix == SUFFIX:
        if not is_flat(arrays):
            raise TypeError(
                f"a folder {SUFFIX} holds arrays by name and nothing else; save the rest in a file of its own"
                + at_line(user_line())
            )
        write_folder(path, arrays_of(model) if isinstance(model, Module) else model, {})
        return
    if not is_flat(arrays):
        arrays, metadata[LAYOUT] = taken_apart(arrays)
    divided = [name for name, x in arrays.items() if not is_readable(x)]
    if divided:
        raise ValueError(
            f"parts of {divided[0]} are in other processes, so this one cannot write {os.fspath(path)}; give a path "
            f"that ends with {SUFFIX}, to which each process writes its parts, or write nn.save(path, "
            f"model.state_dict(gather=True)){at_line(user_line())}"
        )
    if this_process().index == 0:
        write_arrays(path, arrays, metadata)


def load(path: str | os.PathLike[str], like: Module | None = None) -> dict[str, Any]:
    """Read a state dict from a file or folder that `save`, `nn.fit` or torch has written.

    Args:
        path: a safetensors file, an index of several (`model.safetensors.index.json`), or a folder with the suffix
            `.orbax`.
        like: a model.  Arrays with paths in this model are put on the devices of its arrays, with the same sharding.
            From a folder, each process reads only the parts that it needs.

    Returns:
        Arrays by name, for `model.load_state_dict`: NumPy arrays, or JAX arrays for those that `like` has on a mesh of
        devices.  Other content of a checkpoint of `nn.fit`, such as the state of the optimizer, is left out.  Of a
        dictionary with other values that `save` has written: that dictionary.

    Raises:
        FileNotFoundError: the file or folder does not exist.
        ValueError: it has another format, or is damaged.
        ImportError: the package for the format is not installed.

    Example:
        >>> import os, tempfile
        >>> from ftrans import nn
        >>> model, path = nn.Linear(3, 2), os.path.join(tempfile.mkdtemp(), "model.safetensors")
        >>> nn.save(path, model)
        >>> nn.Linear(3, 2).load_state_dict(nn.load(path))
        ([], [])
    """
    if like is not None:
        require_module(like, "like= of nn.load is")
    cells = {} if like is None else dict(all_paths(like))
    if Path(path).is_dir() or Path(path).suffix == SUFFIX:
        return read_folder(path, _is_of_model, cells)[0]
    arrays: dict[str, Any] = {}
    for file in files_of_index(path) or [Path(path)]:
        found, metadata = read_arrays(file, _is_of_model)
        if LAYOUT in metadata:
            whole: dict[str, Any] = put_together(found, metadata[LAYOUT])
            return whole
        arrays |= found
    placed = {
        name: cells[name].sharding for name in arrays if name in cells and cells[name].shape == arrays[name].shape
    }
    return {name: x if placed.get(name) is None else place(x, placed[name]) for name, x in arrays.items()}


def _is_of_model(name: str) -> bool:
    return not name.startswith(TRAINING)
