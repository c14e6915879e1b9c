"""Checkpoints: everything that a training needs to continue as if it had not been interrupted.

A checkpoint is a file, `last.safetensors` or `best.safetensors`; or a folder, `last.orbax` or `best.orbax`, to which
each process writes its parts of the arrays.  It holds the state dict of the model under its own names; the other cells
(streams of random numbers, non-persistent buffers, the state of the optimizer) under names that begin with "@"; and a
record of the state of the training.  It is replaced atomically, so arrays and record always belong together.  The
record is also written to `last.json`, for people and tools.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...base.source import at_line, user_line
from ...xla import from_all, gathered, is_readable, this_process
from ..cells.array_cell import ArrayCell
from ..modules.loading import converted
from ..modules.module import Module
from ..modules.paths import all_paths, is_saved
from .files import TRAINING, by_first, read_arrays, replacing, write_arrays
from .folders import SUFFIX, arrays_of, latest_in, on_devices, read_folder, write_folder

LAST, BEST, CURVES = "last", "best", "curves.png"
# What checkpoints may be written as, and how their names end.
FORMATS = {"safetensors": ".safetensors", "orbax": SUFFIX}
# Grows whenever files of the older form cannot be read as they are.
_VERSION = 1
_RECORD = "ftrans.fit"


def write(
    directory: Path, name: str, model: Module, others: Mapping[str, Module], record: dict[str, Any], form: str | None
) -> None:
    """Write a checkpoint in one of `FORMATS`: by default as a file, unless other processes hold parts of an array.

    All processes must call this.

    Args:
        directory: where it is written.
        name: its name.
        model: the model.
        others: by name, the other modules that have a state.
        record: the state of the training.
        form: the format, or None.
    """
    arrays = {**arrays_of(model), **{key: on_devices(cell) for key, cell in _other_cells(model, others)}}
    form = form or ("safetensors" if all(map(is_readable, arrays.values())) else "orbax")
    file, folder = (directory / f"{name}{suffix}" for suffix in FORMATS.values())
    record = {"version": _VERSION, **record}

    def finish() -> None:
        """What process 0 does alone."""
        if form == "orbax":
            file.unlink(missing_ok=True)
        else:
            directory.mkdir(parents=True, exist_ok=True)
            write_arrays(file, whole, {_RECORD: json.dumps(record)})
            _remove(folder)
        lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in record.items()]
        with replacing(directory / f"{name}.json") as json_file:
            json_file.write("\n".join(["{", ",\n".join(lines), "}\n"]).encode())

    whole: dict[str, Any] = {}
    if form == "orbax":
        write_folder(folder, arrays, {_RECORD: record})
    else:
        whole = {key: gathered(x) for key, x in arrays.items()}
    by_first(finish)


def _remove(folder: Path) -> None:
    """Remove a folder, which never looks like a newer checkpoint meanwhile."""
    removed = folder.with_suffix(".removed")
    shutil.rmtree(removed, ignore_errors=True)
    if folder.exists():
        folder.rename(removed)
        shutil.rmtree(removed)


def find(path: str | os.PathLike[str]) -> Path | None:
    """The checkpoint at a path: a file, a folder, or the last one in a directory."""
    found = Path(path)
    if found.suffix == ".json":
        return newest(found.parent, found.stem)
    if found.is_dir() and found.suffix != SUFFIX:
        return newest(found, LAST)
    return found if _written_at(found) is not None else None


def newest(directory: Path, name: str) -> Path | None:
    """The checkpoint of a name in a directory; the newer one, if a process was killed before it removed the other."""
    times = {path: _written_at(path) for suffix in FORMATS.values() if (path := directory / f"{name}{suffix}")}
    complete = {path: time for path, time in times.items() if time is not None}
    return max(complete, key=complete.__getitem__, default=None)


def agreed(path: Path | None) -> Path | None:
    """The checkpoint that process 0 has found; all processes must call this.

    Raises:
        FileNotFoundError: this process does not see it.
    """
    found = from_all("" if path is None else os.fspath(path), "the choice of a checkpoint")[0]
    if not found:
        return None
    if _written_at(Path(found)) is None:
        raise FileNotFoundError(
            f"process 0 resumes from {found!r}, which {this_process()} does not see; give a directory that all "
            f"processes share{at_line(user_line())}"
        )
    return Path(found)


def _written_at(path: Path) -> int | None:
    """When a checkpoint was written; None if there is none."""
    complete = latest_in(path) if path.suffix == SUFFIX else path
    return complete.stat().st_mtime_ns if complete is not None and complete.exists() else None


def read(path: Path, model: Module, others: Mapping[str, Module]) -> dict[str, Any]:
    """Restore a model and other modules from a checkpoint, on the devices that they are on; return its record.

    Raises:
        ValueError: the file is not a checkpoint, or belongs to another model or optimizer.
    """
    cells = dict(_other_cells(model, others))
    arrays, record = _contents(path, {**dict(all_paths(model)), **cells})
    if record is None:
        raise ValueError(
            f"{path} holds arrays, but is not a checkpoint of nn.fit, so a training cannot be resumed from it; to "
            f"start with its arrays, write model.load_state_dict(nn.load({str(path)!r})) before{at_line(user_line())}"
        )
    if record["version"] != _VERSION:
        raise ValueError(
            f"{path} has version {record['version']} of the checkpoint format, but this ftrans reads version "
            f"{_VERSION}; nn.load reads its parameters{at_line(user_line())}"
        )
    given = {key: x for key, x in arrays.items() if key.startswith(TRAINING)}
    problems = [
        *(f"the checkpoint has no {key}" for key in cells if key not in given),
        *(f"the checkpoint has {key}, for which there is no place" for key in given if key not in cells),
        *(
            f"{key} is {cell.type}, in the checkpoint it has the shape {given[key].shape}"
            for key, cell in cells.items()
            if key in given and given[key].shape != cell.shape
        ),
    ]
    if problems:
        raise ValueError(
            f"{path} is a checkpoint of another model or optimizer; pass those that it was made with to nn.fit:"
            + "".join(f"\n  {problem}" for problem in problems)
            + at_line(user_line())
        )
    _load(path, model, arrays)
    for key, cell in cells.items():
        cell.value = converted(given[key], cell.dtype)
    return record


def load_model(path: Path, model: Module) -> None:
    """Restore a model from a checkpoint."""
    _load(path, model, _contents(path, dict(all_paths(model)))[0])


def _contents(path: Path, cells: dict[str, ArrayCell]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The arrays of a checkpoint, where the cells of the same names are, and its record."""
    if path.suffix == SUFFIX:
        arrays, record = read_folder(path, like=cells)
        return arrays, record.get(_RECORD)
    arrays, metadata = read_arrays(path)
    return arrays, json.loads(metadata[_RECORD]) if _RECORD in metadata else None


def _load(path: Path, model: Module, arrays: dict[str, Any]) -> None:
    try:
        model.load_state_dict({name: x for name, x in arrays.items() if not name.startswith(TRAINING)})
    except ValueError as error:
        raise ValueError(f"{path} is a checkpoint of another model: {error}") from None


def _other_cells(model: Module, others: Mapping[str, Module]) -> Iterator[tuple[str, ArrayCell]]:
    """The cells that are not in the state dict of the model, by their names in a checkpoint."""
    of_model = set()
    for path, cell in model.named_cells():
        of_model.add(id(cell))
        if not is_saved(cell, rng=False):
            yield f"{TRAINING}model/{path}", cell
    for name, module in others.items():
        for path, cell in module.named_cells():
            if id(cell) not in of_model:
                yield f"{TRAINING}{name}/{path}", cell
