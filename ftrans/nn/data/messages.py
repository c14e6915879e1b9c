"""Messages between a loader and its workers: Python objects through a pipe, with the memory of arrays beside them.

Arrays of more than a few kilobytes are sent as they are, without a copy into the pickle.  Maps of files are sent as
their names.
"""

from __future__ import annotations

import io
import pickle
import struct
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

# Arrays below this size travel within the pickle.
_SMALL = 4096


class _Pickler(pickle.Pickler):
    """Pickles memory maps of whole files by name."""

    def reducer_override(self, x: Any) -> Any:
        # A part of a map is a map, too, but does not say where in the file it begins.
        if type(x) is np.memmap and x.filename is not None and not isinstance(x.base, np.ndarray):
            order = "C" if x.flags.c_contiguous else "F"
            return _mapped, (str(x.filename), x.dtype, x.offset, x.shape, order)
        return NotImplemented


def _mapped(path: str, dtype: Any, offset: int, shape: tuple[int, ...], order: Any) -> Any:
    return np.memmap(path, dtype, "r", offset, shape, order)


def pickled(x: Any) -> bytes:
    """An object as one pickle."""
    return bytes(_pickled(x, None))


def _pickled(x: Any, keep: Any) -> memoryview:
    file = io.BytesIO()
    _Pickler(file, protocol=5, buffer_callback=keep).dump(x)
    return file.getbuffer()


def packed(message: Any) -> list[Any]:
    """A message as parts to send: their number and sizes, the pickle, and the memory of arrays."""
    buffers: list[pickle.PickleBuffer] = []

    def keep(buffer: pickle.PickleBuffer) -> bool:
        if buffer.raw().nbytes < _SMALL:
            return True
        buffers.append(buffer)
        return False

    parts = [_pickled(message, keep), *(buffer.raw() for buffer in buffers)]
    return [struct.pack(f"{len(parts)}Q", *(part.nbytes for part in parts)), *parts]


def send(connection: Connection, parts: list[Any]) -> None:
    """Send what `packed` made."""
    for part in parts:
        connection.send_bytes(part)


def receive(connection: Connection) -> Any:
    """The next message.

    Raises:
        EOFError: the other process has closed the pipe, or has ended.
    """
    header = connection.recv_bytes()
    parts: list[Any] = [np.empty(size, np.uint8) for size in struct.unpack(f"{len(header) // 8}Q", header)]
    for part in parts:
        connection.recv_bytes_into(part)
    return pickle.loads(parts[0], buffers=parts[1:])
