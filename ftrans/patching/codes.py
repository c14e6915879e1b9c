"""Functions whose code is exchanged for the rewritten code of their source.

A function keeps everything but its `__code__`: identity, defaults, closure and attributes.  Functions of a module are
found wherever they are held, in classes, closures and tables, because they know the namespace of their module.
"""

from __future__ import annotations

import ast
import gc
import linecache
import sys
import warnings
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

from .forms import element, form, may_have_form
from .rewrite import ELEMENT, FORM, rewritten
from .without_source import PREFIX, with_stand_ins


class NoSource(Exception):
    """The source of some code is not at hand, or is not what was compiled."""


def functions_of(namespaces: Iterable[dict[str, Any]], since: tuple[int, int] | None = None) -> Iterator[FunctionType]:
    """The functions that were defined in modules with the given namespaces, all of them or since a `moment`."""
    wanted = {id(n) for n in namespaces}
    # What is younger than the last collection of old objects is among the young ones, which are few.
    is_recent = since is not None and since == moment()
    objects = gc.get_objects(0) + gc.get_objects(1) if is_recent else _all_objects()
    return (f for f in objects if type(f) is FunctionType and id(f.__globals__) in wanted)


def moment() -> tuple[int, int]:
    """What tells whether objects have become old since: collections of old objects, and frozen ones."""
    return gc.get_stats()[-1]["collections"], gc.get_freeze_count()


def _all_objects() -> list[Any]:
    # The collector does not tell of objects that were frozen, as servers do before they fork.
    is_frozen = gc.get_freeze_count() > 0
    if is_frozen:
        gc.unfreeze()
    objects = gc.get_objects()
    if is_frozen:
        gc.freeze()
    return objects


class Exchange:
    """The exchanged code of the functions of one module.

    Attributes:
        missing: files whose source is not at hand, with the reason.

    Args:
        namespace: the names of the module.
    """

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.missing: dict[str, str] = {}
        self._namespace = namespace
        # What is typed at the prompt has none.
        self._has_file = not str(namespace.get("__file__", "<")).startswith("<")
        self._files: dict[str, dict[tuple[str, int], list[CodeType]]] = {}
        # Rewritten code by the original, and the other way round; codes with equal contents are told apart.
        self._new: dict[int, tuple[CodeType, CodeType]] = {}
        self._old: dict[int, tuple[CodeType, CodeType]] = {}

    def put_in(self, functions: Iterable[FunctionType]) -> None:
        """Exchange the code of functions."""
        self._namespace |= {FORM: form, ELEMENT: element}
        for f in functions:
            new = None if self.holds(f) else self._rewritten(f.__code__)
            if new is not None:
                f.__code__ = new

    def holds(self, f: FunctionType) -> bool:
        """Whether the code of a function is one that was put in."""
        return id(f.__code__) in self._old

    def take_out(self, functions: Iterable[FunctionType]) -> None:
        """Give functions their own code again."""
        for f in functions:
            found = self._old.get(id(f.__code__))
            if found is not None:
                f.__code__ = found[1]

    def clear(self) -> None:
        """Remove what was added to the module's namespace."""
        for name in [n for n in self._namespace if n.startswith(PREFIX)]:
            del self._namespace[name]

    def _rewritten(self, code: CodeType) -> CodeType | None:
        found = self._new.get(id(code))
        if found is not None:
            return found[1]
        filename = code.co_filename
        try:
            if filename not in self._files:
                self._files[filename] = {}
                self._files[filename] = self._compiled(filename)
            new = _counterpart(code, self._files[filename])
        except NoSource as error:
            if self._has_file:
                # Code without a file is made by `exec` then, such as the methods of data classes.
                if not filename.startswith("<"):
                    self.missing[filename] = str(error)
                return None
            new = None
        if new is None:
            if self._has_file:
                return None
            new = with_stand_ins(code, self._namespace)
        self._note(code, new)
        return self._new[id(code)][1]

    def _compiled(self, filename: str) -> dict[tuple[str, int], list[CodeType]]:
        """The rewritten code of all functions of a file, by name and line."""
        source = source_of(filename, self._namespace)
        try:
            with warnings.catch_warnings():
                # They were shown when the module was compiled.
                warnings.simplefilter("ignore")
                tree = rewritten(ast.parse(source), self._namespace, may_have_form)
                module = compile(tree, filename, "exec", dont_inherit=True)
        except SyntaxError as error:
            raise NoSource(f"its source is no Python ({error.msg})") from None
        found: dict[tuple[str, int], list[CodeType]] = {}
        for code in _codes_in(module):
            found.setdefault((code.co_qualname, code.co_firstlineno), []).append(code)
        return found

    def _note(self, old: CodeType, new: CodeType) -> None:
        """Remember which code belongs to which, for functions inside of functions, too."""
        self._new[id(old)] = old, new
        self._old[id(new)] = new, old
        inner = ([c for c in code.co_consts if isinstance(c, CodeType)] for code in (old, new))
        for o, n in zip(*inner, strict=False):
            self._note(o, n)


def source_of(filename: str, namespace: dict[str, Any]) -> str:
    """The source of a file, or of what a notebook, a doctest or `python -c` ran.

    Raises:
        NoSource: it is not at hand.
    """
    lines = linecache.getlines(filename, namespace)
    if lines:
        return "".join(lines)
    if filename == "<string>" and namespace.get("__name__") == "__main__" and "-c" in sys.orig_argv:
        return sys.orig_argv[sys.orig_argv.index("-c") + 1]
    raise NoSource("its source is not at hand")


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from _codes_in(inner)


def _counterpart(code: CodeType, file: dict[tuple[str, int], list[CodeType]]) -> CodeType | None:
    """The rewritten code of a function among those of its file.

    Raises:
        NoSource: the file has changed since the function was compiled.
    """
    candidates = file.get((code.co_qualname, code.co_firstlineno), [])
    if len(candidates) > 1:
        # Several lambdas in a line.
        candidates = [c for c in candidates if _place(c) == _place(code)]
    if len(candidates) != 1:
        return None
    (new,) = candidates
    if new.co_freevars != code.co_freevars or new.co_varnames[: _count(new)] != code.co_varnames[: _count(code)]:
        raise NoSource("its source has changed since it was imported")
    return new


def _count(code: CodeType) -> int:
    return code.co_argcount + code.co_kwonlyargcount


def _place(code: CodeType) -> tuple[int, int]:
    """Where the first expression of a lambda stands."""
    places = [(line, start) for line, _, start, end in code.co_positions() if line and end and start is not None]
    return min(places, default=(0, 0))
