"""Programs as HTML: the user's lines beside equations; types, sizes, costs and times under the pointer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...base import html
from ...base.names import Names
from ...base.source import Line
from ...core.program import Atom, Const, Eqn, Program, format_const, format_param, programs_in
from ...run.costs import flops, nbytes
from ..graph import number
from ..profile import last_profile
from ..report import amount, seconds

# A program with more equations shows the first of them.
_MOST_EQUATIONS = 500
# A program with more than these is closed at first.
_MOST_OPEN = 60

Times = dict[tuple[str, Line | None], tuple[float, int]]


def page_of_program(program: Program) -> str:
    """A program, with its sub-programs below the equations that hold them."""
    return html.page(_program(program, _times(), is_open=len(program.eqns) <= _MOST_OPEN))


def _times() -> Times:
    """How long equations took in the profile that ended last, by primitive and line: seconds, and calls."""
    profile = last_profile()
    found: Times = {}
    for place in profile.root.walk() if profile is not None else ():
        line = None if place.line is None else place.line.written
        time, calls = found.get((place.name, line), (0.0, 0))
        found[place.name, line] = time + 1e-9 * place.self_ns, calls + place.calls
    return found


def _program(program: Program, times: Times, is_open: bool) -> str:
    names = Names()
    inputs = ", ".join(_atom(v, names, has_type=True) for v in program.inputs)
    results = ", ".join(html.span(str(t), "type", amount(t.nbytes, "B")) for t in program.out_types)
    count = html.span(f"{number(len(program.eqns), 'equation')}", "faint")
    head = f"<code><b>{html.escaped(program.name)}</b>({inputs}) &rarr; {results or '()'}</code> {count}"
    rows = list(_rows(program.eqns[:_MOST_EQUATIONS], names, times))
    left = len(program.eqns) - _MOST_EQUATIONS
    returned = ", ".join(_atom(a, names) for a in program.outputs)
    rows.append([html.Cell(f"<code>return {returned if left <= 0 else '...'}</code>"), html.Cell("")])
    more = html.notes([f"{left} more equations: print(program) shows all"] if left > 0 else [])
    return html.details(head, html.table(("equation", "line"), rows) + more, is_open)


def _rows(eqns: Sequence[Eqn], names: Names, times: Times) -> Iterator[list[html.Cell]]:
    for eqn in eqns:
        equation = html.Cell(_equation(eqn, names, times))
        line = eqn.line
        if line is None:
            yield [equation, html.Cell("")]
        else:
            scope = f"\nin {line.scope}" if line.scope else ""
            where = html.code(f"{line!r}", "faint") + " " + html.code(line.text)
            yield [equation, html.Cell(where, line.describe() + scope)]


def _equation(eqn: Eqn, names: Names, times: Times) -> str:
    left = ", ".join(_atom(v, names, has_type=True) for v in eqn.outputs)
    operands = [_atom(a, names) for a in eqn.operands]
    shown = [f"{key}={format_param(value)}" for key, value in eqn.params.items()]
    params = [html.span(text, "faint") for text in shown]
    name = html.span(eqn.primitive.name, "name", _cost(eqn, times))
    inner = "".join(_program(sub, times, is_open=False) for sub in programs_in(eqn.params))
    return f"<code>{left} = {name}({', '.join([*operands, *params])})</code>{inner}"


def _cost(eqn: Eqn, times: Times) -> str:
    """What an equation costs, by its types, and how long it took where a profile knows."""
    found = [f"{amount(flops(eqn))} FLOPs", f"{amount(nbytes(eqn), 'B')} of operands and results"]
    timed = times.get((eqn.primitive.name, None if eqn.line is None else eqn.line.written))
    if timed is not None:
        time, calls = timed
        found.append(f"{seconds(time)} in {number(calls, 'call')} (this operation at this line, in the last profile)")
    return "\n".join(found)


def _atom(atom: Atom, names: Names, has_type: bool = False) -> str:
    size = f"{atom.type}, {amount(atom.type.nbytes, 'B')}"
    if isinstance(atom, Const):
        return html.span(format_const(atom), "", size)
    shown = html.span(names[atom], "", size)
    return f"{shown}: {html.span(str(atom.type), 'type')}" if has_type else shown
