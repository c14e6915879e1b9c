"""Retraces: which compiled functions were traced again, and what had changed.

Each jitted function has its `Traces`.  Functions that the same code made, such as a lambda that is compiled anew in
each step of a loop, share a history, so that this is found as well.  A history keeps text and hashes, and no object of
the user alive.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..base.forks import lock
from ..base.source import Line, at_line, user_line
from .call import name_of
from .closures import code_of, held
from .paths import Path

# More retraces of one function than this cause a warning.
_MOST_RETRACES = 8
_MOST_FUNCTIONS = 1_000
_MOST_LOGGED = 1_000
# A new trace is compared with so many earlier ones.
_MOST_COMPARED = 16
_MOST_REASONS = 4

# How a change is told, by its kind.
_FORMS = {
    "argument": "{} changed from {} to {}",
    "static": "static argument {}: {} -> {}",
    "closure": "{}, which the function closes over: {} -> {}",
    "around": "{}: {} -> {}",
}
_ADVICE = {
    "argument": "each combination of shapes and dtypes is compiled: pad arrays to a few sizes",
    "static": "each value of a static argument is compiled: pass what changes often as an array",
    "closure": "what a function closes over is compiled into it: pass what changes as an argument, and call jit once",
    "around": "set it once, around all calls",
    "modules": "keep shapes and attributes as they are, or make what changes an nn.Buffer or an argument",
    "mode": "call train() and eval() seldom",
    "again": "call jit once, outside of the loop",
    "branch": (
        "write numpy.where for a choice of values, or ftrans.cond, ftrans.while_loop or ftrans.fori_loop for the "
        "branch or loop, and print(x) for an f-string with the value in it"
    ),
    "layout": "pass arrays that lie in memory alike",
}

# A static argument that is not given.
_DEFAULT = "its default", None
# What is shown of each thing that a trace depends on, and what tells it from others.
Shown = dict[str, tuple[str, Any]]


class Structure(Protocol):
    """The structure of the modules that a trace depends on."""

    def changes_since(self, earlier: Any) -> Iterator[str]:
        """What differs from an earlier one, apart from modes, as text."""

    def is_other_mode(self, earlier: Any) -> bool:
        """Whether a mode differs, such as that for training."""


class Facts(NamedTuple):
    """What one trace depends on.

    Attributes:
        shown: by kind ("argument", "static", "closure", "around") and by name.
        structure: a hash of the containers among the arguments.
        modules: the modules among the arguments; None if there are none.
    """

    shown: dict[str, Shown]
    structure: int
    modules: Structure | None = None

    def changes_since(self, earlier: Facts) -> list[Reason]:
        """What differs from an earlier trace."""
        found = [Reason(kind, text) for kind in _FORMS for text in _changes(kind, earlier.shown, self.shown)]
        if self.modules is not None and earlier.modules is not None:
            found += [Reason("modules", text) for text in self.modules.changes_since(earlier.modules)]
            if not found and self.modules.is_other_mode(earlier.modules):
                found.append(Reason("mode", "train() or eval() was called"))
        if not found and self.structure != earlier.structure:
            found.append(Reason("argument", "a container among the arguments is another one"))
        return found


class Reason(NamedTuple):
    """Why a function was traced again.

    Attributes:
        kind: a key of `_ADVICE`.
        text: what has changed.
        line: the line of a branch.
    """

    kind: str
    text: str
    line: Line | None = None


class Retrace(NamedTuple):
    """One trace of a function that had been traced before.

    Attributes:
        function: name of the function.
        defined: where it is defined; None if that is unknown.
        called: the line that called it.
        number: 2 for its second trace.
        reasons: what had changed, such as "argument 1 changed from f64[3] to f64[4]".
        seconds: how long tracing took, without compiling.
    """

    function: str
    defined: Line | None
    called: Line | None
    number: int
    reasons: tuple[str, ...]
    seconds: float


class _History:
    """The traces of all functions that the same code has made.

    Attributes:
        count: how many there were.
        has_warned: whether there was a warning.
        facts: what the latest depended on.
    """

    def __init__(self) -> None:
        self.count = 0
        self.has_warned = False
        self.facts: deque[Facts] = deque(maxlen=_MOST_COMPARED)


_lock = lock()
_histories: OrderedDict[Any, _History] = OrderedDict()
_log: deque[Retrace] = deque(maxlen=_MOST_LOGGED)


def retraces_so_far() -> list[Retrace]:
    """The latest retraces in this process, the oldest first."""
    with _lock:
        return list(_log)


class Traces:
    """The traces of one jitted function.

    Args:
        f: the function.
        what: what compiles it, "jit" or "nn.jit".
        expected: how many signatures one expects, if these are few: a warning says when there are more.
    """

    def __init__(self, f: Callable[..., Any], what: str, expected: int | None = None) -> None:
        self._f = f
        self._what = what
        self._expected = expected
        # Of these, the structures of modules may hold objects of the user, which go with this function.
        self._own: list[Facts] = []
        self._signatures = 0
        self._has_warned = False
        self._history: _History | None = None

    def note(self, facts: Facts, before: Sequence[Path], path: Path, seconds: float) -> None:
        """Note a trace, and warn once if there are too many.

        Args:
            facts: what it depends on.
            before: the paths that were known for its signature.
            path: the new path.
            seconds: how long tracing took.
        """
        # What a function closes over is a constant of what it was compiled to, so it matters to other functions only.
        alone = Facts({**facts.shown, "closure": held(self._f)}, facts.structure)
        with _lock:
            history = self._history = self._history or _history_of(self._f)
            reasons = [_other_way(before, path)] if before else self._reasons(facts, alone, history)
            if not before:
                self._enter(facts, alone, history)
            if reasons is None:
                history.count = max(history.count, 1)
                return
            history.count += 1
            texts = tuple([reason.text for reason in reasons[:_MOST_REASONS]])
            code = code_of(self._f)
            defined = None if code is None else Line(code, -1)
            _log.append(Retrace(name_of(self._f), defined, user_line(), history.count, texts, seconds))
            is_too_often = self._is_too_often(history)
        if is_too_often:
            self._warn(history.count, reasons)

    def _reasons(self, facts: Facts, alone: Facts, history: _History) -> list[Reason] | None:
        """Why a trace for a new signature was needed; None if it was the first one."""
        if self._own:
            return _least_changes(facts, self._own) or [Reason("argument", "what the arguments hold")]
        if history.facts:
            return _least_changes(alone, history.facts) or [Reason("again", f"{self._what} was called again")]
        return None

    def _enter(self, facts: Facts, alone: Facts, history: _History) -> None:
        # One trace for each mode, precision and mesh is what one expects.
        if all([{r.kind for r in facts.changes_since(known)} - {"mode", "around"} for known in self._own]):
            self._signatures += 1
        self._own = [*self._own, facts][-_MOST_COMPARED:]
        history.facts.append(alone)

    def _is_too_often(self, history: _History) -> bool:
        """Whether there is a reason to warn that has not been told yet."""
        if self._expected is not None and self._signatures > self._expected:
            found, self._has_warned = not self._has_warned, True
        else:
            found = history.count > _MOST_RETRACES + 1 and not history.has_warned
        history.has_warned = history.has_warned or found
        return found

    def _warn(self, number: int, reasons: Sequence[Reason]) -> None:
        called = user_line()
        line = reasons[0].line or called
        advice = "; ".join([_ADVICE[kind] for kind in dict.fromkeys([reason.kind for reason in reasons])])
        message = (
            f"{self._what} traces {name_of(self._f)} for the {_ordinal(number)} time, which costs a compilation. "
            f"Changed this time: {'; '.join([reason.text for reason in reasons[:_MOST_REASONS]])}. "
            f"{advice[:1].upper()}{advice[1:]}. ftrans.debug.retraces() lists all reasons{at_line(line)}"
        )
        if called is None:
            warnings.warn(message, RuntimeWarning, stacklevel=4)
        else:
            warnings.warn_explicit(message, RuntimeWarning, called.filename, called.number)


def _history_of(f: Callable[..., Any]) -> _History:
    """The history of a function's code; a new one if that is unknown, or code of ftrans, which compiles at will."""
    code = code_of(f)
    if code is None:
        return _History()
    key = name_of(f), code.co_filename, code.co_firstlineno, code.co_qualname
    found = _histories.get(key)
    if found is None:
        found = _histories[key] = _History()
        if len(_histories) > _MOST_FUNCTIONS:
            _histories.popitem(last=False)
    return found


def _least_changes(facts: Facts, earlier: Sequence[Facts]) -> list[Reason]:
    """What differs from that earlier trace from which least differs, the latest of several."""
    return min([facts.changes_since(known) for known in reversed(earlier)], key=len)


def _changes(kind: str, earlier: dict[str, Shown], now: dict[str, Shown]) -> Iterator[str]:
    """What differs among facts of one kind."""
    old, new = earlier.get(kind, {}), now.get(kind, {})
    for name in dict.fromkeys([*old, *new]):
        before, after = (facts.get(name, _DEFAULT if kind == "static" else None) for facts in (old, new))
        if before is None or after is None:
            yield f"{name} is {'new' if before is None else 'gone'}"
        elif before[1] != after[1]:
            is_seen = before[0] != after[0]
            yield _FORMS[kind].format(name, before[0], after[0] if is_seen else f"another {after[0]}")


def _other_way(known: Sequence[Path], path: Path) -> Reason:
    """Why a function with known paths took another one: the first thing that none of them assumes."""
    if all(path.strides != other.strides for other in known):
        return Reason("layout", "an array among the arguments lies in memory otherwise")
    splits = [_first_difference(other, path) for other in known]
    at = max(splits)
    other = known[splits.index(at)]
    if at >= len(path.guards):
        return Reason("branch", "a loop of Python ended sooner")
    guard = path.guards[at]
    where = "" if guard.line is None else f" at {guard.line!r}"
    now = np.asarray(guard.expected)
    if now.dtype == bool and now.ndim == 0 and guard.seen_as is None:
        return Reason("branch", f"the branch{where} went the other way", guard.line)
    before = np.asarray(other.guards[at].expected) if at < len(other.guards) else None
    if guard.seen_as is not None or before is None or before.ndim or now.ndim:
        return Reason("branch", f"Python saw another value{where}", guard.line)
    return Reason("branch", f"the value that Python saw{where}: {before} -> {now}", guard.line)


def _first_difference(known: Path, path: Path) -> int:
    """The first guard of a path that another one does not share."""
    pairs = enumerate(zip(known.guards, path.guards, strict=False))
    return next((i for i, (old, new) in pairs if not old.assumes_the_same(new)), len(known.guards))


def _ordinal(n: int) -> str:
    return f"{n}{'th' if 10 <= n % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"
