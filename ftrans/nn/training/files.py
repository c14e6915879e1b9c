"""Files of named arrays, in the safetensors format.

Files are replaced atomically: a process that is killed while writing leaves the old one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ...base.source import at_line, user_line
from ...xla import from_all, this_process
from ..modules.loading import as_numpy

# What the format calls the dtypes of NumPy.
_DTYPES = {
    "BOOL": "bool",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "BF16": "bfloat16",
    "C64": "complex64",
}
# Names that begin so belong to the state of a training, not to the model.
TRAINING = "@"


def write_arrays(
    path: str | os.PathLike[str], arrays: Mapping[str, Any], metadata: Mapping[str, str] | None = None
) -> None:
    """Write a file of arrays, with strings as metadata."""
    found = {name: _storable(name, x) for name, x in arrays.items()}
    content = _library().numpy.save(found, metadata={"format": "pt", **(metadata or {})})
    with replacing(path) as file:
        file.write(content)


def read_arrays(
    path: str | os.PathLike[str], wanted: Callable[[str], bool] = lambda name: True
) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, str]]:
    """The requested arrays of a file, and its metadata."""
    library = _library()
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"there is nothing at {os.fspath(path)!r}{at_line(user_line())}") from None
    try:
        found = library.deserialize(content)
        with library.safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
    except library.SafetensorError as error:
        raise _not_readable(path, str(error)) from None
    return {name: _array(x) for name, x in found if wanted(name)}, metadata


def files_of_index(path: str | os.PathLike[str]) -> list[Path] | None:
    """The files that an index names, as those of large models are divided; None if the path is that of no index.

    Raises:
        FileNotFoundError: there is no such index.
        ValueError: it names no files.
    """
    if Path(path).suffix != ".json":
        return None
    if not Path(path).exists():
        raise FileNotFoundError(f"there is nothing at {os.fspath(path)!r}{at_line(user_line())}")
    try:
        names = sorted(set(json.loads(Path(path).read_bytes())["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(
            f"{os.fspath(path)} is no index of safetensors files, which has a 'weight_map' of names to files"
            + at_line(user_line())
        ) from None
    return [Path(path).parent / name for name in names]


def _library() -> Any:
    """The safetensors library."""
    try:
        import safetensors.numpy
    except ImportError:
        raise ImportError(
            f"files of arrays need the package safetensors: pip install 'ftrans[nn]'{at_line(user_line())}"
        ) from None
    return safetensors


def _array(x: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """An array of a file, in its own memory."""
    name = _DTYPES.get(x["dtype"])
    if name is None:
        raise ValueError(f"arrays of type {x['dtype']} are not supported{at_line(user_line())}")
    return np.frombuffer(bytearray(x["data"]), _dtype(name)).reshape(x["shape"])


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new file to write to, which replaces the one at `path` when the block ends without an error."""
    target = Path(path)
    new = target.with_name(target.name + ".new")
    with open(new, "wb") as file:
        yield file
        file.flush()
        # Without this, the name could reach the disk before the contents.
        os.fsync(file.fileno())
    os.replace(new, target)
    if os.name == "posix":
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def by_first(work: Callable[[], None]) -> None:
    """Have process 0 write something, for which the others wait; all processes must call this.

    Raises:
        RuntimeError: process 0 has failed; there, its own error.
    """
    failed: Exception | None = None
    if this_process().index == 0:
        try:
            work()
        except Exception as error:
            failed = error
    said = from_all("" if failed is None else f"{type(failed).__name__}: {failed}", "what process 0 writes")[0]
    if failed is not None:
        raise failed
    if said:
        raise RuntimeError(f"process 0, which writes for all, has failed with {said}{at_line(user_line())}")


def _storable(name: str, given: Any) -> np.ndarray[Any, Any]:
    """A value as an array in the layout of the file format."""
    x = as_numpy(given)
    if x.dtype.name not in _DTYPES.values():
        raise TypeError(
            f"{name} is {x.dtype}, which a safetensors file cannot hold; it holds {', '.join(_DTYPES.values())}"
            + at_line(user_line())
        )
    return np.ascontiguousarray(x.astype(x.dtype.newbyteorder("<"), copy=False)).reshape(x.shape)


def _dtype(name: str) -> np.dtype[Any]:
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name).newbyteorder("<")


def _not_readable(path: str | os.PathLike[str], why: str) -> ValueError:
    hint = ""
    if Path(path).suffix in (".bin", ".ckpt", ".pt", ".pth"):
        hint = "; files of torch are read by torch.load(path, weights_only=True), which gives a state dict of tensors"
    return ValueError(f"{os.fspath(path)} is not a readable safetensors file: {why}{hint}{at_line(user_line())}")
