"""What a trace does to modules, and what of their structure it depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...api.call import name_of
from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ..modules.bare import REMEMBERED, joined
from ..modules.constants import is_constant
from ..modules.graph import CellKey, Graph, ModuleKey
from ..modules.module import holds_traced
from ..modules.nested import attributes


class ModulesTraced:
    """The structure of the modules that a trace depends on.

    Args:
        graph: the graph of the modules.
    """

    def __init__(self, graph: Graph) -> None:
        self._whole = graph.key
        # Modes change back and forth.
        self._key = _without_switches(graph.key)

    def changes_since(self, earlier: ModulesTraced) -> Iterator[str]:
        """What differs from an earlier one, apart from modes, as text."""
        return differences(earlier._key, self._key)

    def is_other_mode(self, earlier: ModulesTraced) -> bool:
        """Whether modules are in another mode, for training or for evaluation."""
        return bool(self._whole != earlier._whole)


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
