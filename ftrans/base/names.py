"""Names for things in printed programs, generated code and pictures: letters, Python identifiers, printable text."""

from __future__ import annotations

import functools
import keyword
import unicodedata
from collections.abc import Callable, Hashable
from typing import Any


class Names(dict[Hashable, str]):
    """Gives letters to variables in the order in which they appear, skipping Python's keywords and `np`."""

    _TAKEN = frozenset((*keyword.kwlist, "np"))

    _count = 0

    def fresh(self) -> str:
        """The next unused name: a, b, ..., z, aa, ab, ..."""
        while True:
            name = _letters(self._count)
            self._count += 1
            if name not in self._TAKEN:
                return name

    def __missing__(self, var: Hashable) -> str:
        name = self[var] = self.fresh()
        return name


@functools.lru_cache(maxsize=10_000)
def _letters(n: int) -> str:
    before, last = divmod(n, 26)
    return (_letters(before - 1) if before else "") + chr(ord("a") + last)


@functools.lru_cache(maxsize=1_000)
def identifier(name: str) -> str:
    """A valid Python identifier, as close as possible to the given text."""
    # Python normalizes identifiers to this form.
    text = "".join(c if f"_{c}".isidentifier() else "_" for c in unicodedata.normalize("NFKC", name))
    return text if text.isidentifier() and not keyword.iskeyword(text) else f"program_{text}"


def printable(name: str) -> str:
    """A name on one line, with escapes such as `\\n` for characters that are not printable or cannot be encoded."""
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def name_of(f: Callable[..., Any]) -> str:
    """A name to print for a function."""
    name = getattr(f, "__name__", None) or getattr(getattr(f, "func", None), "__name__", None) or type(f).__name__
    owner = getattr(f, "__self__", None)
    # For a class method, such as `apply` of a Function, the name of the class is more useful.
    name = f"{owner.__name__}.{name}" if isinstance(owner, type) else name
    return "lambda" if name == "<lambda>" else printable(str(name))
