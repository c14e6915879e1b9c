"""Checkpoints: everything that a training needs to continue as if it had not been interrupted.

A checkpoint is one file, `last.safetensors` or `best.safetensors`: the state dict of the model under its own names; the
other cells (streams of random numbers, non-persistent buffers, the state of the optimizer) under names that begin with
"@"; and in the header a record of the state of the training.  The file is replaced atomically, so arrays and record
always belong together.  The record is also written to `last.json`, for people and tools.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...base.source import at_line, user_line
from ..array_cell import ArrayCell
from ..module import Module
from ..optimizer import Optimizer
from ..paths import is_saved
from .files import TRAINING, read_arrays, replacing, write_arrays

LAST, BEST, CURVES = "last", "best", "curves.png"
# Grows whenever files of the older form cannot be read as they are.
_VERSION = 1
_RECORD = "ftrans.fit"


def write(directory: Path, name: str, model: Module, optimizer: Optimizer, record: dict[str, Any]) -> None:
    """Write a checkpoint."""
    directory.mkdir(parents=True, exist_ok=True)
    arrays = model.state_dict()
    arrays.update({key: cell.value for key, cell in _other_cells(model, optimizer)})
    record = {"version": _VERSION, **record}
    write_arrays(directory / f"{name}.safetensors", arrays, {_RECORD: json.dumps(record)})
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in record.items()]
    with replacing(directory / f"{name}.json") as file:
        file.write("\n".join(["{", ",\n".join(lines), "}\n"]).encode())


def find(path: str | os.PathLike[str]) -> Path | None:
    """The checkpoint at a path: a file, or the last one in a directory."""
    found = Path(path)
    if found.is_dir():
        found = found / f"{LAST}.safetensors"
    elif found.suffix == ".json":
        found = found.with_suffix(".safetensors")
    return found if found.exists() else None


def read(path: Path, model: Module, optimizer: Optimizer) -> dict[str, Any]:
    """Restore a model and an optimizer from a checkpoint; return its record.

    Raises:
        ValueError: the file is not a checkpoint, or belongs to another model or optimizer.
    """
    arrays, metadata = read_arrays(path)
    if _RECORD not in metadata:
        raise ValueError(
            f"{path} holds arrays, but is not a checkpoint of nn.fit, so a training cannot be resumed from it; to "
            f"start with its arrays, write model.load_state_dict(nn.load({str(path)!r})) before{at_line(user_line())}"
        )
    record = json.loads(metadata[_RECORD])
    if record["version"] != _VERSION:
        raise ValueError(
            f"{path} has version {record['version']} of the checkpoint format, but this ftrans reads version "
            f"{_VERSION}; nn.load reads its parameters{at_line(user_line())}"
        )
    others = dict(_other_cells(model, optimizer))
    given = {key: x for key, x in arrays.items() if key.startswith(TRAINING)}
    problems = [
        *(f"the checkpoint has no {key}" for key in others if key not in given),
        *(f"the checkpoint has {key}, for which there is no place" for key in given if key not in others),
        *(
            f"{key} is {cell.type}, in the checkpoint it has the shape {given[key].shape}"
            for key, cell in others.items()
            if key in given and given[key].shape != cell.shape
        ),
    ]
    if problems:
        raise ValueError(
            f"{path} is a checkpoint of another model or optimizer; pass those that it was made with to nn.fit:"
            + "".join(f"\n  {problem}" for problem in problems)
            + at_line(user_line())
        )
    load_model(model, arrays)
    for key, cell in others.items():
        cell.value = given[key].astype(cell.dtype)
    return record


def load_model(model: Module, arrays: dict[str, Any]) -> None:
    """Restore a model from a checkpoint."""
    model.load_state_dict({name: x for name, x in arrays.items() if not name.startswith(TRAINING)})


def _other_cells(model: Module, optimizer: Optimizer) -> Iterator[tuple[str, ArrayCell]]:
    """The cells that are not in the state dict of the model, by their names in a checkpoint."""
    of_model = set()
    for path, cell in model.named_cells():
        of_model.add(id(cell))
        if not is_saved(cell, rng=False):
            yield f"{TRAINING}model/{path}", cell
    for path, cell in optimizer.named_cells():
        if id(cell) not in of_model:
            yield f"{TRAINING}optimizer/{path}", cell
