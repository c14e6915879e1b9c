"""Functions whose code is exchanged for the rewritten code of their source.

A function keeps everything but its `__code__`: identity, defaults, closure and attributes.  Functions of a module are
found wherever they are held, in classes, closures and tables, because they know the namespace of their module.
"""

from __future__ import annotations
import __future__

import ast
import functools
import gc
import linecache
import operator
import sys
import warnings
from collections.abc import Iterable, Iterator
from types import AsyncGeneratorType, CodeType, CoroutineType, FrameType, FunctionType, GeneratorType
from typing import Any

from .forms import element, form, may_have_form, patched_copies
from .rewrite import ELEMENT, FORM, rewritten
from .without_source import PREFIX, with_stand_ins

# A notebook, or code that calls `exec`, hands on what it has imported from `__future__`.
_FUTURE = functools.reduce(operator.or_, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names))


class NoSource(Exception):
    """The source of some code is not at hand, or is not what was compiled."""


def moment() -> tuple[int, int]:
    """What tells whether objects have become old since: collections of old objects, and frozen ones."""
    return gc.get_stats()[-1]["collections"], gc.get_freeze_count()


class Survey:
    """The objects of the process, of which the collector tells, looked up once for each change of what is patched.

    Args:
        since: a `moment`, if objects that are younger will do.
    """

    def __init__(self, since: tuple[int, int] | None = None) -> None:
        self._since = since

    @functools.cached_property
    def _objects(self) -> list[Any]:
        # What is younger than the last collection of old objects is among the young ones, which are few.
        if self._since is not None and self._since == moment():
            return gc.get_objects(0) + gc.get_objects(1)
        # The collector does not tell of objects that were frozen, as servers do before they fork.
        is_frozen = gc.get_freeze_count() > 0
        if is_frozen:
            gc.unfreeze()
        objects = gc.get_objects()
        if is_frozen:
            gc.freeze()
        return objects

    def functions_of(self, namespaces: Iterable[dict[str, Any]]) -> Iterator[FunctionType]:
        """The functions that were defined in modules with the given namespaces."""
        wanted = {id(n) for n in namespaces}
        return (f for f in self._objects if type(f) is FunctionType and id(f.__globals__) in wanted)

    @functools.cached_property
    def compiled_by_numba(self) -> frozenset[int]:
        """The `id` of each function that numba compiles from its code, perhaps later."""
        if "numba" not in sys.modules:
            return frozenset()
        kinds = ("Dispatcher", "UFunc")
        found = [
            x
            for x in self._objects
            if type(x).__name__.endswith(kinds) and str(type(x).__module__).startswith("numba.")
        ]
        return frozenset(id(getattr(x, name, None)) for x in found for name in ("py_func", "__wrapped__"))

    def codes_in_use(self) -> frozenset[int]:
        """The `id` of all code that is being run by some thread, or will be when a generator or coroutine goes on."""
        found = set()
        for x in self._objects:
            kind = type(x)
            if kind is GeneratorType:
                found.add(id(x.gi_code))
            elif kind is CoroutineType:
                found.add(id(x.cr_code))
            elif kind is AsyncGeneratorType:
                found.add(id(x.ag_code))
        for top in sys._current_frames().values():
            frame: FrameType | None = top
            while frame is not None:
                found.add(id(frame.f_code))
                frame = frame.f_back
        return frozenset(found)


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
        self._files: dict[str, dict[CodeType, CodeType]] = {}
        # Rewritten code by the original, and the other way round; codes with equal contents are told apart.
        self._new: dict[int, tuple[CodeType, CodeType]] = {}
        self._old: dict[int, tuple[CodeType, CodeType]] = {}

    def put_in(self, functions: Iterable[FunctionType], survey: Survey) -> None:
        """Exchange the code of functions, or make copies of those that numba compiles."""
        self._namespace |= {FORM: form, ELEMENT: element}
        for f in functions:
            new = None if self.holds(f) else self._rewritten(f.__code__)
            if new is not None:
                if id(f) in survey.compiled_by_numba:
                    copy = FunctionType(new, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
                    copy.__kwdefaults__ = f.__kwdefaults__
                    patched_copies[f] = copy
                else:
                    f.__code__ = new

    def holds(self, f: FunctionType) -> bool:
        """Whether the code of a function is one that was put in."""
        return id(f.__code__) in self._old

    def take_out(self, functions: Iterable[FunctionType]) -> None:
        """Give functions their own code again."""
        for f in functions:
            patched_copies.pop(f, None)
            found = self._old.get(id(f.__code__))
            if found is not None:
                f.__code__ = found[1]

    def reread(self) -> None:
        """Forget the source, which may be another one when a module is executed again."""
        self.missing.clear()
        self._files.clear()

    def clear(self, in_use: frozenset[int]) -> None:
        """Remove what was added to the module's namespace, unless code that needs it is running.

        Args:
            in_use: the `id` of the code that is, as by `Survey.codes_in_use`.
        """
        if not in_use.isdisjoint(self._old):
            return
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
                self._files[filename] = self._compiled(filename, code.co_flags & _FUTURE)
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

    def _compiled(self, filename: str, flags: int) -> dict[CodeType, CodeType]:
        """The rewritten code of all functions of a file, by their code; `flags` are those of `__future__`."""
        source = source_of(filename, self._namespace)
        try:
            with warnings.catch_warnings():
                # They were shown when the module was compiled.
                warnings.simplefilter("ignore")
                tree = ast.parse(source)
                plain = compile(tree, filename, "exec", flags, dont_inherit=True)
                tree = rewritten(tree, self._namespace, may_have_form)
                module = compile(tree, filename, "exec", flags, dont_inherit=True)
        except SyntaxError as error:
            raise NoSource(f"its source is no Python ({error.msg})") from None
        return dict(zip(_codes_in(plain), _codes_in(module), strict=True))

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
    linecache.checkcache(filename)
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


def _counterpart(code: CodeType, file: dict[CodeType, CodeType]) -> CodeType | None:
    """The rewritten code of a function among those of its file.

    Raises:
        NoSource: the file has changed since the function was compiled.
    """
    new = file.get(code)
    if new is not None:
        return new
    same = [n for o, n in file.items() if (o.co_qualname, o.co_firstlineno) == (code.co_qualname, code.co_firstlineno)]
    if len(same) == 1 and any("@" in name for name in code.co_names):
        # pytest rewrites assertions, with names that no source can hold.
        return same[0]
    raise NoSource("its source has changed since it was imported")
