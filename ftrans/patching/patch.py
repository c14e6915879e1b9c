"""`ft.patch`: code of other people, in which functions take traced values that NumPy and Python cannot give them."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType
from typing import Any, NoReturn, TypeVar, overload

from ..api.call import BEFORE_TRACING, TRACING
from ..base.source import at_line, of_package, user_line
from ..numpy.after_trace import let_outlive
from .codes import Exchange, Survey, moment
from .forms import may_have_form
from .functions import has_functions, is_function, patch_functions

Patched = TypeVar("Patched", bound=Callable[..., Any])

# Changes of what is patched, one after the other.
_lock = threading.RLock()
# Tools around the user's code, which `ft.patch()` leaves alone.
_TOOLS = frozenset({"IPython", "_pytest", "pip", "pluggy", "pytest", "setuptools"})


class Patch:
    """What `ft.patch` has patched: a handle to undo it, and a context manager that does so at its end.

    Attributes:
        packages: the names of the packages; empty for all.
        skipped: for each module that could not be patched, or file of one, the reason.
    """

    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = tuple(packages)
        self._is_active = True

    @property
    def skipped(self) -> dict[str, str]:
        """For each module of which not all code could be patched, the reason."""
        found = {}
        for name, module in list(sys.modules.items()):
            if self.covers(name, module):
                exchange = _exchanges.get(id(vars(module)))
                if exchange is not None and exchange.missing:
                    found[name] = "; ".join(f"{file}: {why}" for file, why in exchange.missing.items())
                elif _is_compiled(module):
                    found[name] = "it is compiled, so it has no Python code"
        return found

    def may_cover(self, name: str) -> bool:
        """Whether a module of this name may be one of those that are patched."""
        return not self.packages or any(name == p or name.startswith(p + ".") for p in self.packages)

    def covers(self, name: str, module: ModuleType) -> bool:
        """Whether a module is one of those that are patched."""
        return self.may_cover(name) and (bool(self.packages) or _is_plain_code(name, module))

    def undo(self) -> None:
        """Give all functions their own code again, unless another patch covers them, too."""
        with _lock:
            if not self._is_active:
                return
            _require_quiet("undone")
            self._is_active = False
            _patches.remove(self)
            _update()

    def __enter__(self) -> Patch:
        if not self._is_active:
            raise RuntimeError(f"{self!r} patches nothing any more; call ft.patch again{at_line(user_line())}")
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()

    def __call__(self, *_: object) -> NoReturn:
        """Refuse to be a decorator, and undo what nobody has a handle to."""
        self.undo()
        raise TypeError(
            "ft.patch() is no decorator. Write @ft.patch, without parentheses, above a function; to patch packages, "
            f"call the function in a block that begins with ft.patch(...){at_line(user_line())}"
        )

    def __repr__(self) -> str:
        what = ", ".join(self.packages) or "all imported code"
        return f"<patch of {what}{'' if self._is_active else ', undone'}>"


_patches: list[Patch] = []
# The exchanged code of each patched module, by the `id` of its namespace.
_exchanges: dict[int, Exchange] = {}
_namespaces: dict[int, tuple[str, dict[str, Any]]] = {}


@overload
def patch(function: Patched, /) -> Patched: ...
@overload
def patch(*packages: str | ModuleType) -> Patch: ...
def patch(*packages: Any) -> Any:
    """Patch code that you cannot edit, so that its calls of NumPy, SciPy, `math` and Python accept traced values.

    In the functions of the packages, those that are loaded and those that are imported later, calls such as
    `math.sin(x)`, `np.zeros(3)`, `np.asarray(x, float)`, `float(x)` and `scipy.integrate.quad(f, a, b)` take and return
    traced values while a function is being traced.  You can then assign traced values to elements of an array that
    `np.zeros` or a similar function has created.  Without a trace, the same functions are called as before.

    Functions keep their identity, and no attribute of any module is replaced: each function gets the code of its
    source, in which `f(x)` is `form(f)(x)`.  Compiled extensions have no such code; the handle lists them in `skipped`.

    Args:
        packages: names of packages or modules, or the modules themselves; `__name__` for your own script.  Or one
            function, method or class, as with the decorator `@ft.patch`, together with functions that it wraps.
            Without arguments, all code that is or will be imported and uses NumPy, SciPy or `math`.

    Returns:
        A handle with `undo()`, which is also a context manager.  The decorator returns the function itself, which stays
        patched.

    Raises:
        ModuleNotFoundError: there is no such package.
        TypeError: a package has no Python code, or the argument is no package, module or function.
        ValueError: the source of a decorated function is not available.
        RuntimeError: another thread is tracing a function.

    Example:
        >>> import math
        >>> import numpy as np
        >>> import ftrans as ft
        >>> @ft.patch
        ... def height(t):
        ...     path = np.zeros(2)
        ...     path[0], path[1] = 30.0 * t, 40.0 * t - 9.81 / 2 * math.pow(t, 2)
        ...     return float(path[1])
        >>> print(np.round(ft.grad(height)(1.0), 6))
        30.19
    """
    if len(packages) == 1 and is_function(packages[0]):
        let_outlive()
        with _lock:
            patch_functions(packages[0])
        return packages[0]
    names = [_name_of(p) for p in packages]
    let_outlive()
    with _lock:
        _require_quiet("changed")
        handle = Patch(names)
        _patches.append(handle)
        _update()
    return handle


def patched() -> list[str]:
    """The names of the packages that are patched now and of their modules, as far as they are imported; sorted.

    Example:
        >>> import ftrans as ft
        >>> with ft.patch("colorsys"):
        ...     print(ft.patched())
        ['colorsys']
        >>> ft.patched()
        []
    """
    return sorted({name for p in _patches for name in p.packages} | {name for name, _ in _namespaces.values()})


def _name_of(package: Any) -> str:
    """The name of a package, which must exist.

    Raises:
        ModuleNotFoundError: it does not.
        TypeError: it is compiled, or no package.
    """
    if isinstance(package, ModuleType):
        package = package.__name__
    if not isinstance(package, str):
        raise TypeError(
            f"ft.patch takes names of packages, modules, or one function as a decorator, not {package!r}"
            f"{_instead_of(package)}{at_line(user_line())}"
        )
    module = sys.modules.get(package)
    if module is None:
        try:
            found = importlib.util.find_spec(package)
        except (ImportError, ValueError):
            found = None
        if found is None:
            raise ModuleNotFoundError(
                f"there is no package {package!r} to be patched; ft.patch takes the name that is imported, such "
                f"as sklearn, which may differ from the name that is installed{at_line(user_line())}",
                name=package,
            )
        return package
    if package.partition(".")[0] in ("ftrans", "numpy"):
        raise TypeError(
            f"{package!r} needs no patch, nor takes one: its functions take traced values, or say why they do not"
            + at_line(user_line())
        )
    if _is_compiled(module):
        raise TypeError(
            f"{package!r} is compiled, so it has no Python code to be patched. Patch the code that calls it, by "
            "ft.patch(__name__) where that is your own: there, functions of math, cmath, NumPy and SciPy take traced "
            "values. Call other compiled ones in the forward method of an ftrans.autograd.Function"
            + at_line(user_line())
        )
    return package


def _instead_of(x: Any) -> str:
    """What to write in place of an argument that is no package."""
    if isinstance(x, list | tuple | set | frozenset):
        return "; write ft.patch(*names)"
    if is_function(x):
        return "; patch one function at a time"
    if isinstance(x, BuiltinFunctionType):
        return ", which is compiled: patch the code that calls it"
    module = type(x).__module__
    return "" if module == "builtins" else f"; patch its package, {module.partition('.')[0]!r}"


def _is_compiled(module: ModuleType) -> bool:
    loader = getattr(getattr(module, "__spec__", None), "loader", None)
    return getattr(loader, "__name__", type(loader).__name__) in ("BuiltinImporter", "ExtensionFileLoader")


def _is_plain_code(name: str, module: ModuleType) -> bool:
    """Whether a module is code of somebody's that uses NumPy, SciPy or `math`."""
    if name.partition(".")[0] in _TOOLS | _required() or _is_compiled(module):
        return False
    filename = getattr(module, "__file__", None)
    if filename is None:
        return name == "__main__"
    return of_package(filename) is None and any([_is_mathematics(x) for x in list(vars(module).values())])


@functools.cache
def _required(distribution: str = "ftrans") -> frozenset[str]:
    """What ftrans is built on, which is not patched with all the rest."""
    try:
        lines = importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        lines = []
    names = {re.split(r"[^\w.-]", line)[0] for line in lines if "extra ==" not in line}
    return frozenset(n.replace("-", "_") for n in names).union(*map(_required, names))


def _is_mathematics(x: Any) -> bool:
    if isinstance(x, ModuleType):
        return x.__name__.partition(".")[0] in ("numpy", "math", "cmath", "scipy")
    return callable(x) and not isinstance(x, ModuleType) and _has_form(x)


def _has_form(x: Any) -> bool:
    try:
        return type(x).__name__ in ("builtin_function_or_method", "function", "ufunc", "type") and may_have_form(x)
    except TypeError:
        return False


def _require_quiet(done: str) -> None:
    """Raise if another thread is tracing, since it would go on in code of both kinds."""
    mine = threading.get_ident()
    for thread, frame in sys._current_frames().items():
        current: FrameType | None = frame if thread != mine else None
        while current is not None:
            if current.f_code is TRACING:
                raise RuntimeError(
                    "what is patched cannot be changed while another thread traces a function; call ft.patch before "
                    f"threads start, and undo it after they end{at_line(user_line())}"
                )
            current = current.f_back


# Modules, loaded and yet to be


def _update() -> None:
    """Patch the modules that the present patches cover, and no others."""
    covered: dict[int, tuple[str, dict[str, Any]]] = {}
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and any([p.covers(name, module) for p in _patches]):
            covered.setdefault(id(vars(module)), (module.__name__, vars(module)))
    gone = {key: entry for key, entry in _namespaces.items() if key not in covered}
    new = {key: entry for key, entry in covered.items() if key not in _namespaces}
    survey = Survey()
    by_namespace = _sorted_by_namespace(gone | new, survey)
    in_use = survey.codes_in_use() if gone else frozenset()
    for key in gone:
        exchange = _exchanges.pop(key)
        exchange.take_out(by_namespace[key])
        if not has_functions(key):
            exchange.clear(in_use)
        del _namespaces[key]
    for key, (_, namespace) in new.items():
        _namespaces[key] = new[key]
        _exchanges[key] = Exchange(namespace)
        _exchanges[key].put_in(by_namespace[key], survey)
    _watch([namespace for _, namespace in _namespaces.values()])
    if _patches and _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    elif not _patches and _finder in sys.meta_path:
        sys.meta_path.remove(_finder)


def _sorted_by_namespace(
    modules: dict[int, tuple[str, dict[str, Any]]], survey: Survey
) -> dict[int, list[FunctionType]]:
    found: dict[int, list[FunctionType]] = {key: [] for key in modules}
    if modules:
        for f in survey.functions_of([namespace for _, namespace in modules.values()]):
            found[id(f.__globals__)].append(f)
    return found


class _Finder:
    """Finds modules as the other finders do, and patches them when they have been executed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                loader = spec.loader
                # Classes are the loaders of what is built into Python.
                if loader is not None and not isinstance(loader, type) and any([p.may_cover(name) for p in _patches]):
                    self._patch_after(loader)
                return spec
        return None

    def _patch_after(self, loader: Any) -> None:
        execute = loader.exec_module

        def executed(module: ModuleType) -> None:
            del loader.exec_module
            execute(module)
            with _lock:
                again = _exchanges.get(id(vars(module)))
                if again is not None:
                    again.reread()
                    survey = Survey()
                    again.put_in(survey.functions_of([vars(module)]), survey)
                elif any([p.covers(module.__name__, module) for p in _patches]):
                    _update()

        loader.exec_module = executed


_finder: Any = _Finder()


# Modules that are still being executed, such as a script

_open: set[int] = set()
# Where they were when their functions were searched for, and the moment of the last search.
_searched_at: set[tuple[int, int]] = set()
_searched: dict[str, tuple[int, int]] = {}


def _watch(namespaces: Iterable[dict[str, Any]]) -> None:
    """Watch the modules that are still being executed: their functions are patched when something is traced."""
    running = {id(frame.f_globals) for frame in _module_frames()}
    main = id(vars(sys.modules["__main__"]))
    wanted = {id(n) for n in namespaces}
    now = wanted & (_open | running | {main})
    if now - _open:
        _searched_at.clear()
        _searched.clear()
    _open.clear()
    _open.update(now)
    if _open and _patch_new not in BEFORE_TRACING:
        BEFORE_TRACING.append(_patch_new)
    elif not _open and _patch_new in BEFORE_TRACING:
        BEFORE_TRACING.remove(_patch_new)


def _module_frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "<module>":
            yield frame
        frame = frame.f_back


def _patch_new(f: Callable[..., Any]) -> None:
    """Patch the functions that modules under execution have defined since somebody looked."""
    with _lock:
        places = {(id(x.f_code), x.f_lasti) for x in _module_frames() if id(x.f_globals) in _open}
        if not places <= _searched_at:
            _searched_at.update(places)
            since = Survey(_searched.pop("moment", None))
            found = _sorted_by_namespace({key: _namespaces[key] for key in _open}, since)
            _searched["moment"] = moment()
            for key, functions in found.items():
                _exchanges[key].put_in(functions, since)
        survey = Survey()
        # A loop defines other functions at the same place.
        for key in _open:
            _, names = _namespaces[key]
            held = [x for x in list(names.values()) if isinstance(x, FunctionType)]
            _exchanges[key].put_in([x for x in held if x.__globals__ is names], survey)
        if isinstance(f, FunctionType) and id(f.__globals__) in _open:
            _exchanges[id(f.__globals__)].put_in([f], survey)
