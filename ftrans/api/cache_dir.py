"""The folder in which compiled programs are kept from one process to the next."""

from __future__ import annotations

import os

from ..base.source import at_line, user_line
from ..xla import disk_cache, made
from .call import type_name


def set_cache_dir(path: str | os.PathLike[str] | None) -> None:
    """Keep compiled programs in a folder, so that the next process need not compile them again.

    It switches on JAX's persistent compilation cache, so what other code compiles by JAX is kept, too: programs that
    took longer than 20 ms, for the same versions, options and kind of device.  Tracing is done again.
    JAX 0.10 keeps no programs that call functions on the host; with newer versions, these call the functions of the
    process that reads them.  Several processes may use a folder at once.  A file that is damaged is ignored with a
    warning.  Nothing is ever removed for being old; delete the folder to start anew.

    Only use a folder that nobody else can write to: what is in it is run.

    The environment variable FTRANS_CACHE_DIR does the same, unless JAX has been told of a folder of its own.

    Args:
        path: the folder, which is made if it does not exist; None to keep nothing from now on, which is how a process
            starts, and to give JAX its settings back.

    Raises:
        TypeError: `path` is not a path.
        ValueError: the folder cannot be written to, or JAX has been told to keep compiled programs elsewhere, or not at
            all.

    Example:
        >>> import ftrans as ft, tempfile
        >>> ft.set_cache_dir(tempfile.mkdtemp())
        >>> ft.set_cache_dir(None)
    """
    if path is not None and not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"set_cache_dir takes the path of a folder, or None, but the argument is {type_name(path)}"
            + at_line(user_line())
        )
    disk_cache.choose(None if path is None else made(path))
