"""Traces: how often a function was traced and why, for a warning when it happens again and again."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...api.call import name_of
from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...core.types import type_of
from ..modules.bare import REMEMBERED, joined
from ..modules.constants import is_constant
from ..modules.graph import CellKey, Graph, ModuleKey
from ..modules.module import holds_traced
from ..modules.nested import attributes

# One trace for training and evaluation together, and one for a last, smaller batch, are what one expects.
_EXPECTED = 2


class Traces:
    """The traces of one function."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = f
        self._seen: tuple[tuple[Any, Any, list[str]], ...] = ()
        self._lock = threading.Lock()

    def forget(self, graph: Graph) -> None:
        """Forget the traces for a structure whose modules have kept constants since: they are traced once more."""
        key = _without_switches(graph.key)
        with self._lock:
            self._seen = tuple([seen for seen in self._seen if seen[0] != key])

    def note(self, graph: Graph, key: Any, leaves: Sequence[Any]) -> None:
        """Note a new trace; warn if there are more than expected, and say what has changed."""
        new = (_without_switches(graph.key), key, [str(type_of(x)) for x in leaves])
        with self._lock:
            before = self._seen
            if any(new[:2] == old[:2] for old in before):
                return
            self._seen = (*before, new)
        if len(before) < _EXPECTED:
            return
        last = before[-1]
        found = [*differences(last[0], new[0]), *_between(last[2], new[2])]
        if not found:
            found = ["static arguments, or where the arguments hold what"]
        warnings.warn(
            f"nn.jit traces {name_of(self.f)} for the {_ordinal(len(before) + 1)} time, which costs a compilation. "
            f"Changed since the last time: {'; '.join(found[:4])}. Keep shapes and attributes as they are, "
            f"or make what changes an nn.Buffer or an argument{at_line(user_line())}",
            RuntimeWarning,
            stacklevel=6,
        )


def require_unchanged(graph: Graph, f: Callable[..., Any]) -> bool:
    """Raise unless the modules have the structure that they had before tracing.

    Returns:
        Whether they have stored constants in empty attributes, after which they are traced once more.

    Raises:
        TypeError: they have changed otherwise, which would not happen again in later calls.
    """
    require_untraced(graph)
    if graph.is_current():
        return False
    now = Graph(graph.roots)
    if now.key == graph.key:
        return False
    if _adds_constants(graph.key, now.key):
        return True
    found = "; ".join([*differences(graph.key, now.key)][:4])
    raise TypeError(
        f"{name_of(f)} has changed attributes of modules that are not cells: {found}. A compiled function does so only "
        "while it is traced, and not in later calls: keep arrays in an nn.Buffer, return other results, and call "
        f"train(), eval() or freeze() before the compiled function{at_line(user_line())}"
    )


def require_untraced(graph: Graph) -> None:
    """Raise if forward code has left a traced value in a module, in a container or through `functools.cached_property`.

    Raises:
        TypeError: it has; the value is meaningless after the trace.
    """
    is_current = graph.is_current()
    for path, module in graph.modules.items():
        for name, x in attributes(module).items():
            is_traced = type(x) is Tracer
            if is_traced:
                del vars(module)[name]
            if is_traced or (not is_current and name not in REMEMBERED and holds_traced(x)):
                raise TypeError(
                    f"{joined(path, name)} was given a traced value by forward code, which has no value after the "
                    "transformation; return it from the function, recompute it (with property instead of "
                    "functools.cached_property), or keep it in an nn.Buffer" + at_line(user_line())
                )


def _adds_constants(old: Any, new: Any) -> bool:
    """Whether two keys of structures are equal, except for constants in place of None."""
    if old == new or (old == (type(None), None) and _is_of_constant(new)):
        return True
    if type(old) is not type(new) or type(old) not in (ModuleKey, tuple) or len(old) != len(new):
        return False
    if type(old) is ModuleKey:
        return old._replace(parts=None) == new._replace(parts=None) and _gains_constants(old.parts, new.parts)
    if _is_container(old) and _is_container(new) and old[0] is new[0] is dict:
        return _gains_constants(old[1], new[1])
    return all(map(_adds_constants, old, new))


def _gains_constants(old: Any, new: Any) -> bool:
    """The same for two lists of names with keys."""
    before, after = dict(old), dict(new)
    return all([name in after and _adds_constants(key, after[name]) for name, key in before.items()]) and all(
        [name in before or _is_of_constant(key) for name, key in after.items()]
    )


def _is_of_constant(key: Any) -> bool:
    """Whether a key is that of a constant: an array, or a tuple of such."""
    if type(key) is not tuple or not isinstance(key[0], type):
        return False
    if _is_container(key):
        return key[0] is tuple and all([_is_of_constant(part) for _, part in key[1]])
    return issubclass(key[0], np.ndarray)


def share_constants(first: Graph, others: Sequence[Graph]) -> None:
    """Store constants that forward code has kept in the first of several equal modules in the others, too."""
    if first.is_current():
        return
    for path, module in first.modules.items():
        for name, x in attributes(module).items():
            for other in others:
                held = vars(other.modules[path])
                if is_constant(x) and held.get(name) is None:
                    setattr(other.modules[path], name, x)


def _without_switches(key: Any) -> Any:
    """A key of modules without their modes, which change back and forth."""
    if type(key) is ModuleKey:
        return key._replace(training=None, parts=_without_switches(key.parts))
    return tuple([_without_switches(part) for part in key]) if type(key) is tuple else key


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Differences of two keys of structures, as `path: old -> new`."""
    if old == new:
        return
    if isinstance(old, ModuleKey) and isinstance(new, ModuleKey) and old.cls is new.cls:
        yield from _entries(path, ("training", (bool, old.training)), ("training", (bool, new.training)))
        for a, b in zip(old.of_class, new.of_class, strict=True):
            yield from _between_names(f"{path}: {old.cls.__name__}" if path else old.cls.__name__, a, b)
        yield from _between_names(path, old.parts, new.parts)
    elif _is_container(old) and _is_container(new) and old[0] is new[0]:
        names = [f"{path}.{name[1]}" for name, _ in (*old[1], *new[1])]
        if len(old[1]) != len(new[1]):
            yield f"{path} has {len(new[1])} entries, not {len(old[1])}"
        else:
            for name, (_, a), (_, b) in zip(names, old[1], new[1], strict=False):
                yield from differences(a, b, name)
    elif not path and type(old) is tuple and type(new) is tuple and len(old) == len(new):
        for a, b in zip(old, new, strict=True):
            yield from differences(a, b)
    else:
        yield f"{path or 'the modules'}: {_shown(old)} -> {_shown(new)}"


def _entries(path: str, old: tuple[str, Any], new: tuple[str, Any]) -> Iterator[str]:
    yield from differences(old[1], new[1], f"{path}.{old[0]}" if path else old[0])


def _between_names(path: str, old: Any, new: Any) -> Iterator[str]:
    """Differences of two lists of names with keys."""
    before, after = dict(old), dict(new)
    for name in dict.fromkeys([*before, *after]):
        if name in before and name in after:
            yield from _entries(path, (name, before[name]), (name, after[name]))
        else:
            yield f"{path}{'.' if path else ''}{name} is {'new' if name in after else 'gone'}"


def _is_container(key: Any) -> bool:
    """Whether a key is that of a container: its class, and pairs of names and keys."""
    return (
        type(key) is tuple
        and len(key) == 2
        and isinstance(key[0], type)
        and type(key[1]) is tuple
        and all([type(part) is tuple and len(part) == 2 and type(part[0]) is tuple for part in key[1]])
    )


def _shown(key: Any) -> str:
    if isinstance(key, CellKey):
        where = "" if key.sharding is None else f" divided by {key.sharding.spec}"
        return f"{key.dtype}{list(key.shape)}{where}" + ("" if key.requires_grad else " without gradient")
    if isinstance(key, ModuleKey):
        return key.cls.__name__
    if type(key) is tuple and len(key) == 2:
        return str(key[1])
    if type(key) is tuple and isinstance(key[0], type):
        return f"another {key[0].__name__}"
    return str(key)


def _between(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    for i, (a, b) in enumerate(zip(old, new, strict=False)):
        if a != b:
            yield f"array argument {i}: {a} -> {b}"


def _ordinal(n: int) -> str:
    return f"{n}{'th' if 10 <= n % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"
