"""Folders of named arrays, in the format of orbax: each process writes and reads the parts that it holds.

A folder holds one state, in a subfolder with a number.  The next state is written beside it under another name, gets
the next number when it is complete, and only then the older one is removed.  So a process that is killed while writing
leaves the old state or the new one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...xla import in_64_bits, is_jax, watch
from ..cells.array_cell import ArrayCell
from ..cells.inplace import require_numbers
from ..modules.loading import as_numpy
from ..modules.module import Module
from ..modules.paths import all_paths, is_saved

SUFFIX = ".orbax"
_ARRAYS, _RECORD = "arrays", "record"
# orbax stores no arrays without elements: the record has their shapes and dtypes, and the names of the others.
_EMPTY, _OTHERS = "empty", "others"


def write_folder(path: str | os.PathLike[str], arrays: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """Write arrays and a record to a folder, in place of what it holds; all processes must call this."""
    found = {name: x if is_jax(x) else as_numpy(x) for name, x in arrays.items()}
    for name, x in found.items():
        require_numbers(x, name)
    if Path(path).is_file():
        raise _no_folder(path, "it is a file")
    empty = {name: found.pop(name) for name in arrays if 0 in found[name].shape}
    types = {name: [list(x.shape), np.dtype(x.dtype).name] for name, x in empty.items()}
    with watch.waiting_for("all processes to write a checkpoint"), _orbax() as orbax:
        items = {_RECORD: orbax.args.JsonSave({_EMPTY: types, _OTHERS: [*found], **record})}
        if found:
            items[_ARRAYS] = orbax.args.PyTreeSave(found)
        options = orbax.CheckpointManagerOptions(
            cleanup_tmp_directories=True,
            enable_async_checkpointing=False,
            preservation_policy=orbax.checkpoint_managers.preservation_policy.LatestN(1),
        )
        folder = Path(path).absolute()
        with orbax.CheckpointManager(folder, options=options, item_handlers=_handlers(orbax)) as manager:
            manager.save((manager.latest_step() or 0) + 1, args=orbax.args.Composite(**items))


def read_folder(
    path: str | os.PathLike[str],
    wanted: Callable[[str], bool] = lambda name: True,
    like: Mapping[str, ArrayCell] | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The requested arrays of a folder, and its record.

    Args:
        path: the folder.
        wanted: whether the array of a name is read.
        like: cells by name.  Where one is on a mesh of devices, an array of its name and shape is read to these
            devices, divided as it is; others become arrays of NumPy.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"there is nothing at {os.fspath(path)!r}{at_line(user_line())}")
    if Path(path).is_file():
        raise _no_folder(path, "it is a file")
    latest = latest_in(Path(path))
    if latest is None:
        files = sorted(p.name for p in Path(path).iterdir() if p.suffix in (SUFFIX, ".safetensors"))
        hint = f", but {' and '.join(files)}: give the path of one of them" if files else ""
        raise _no_folder(path, f"it holds no complete state{hint}")
    with _orbax() as orbax:
        try:
            return _restored(orbax, latest.absolute(), wanted, like or {})
        except Exception as error:
            # What orbax and TensorStore raise for damaged files is of many types.
            raise _no_folder(path, f"{type(error).__name__}: {error}") from error


def _restored(
    orbax: Any, folder: Path, wanted: Callable[[str], bool], like: Mapping[str, ArrayCell]
) -> tuple[dict[str, Any], dict[str, Any]]:
    with orbax.Checkpointer(orbax.CompositeCheckpointHandler(**_handlers(orbax))) as checkpointer:
        items = orbax.args.Composite(**{_RECORD: orbax.args.JsonRestore()})
        record = checkpointer.restore(folder, args=items)[_RECORD]
        empty, others = record.pop(_EMPTY), record.pop(_OTHERS)
        arrays = {name: np.zeros(shape, dtype) for name, (shape, dtype) in empty.items() if wanted(name)}
        if any(map(wanted, others)):
            types = checkpointer.metadata(folder).item_metadata[_ARRAYS].tree
            chosen = orbax.args.PyTreeRestore(
                {name: 0 if wanted(name) else orbax.PLACEHOLDER for name in others},
                restore_args={name: _place(orbax, types[name].shape, like.get(name)) for name in others},
            )
            found = checkpointer.restore(folder, args=orbax.args.Composite(**{_ARRAYS: chosen}))[_ARRAYS]
            arrays |= {name: x for name, x in found.items() if wanted(name)}
    return arrays, record


def _place(orbax: Any, shape: tuple[int, ...], like: ArrayCell | None) -> Any:
    """Where an array is read to, in orbax's words."""
    if like is None or like.sharding is None or like.shape != tuple(shape):
        return orbax.RestoreArgs(restore_type=np.ndarray)
    return orbax.ArrayRestoreArgs(sharding=like.sharding)


@contextmanager
def _orbax() -> Iterator[Any]:
    """orbax, which makes arrays of any dtype in this block."""
    with in_64_bits():
        try:
            import orbax.checkpoint as orbax
        except ImportError as error:
            raise ImportError(
                "arrays that are divided over processes, and checkpoints with the suffix .orbax, need the package "
                f"orbax-checkpoint: pip install 'ftrans[scale]' ({error}){at_line(user_line())}"
            ) from None
        yield orbax


def _handlers(orbax: Any) -> dict[str, Any]:
    """What writes and reads the parts of a state."""
    return {_ARRAYS: orbax.PyTreeCheckpointHandler(), _RECORD: orbax.JsonCheckpointHandler()}


def latest_in(path: Path) -> Path | None:
    """The subfolder that holds the state of a folder; None if there is none, or none that is complete."""
    numbers = [int(p.name) for p in path.iterdir() if p.name.isdecimal()] if path.is_dir() else []
    return path / str(max(numbers)) if numbers else None


def arrays_of(model: Module) -> dict[str, Any]:
    """The state dict of a model; arrays on a mesh of devices stay there."""
    return {path: on_devices(cell) for path, cell in all_paths(model) if is_saved(cell, rng=False)}


def on_devices(cell: ArrayCell) -> Any:
    """The array of a cell, where it is."""
    return cell.value if cell.sharding is None else cell.array


def _no_folder(path: str | os.PathLike[str], why: str) -> ValueError:
    lines = why.strip().splitlines()
    return ValueError(f"{os.fspath(path)} is not a readable folder of orbax: {lines[0][:300]}{at_line(user_line())}")
