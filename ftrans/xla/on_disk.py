"""Compiled programs on disk: JAX's persistent compilation cache, and a checksum of each of its files.

JAX writes what it compiles to a file of the folder, whose name says what was compiled and how, and reads it where the
same is asked for again.  Where files are compressed by Zstandard, it runs what it reads unchecked: one wrong bit gave
wrong results in silence.  So the folder has a list of checksums, to which each process adds those of files that it
finds new.  When a process begins to use the folder, files that have changed are removed, and so compiled again.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..base.foreign import ENDING_OF_COMPILED
from ..base.source import at_line, user_line

if TYPE_CHECKING:
    from pathlib import Path

_VARIABLE = "FTRANS_CACHE_DIR"
_LIST = "ftrans-checksums"
_FOLDER, _SECONDS = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"
# A file takes a millisecond or two to write and to read; JAX keeps only what takes a second to compile.
_SHORTEST, _SHORTEST_OF_JAX = 0.02, 1.0


class DiskCache:
    """Where the compiled programs of this process are kept.

    Attributes:
        folder: the folder; None where none is used.
        is_settled: whether JAX has been told.
    """

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.is_settled = False
        self._is_chosen = False
        # The settings of JAX that were changed: before and now.
        self._changed: dict[str, tuple[Any, Any]] = {}
        self._sums: dict[str, int] = {}
        self._lock = threading.Lock()

    def choose(self, folder: Path | None) -> None:
        """Use another folder, or none, from now on."""
        with self._lock:
            if folder is not None:
                _require_free(self._changed)
            self._leave()
            self.folder, self._is_chosen, self.is_settled = folder, True, False
        if "jax" in sys.modules:
            self.settle()

    def settle(self) -> None:
        """Tell JAX about the folder, which has been imported by now."""
        with self._lock:
            if self.is_settled:
                return
            self.is_settled = True
            given = os.environ.get(_VARIABLE)
            if self._is_chosen or not given:
                if self.folder is None:
                    return
            elif _folder_of_jax() is None:
                self.folder = made(given)
            else:
                return
            import jax

            self._check()
            self._change(_FOLDER, str(self.folder))
            if getattr(jax.config, _SECONDS) == _SHORTEST_OF_JAX and _SECONDS.upper() not in os.environ:
                self._change(_SECONDS, _SHORTEST)
            _forget_settings()

    def add_new(self) -> None:
        """Note the checksums of files that are new in the folder."""
        if self.folder is None:
            return
        with self._lock:
            found = {path.name: _sum_of(path) for path in self._files() if path.name not in self._sums}
            new = {name: value for name, value in found.items() if value is not None}
            if new:
                self._sums |= new
                # A process may have been killed in the line before.
                lines = "".join(f"\n{name} {value:08x}\n" for name, value in new.items())
                # That a folder is full, or gone, is no reason not to compute; JAX has given a warning.
                with suppress(OSError), open(self.folder / _LIST, "a", encoding="utf-8") as file:
                    file.write(lines)

    def _leave(self) -> None:
        """Give JAX its settings back, but for those that somebody has changed since."""
        if not self._changed:
            return
        import jax

        for name, (before, now) in self._changed.items():
            if getattr(jax.config, name) == now:
                jax.config.update(name, before)
        self._changed.clear()
        self._sums.clear()
        _forget_settings()

    def _change(self, name: str, value: Any) -> None:
        import jax

        self._changed[name] = getattr(jax.config, name), value
        jax.config.update(name, value)

    def _files(self) -> list[Path]:
        assert self.folder is not None
        return sorted(self.folder.glob(f"*{ENDING_OF_COMPILED}"))

    def _check(self) -> None:
        """Remove files that are not as they were written."""
        assert self.folder is not None
        self._sums = _listed(self.folder / _LIST)
        for path in self._files():
            if path.name in self._sums and _sum_of(path) not in (None, self._sums[path.name]):
                path.unlink(missing_ok=True)
                del self._sums[path.name]
                warnings.warn(
                    f"{path} is damaged, and was removed; what it held is compiled again{at_line(user_line())}",
                    RuntimeWarning,
                    stacklevel=2,
                )
        present = {path.name for path in self._files()}
        self._sums = {name: value for name, value in self._sums.items() if name in present}


disk_cache = DiskCache()


def made(path: str | os.PathLike[str]) -> Path:
    """A folder to write to, made if it does not exist.

    Raises:
        ValueError: it cannot be made, or not be written to.
    """
    from pathlib import Path

    folder = Path(path).expanduser().absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / _LIST, "ab"):
            pass
    except OSError as error:
        raise ValueError(
            f"compiled programs cannot be kept in {os.fspath(path)!r}: {error.strerror}; give a folder that this "
            f"process may write to{at_line(user_line())}"
        ) from None
    return folder


def _require_free(ours: dict[str, tuple[Any, Any]]) -> None:
    """Raise if the user has told JAX where to keep compiled programs."""
    folder = _folder_of_jax()
    if folder is not None and ours.get(_FOLDER, (None, None))[1] != folder:
        raise ValueError(
            f"JAX has been told to keep compiled programs in {folder!r}, those of ftrans included; take that back, "
            f"jax.config.update({_FOLDER!r}, None), or do without set_cache_dir{at_line(user_line())}"
        )


def _folder_of_jax() -> str | None:
    """The folder that JAX has been told of."""
    if "jax" not in sys.modules:
        return os.environ.get(_FOLDER.upper())
    import jax

    found: str | None = getattr(jax.config, _FOLDER)
    return found


def _forget_settings() -> None:
    """Have JAX look at its settings again, which it does once."""
    from jax.experimental.compilation_cache import compilation_cache

    compilation_cache.reset_cache()


def _sum_of(path: Path) -> int | None:
    """The checksum of a file; None if another process has removed it."""
    try:
        return zlib.crc32(path.read_bytes())
    except FileNotFoundError:
        return None


def _listed(path: Path) -> dict[str, int]:
    """The checksums in a list, without lines that a process was killed in."""
    sums = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, value = line.rpartition(" ")
        if name and len(value) == 8 and not value.strip("0123456789abcdef"):
            sums[name] = int(value, 16)
    return sums
