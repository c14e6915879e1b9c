"""explain: trace, compile, run and measure a function, and say what its costs come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from ..api.call import check_function, name_of
from ..api.checkpoint import residuals
from ..api.jit import trace
from ..api.paths import run_compiled
from ..api.sparsity import Sparsity
from ..base import tree
from ..base.observe import observing
from ..base.source import Line, at_line, user_line
from ..base.tracebacks import short_tracebacks
from ..base.type_questions import is_plain
from ..core.primitive import ProgramCall
from ..core.program import Eqn, Program, programs_in
from ..core.trace import Tracer
from ..core.types import is_complex, is_inexact
from ..structure.entries import NotStructured
from ..structure.patterns.boolean import TooMany
from ..structure.patterns.detect import hessian_pattern, jacobian_pattern, pattern_graph
from ..xla import is_jax
from ..xla.starting import start
from .explanation import Barrier, Explanation, Times
from .profile import Profile
from .report import amount
from .retraces import retraces

# Patterns of derivatives with more elements than this are not looked at.
_MOST_ELEMENTS = 4_000_000
# Calls are repeated so long, at most.
_SECONDS, _MOST_CALLS = 0.2, 20
# Where a compiled call takes longer than this, the function itself is not run.
_LONG = 1.0


@short_tracebacks
def explain(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """Report what a function costs and why: its size, operations, memory, sparsity, fusion and times.

    The function is traced, compiled and run a few times.  It can be a gradient, a jitted function or any other
    function.  Arrays and floating-point numbers among the arguments are traced; other arguments, such as integers, are
    passed unchanged.

    Args:
        f: the function.
        args: its arguments.
        kwargs: its keyword arguments.

    Returns:
        An `Explanation`, which prints as a report, in colour with `rich.print`, and as a report that opens and closes
        in notebooks.  Its attributes have the numbers: `costs`, `kept`, `sparsity`, `dense`, `unfused`, `retraces`,
        `times`.

    Raises:
        TypeError: `f` is not a function, or an argument is being traced.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> report = ft.explain(lambda w, x: np.sum(np.tanh(x @ w) ** 2), np.ones(3), np.ones((5, 3)))
        >>> report.kept.total, report.derivative, report.sparsity.shape
        (224, 'Hessian', (18, 18))
        >>> [one.operation for one in report.unfused]
        ['dot_general']
    """
    check_function(f, "explain")
    leaves, structure = tree.flatten((args, kwargs))
    if any([type(x) is Tracer for x in leaves]):
        raise TypeError(
            f"explain runs {name_of(f)} and measures it, which it cannot do inside of a traced function; call it on "
            f"arrays, outside{at_line(user_line())}"
        )
    places = [i for i, x in enumerate(leaves) if hasattr(x, "dtype") or is_plain(x, float | complex)]
    arrays = [leaves[i] for i in places]

    def of_arrays(*given: Any) -> Any:
        values = list(leaves)
        for i, x in zip(places, given, strict=True):
            values[i] = x
        new_args, new_kwargs = tree.unflatten(structure, values)
        return f(*new_args, **new_kwargs)

    of_arrays.__name__ = name_of(f)
    started = perf_counter()
    with observing(None):
        program = trace(of_arrays)(*arrays)
    tracing = perf_counter() - started
    notes: list[str] = []
    profile, times = _measured(program, of_arrays, arrays, tracing, is_jitted=name_of(f).startswith("jit("))
    can_be_differentiated = any(is_inexact(t.dtype) for t in program.in_types) and any(
        is_inexact(t.dtype) for t in program.out_types
    )
    kept = residuals(f)(*args, **kwargs) if can_be_differentiated else None
    derivative = "Hessian" if [t.shape for t in program.out_types] == [()] else "Jacobian"
    sparsity, dense = _sparsity(program, derivative, notes) if can_be_differentiated else (None, [])
    (costs, *_) = profile.compiled()
    return Explanation(program, costs, kept, sparsity, derivative, dense, _unfused(program), retraces(f), times, notes)


def _measured(
    program: Program, f: Callable[..., Any], arrays: Sequence[Any], tracing: float, is_jitted: bool
) -> tuple[Profile, Times]:
    """A profile of the first call of a function's compiled program, and times."""
    start()
    given = [x if is_jax(x) else np.asarray(x, t.dtype) for x, t in zip(arrays, program.in_types, strict=True)]
    with observing(None):
        profile = Profile(0)
        with profile.recording():
            run_compiled(program, given)
        spent: Counter[str] = Counter()
        for place in profile.root.walk():
            spent[place.kind] += place.self_ns
        one_call = _time_of(lambda *xs: run_compiled(program, xs), given)
        plain = _time_of(f, arrays) if one_call < _LONG and not is_jitted else None
    transforming, compiling = (1e-9 * spent[kind] for kind in ("transforming", "compiling"))
    return profile, Times(tracing, transforming, compiling, one_call, plain)


def _time_of(f: Callable[..., Any], arrays: Sequence[Any]) -> float:
    """The shortest of several calls, in seconds."""
    found: list[float] = []
    # The first call may make what the others find.
    while len(found) < 2 or (sum(found[1:]) < _SECONDS and len(found) < _MOST_CALLS):
        started = perf_counter()
        outs = f(*arrays)
        for x in tree.flatten(outs)[0]:
            if is_jax(x):
                x.block_until_ready()
        found.append(perf_counter() - started)
        if found[0] > _LONG:
            break
    return min(found)


def _sparsity(program: Program, derivative: str, notes: list[str]) -> tuple[Sparsity | None, list[Barrier]]:
    """The pattern of the derivative, and what makes it dense."""
    active = tuple([is_inexact(t.dtype) for t in program.in_types])
    wanted = [is_inexact(t.dtype) for t in program.out_types].count(True)
    columns = sum(t.size for t, a in zip(program.in_types, active, strict=True) if a)
    rows = columns if derivative == "Hessian" else sum(t.size for t in program.out_types)
    asked = f"ft.{derivative.lower()}_sparsity(f)(*args) looks at it"
    if wanted < len(program.out_types) or any(map(is_complex, [t.dtype for t in program.in_types])):
        notes.append("sparsity is looked at for functions of real numbers with floating-point results")
        return None, []
    if rows * columns > _MOST_ELEMENTS:
        notes.append(f"the {derivative} has {rows:,} x {columns:,} elements: {asked}")
        return None, []
    try:
        if derivative == "Hessian":
            pattern = hessian_pattern(program, active, {}, _MOST_ELEMENTS)
        else:
            pattern = jacobian_pattern(program, active, wanted, {}, _MOST_ELEMENTS)
        return Sparsity.from_scipy(pattern), list(_dense(program, active))
    except (NotStructured, TooMany) as error:
        notes.append(f"no sparsity: {getattr(error, 'reason', 'too many elements depend on one another')}")
        return None, []


def _dense(program: Program, active: tuple[bool, ...]) -> Iterator[Barrier]:
    """Operations of which each element of the result depends on each element of an operand."""
    seen: set[tuple[Line | None, str]] = set()
    # What fuses computes element by element.
    makers = {(e.line, v.type): e.primitive.name for e in program.eqns if not e.primitive.fuses for v in e.outputs}
    for k, operands in pattern_graph(program, active, {}).ins.items():
        for j, edges in operands.items():
            whole = k.type.size * j.type.size
            if min(k.type.size, j.type.size) < 2 or sum(edge.rows.size for edge in edges) < whole:
                continue
            name = makers.get((k.line, k.type), "operation")
            if (k.line, name) not in seen:
                seen.add((k.line, name))
                yield Barrier(name, k.line, f"{j.type} -> {k.type}")


def _unfused(program: Program) -> list[Barrier]:
    """Operations at which fusion ends, by kind and line, those that write most first."""
    found: dict[tuple[str, Line | None], list[int]] = {}
    for eqn in _calls_taken_apart(program):
        if not eqn.primitive.fuses and eqn.outputs:
            line = eqn.line.written if eqn.line is not None else None
            found.setdefault((eqn.primitive.name, line), []).append(sum(v.type.nbytes for v in eqn.outputs))
    ordered = sorted(found.items(), key=lambda item: -sum(item[1]))
    return [
        Barrier(name if len(sizes) == 1 else f"{name} (x{len(sizes)})", line, amount(sum(sizes), "B"))
        for (name, line), sizes in ordered
    ]


def _calls_taken_apart(program: Program) -> Iterator[Eqn]:
    """The equations, with those of jitted functions in place of their calls."""
    for eqn in program.eqns:
        if isinstance(eqn.primitive, ProgramCall):
            for inner in programs_in(eqn.params):
                yield from _calls_taken_apart(inner)
        else:
            yield eqn
