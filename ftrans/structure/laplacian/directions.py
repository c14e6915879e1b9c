"""Derivatives along many directions at once, where sums over the directions are taken as early as possible.

The derivatives along one direction are a program; this is that program for many directions, without what they have in
common.  Values that depend on no direction are computed once.  A sum over the directions goes past every equation that
is linear in what it sums, which is then computed once as well: the derivatives of each direction by itself (its *rows*)
are needed only in front of products of two of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...base.source import attributed_to
from ...core.interpret import inline, interpret, repeat
from ...core.primitive import Moving, ProgramCall
from ...core.program import Atom, Const, Eqn, Program, Var
from ...core.trace import Builder, Tracer, building, current_builder
from ...ops.broadcast import reduce_sum, with_batch_axis
from ...ops.contractions import dot_general
from ...ops.elementwise import Elementwise, add, div, mul, neg, select, singular_slope, sub
from ...ops.literals import full_like, splat
from ...transforms.choices import SUMS
from ...transforms.simplify import without_dead_code
from .row_products import contracted, product_with
from .rows import Part, Rows, aligned, common_places, moved, product, summed

# What a value depends on: the first direction, the second one, and whether that is not known for certain.
FIRST, SECOND, UNSURE = 1, 2, 4
BOTH = FIRST | SECOND

Value = Tracer | Rows


def prepared(program: Program, known: Mapping[int, Any]) -> Program:
    """`program` with the programs of compiled functions in place of their calls, and known inputs as constants."""
    if not known and not any(isinstance(eqn.primitive, ProgramCall) for eqn in program.eqns):
        return program

    def apply(eqn: Eqn, operands: list[Any]) -> Sequence[Any]:
        if isinstance(eqn.primitive, ProgramCall):
            return inline(prepared(eqn.params["program"], {}), operands)
        return repeat(eqn, operands)

    builder = Builder(program.in_types)
    with building(builder):
        inputs = builder.inputs()
        given = [Tracer(builder, Const(known[i], x.type)) if i in known else x for i, x in enumerate(inputs)]
        outs = interpret(program, given, apply, lambda const: Tracer(builder, const))
        return builder.finish(outs, program.name)


class Directions:
    """A program of inputs and directions, recorded for many directions at once.

    Args:
        program: a derivative: a program whose results are linear in each of the directions.
        given: for each of its inputs, a tracer, or the rows of a direction.
        depends: for each input, which of the directions it is: 0, FIRST or SECOND.
        total: whether the sums of the outputs over the directions are wanted, and not their rows.
        count: number of directions.
    """

    def __init__(
        self, program: Program, given: Sequence[Value], depends: Sequence[int], total: bool, count: int
    ) -> None:
        self.program = without_dead_code(program)
        self.count = count
        self.totals: dict[Var, Tracer] = {}
        self.values: dict[Var, Value] = dict(zip(program.inputs, given, strict=True))
        self.depends = _dependence(self.program, depends)
        self.gives_totals = total
        self.wants_total: set[Atom] = set(program.outputs) if total else set()
        self.wants_row: set[Atom] = set() if total else set(program.outputs)
        self._find_demand()

    def run(self) -> list[Value]:
        """Record the program; return the sums of its outputs, or their rows (values, where all rows are equal)."""
        for eqn in self.program.eqns:
            if any([v in self.wants_row for v in eqn.outputs]):
                operands = [self.value(a) for a in eqn.operands]
                with attributed_to(eqn.line):
                    self.values.update(zip(eqn.outputs, _rows_of(eqn, operands, self.count), strict=True))
            if any([v in self.wants_total for v in eqn.outputs]):
                self._record_total(eqn)
        give = self.total if self.gives_totals else self.value
        return [give(a) for a in self.program.outputs]

    def value(self, atom: Atom) -> Value:
        """A value, or its rows if it depends on a direction."""
        if isinstance(atom, Const):
            builder = current_builder()
            assert builder is not None
            return Tracer(builder, atom)
        return self.values[atom]

    def total(self, atom: Atom) -> Tracer:
        """The sum of a value over the directions."""
        if isinstance(atom, Var) and atom in self.totals:
            return self.totals[atom]
        value = self.value(atom)
        if isinstance(value, Rows):
            return value.total()
        return value if splat(value) == 0 else mul(full_like(value, self.count), value)

    # Which sums and which rows are needed

    def _find_demand(self) -> None:
        for eqn in reversed(self.program.eqns):
            row = any([v in self.wants_row for v in eqn.outputs])
            total = any([v in self.wants_total for v in eqn.outputs])
            if total and self._is_summable(eqn):
                for a in eqn.operands:
                    (self.wants_total if self._flags(a) else self.wants_row).add(a)
            elif total and _is_product(eqn):
                self.wants_row.update(eqn.operands)
            elif total:
                self.wants_row.update(eqn.outputs)
                row = True
            if row:
                self.wants_row.update(eqn.operands)

    def _flags(self, atom: Atom) -> int:
        return self.depends.get(atom, 0)

    def _is_summable(self, eqn: Eqn) -> bool:
        """Whether the sum of the result is the result for the sums of the operands.

        By what derivatives are, an equation is linear in the second direction.  So it is linear in operands that have
        it, all of them together, if no other operand depends on a direction.
        """
        if eqn.primitive.multiple_results:
            return False
        flags = [self._flags(a) for a in eqn.operands]
        if not any(flags):
            return False
        if any([f not in (0, BOTH) for f in flags]):
            return False
        if eqn.primitive is mul:
            return flags.count(0) == 1
        if eqn.primitive is div:
            return flags[1] == 0
        linear = _linear_operands(eqn)
        if not linear:
            return not isinstance(eqn.primitive, Elementwise) and flags.count(0) == len(flags) - 1
        zeros = [isinstance(a, Const) and a.is_splat and a.value == 0 for a in eqn.operands]
        return all([(f or z) if i in linear else not f for i, (f, z) in enumerate(zip(flags, zeros, strict=True))])

    def _record_total(self, eqn: Eqn) -> None:
        if self._is_summable(eqn):
            operands = [self.total(a) if self._flags(a) else self.value(a) for a in eqn.operands]
            self.totals[eqn.outputs[0]] = repeat(eqn, operands)[0]
        elif _is_product(eqn):
            x, y = [self.value(a) for a in eqn.operands]
            with attributed_to(eqn.line):
                if not isinstance(x, Rows) or not isinstance(y, Rows):
                    (self.values[eqn.outputs[0]],) = _rows_of(eqn, [x, y], self.count)
                elif eqn.primitive is mul:
                    self.totals[eqn.outputs[0]] = product(x, y).total()
                else:
                    self.totals[eqn.outputs[0]] = contracted(eqn, x, y)


def _linear_operands(eqn: Eqn) -> Sequence[int]:
    """The operands in which an equation is linear over the real numbers, all of them together, where that is known."""
    count = len(eqn.operands)
    if eqn.primitive is select:
        return (1, 2)
    return range(count) if eqn.primitive in (*SUMS, singular_slope) else eqn.primitive.linear_in(count, eqn.params)


def repeated(x: Value, count: int) -> Tracer:
    """Rows as one array; of a value that depends on no direction, `count` copies."""
    return x.dense() if isinstance(x, Rows) else with_batch_axis(count, x, False)


def _is_product(eqn: Eqn) -> bool:
    return eqn.primitive is mul or eqn.primitive is dot_general


def _dependence(program: Program, inputs: Sequence[int]) -> dict[Atom, int]:
    """What each variable depends on."""
    found: dict[Atom, int] = dict(zip(program.inputs, inputs, strict=True))
    for eqn in program.eqns:
        flags = [found.get(a, 0) for a in eqn.operands]
        for var, depends in zip(eqn.outputs, _result_dependence(eqn, flags), strict=True):
            found[var] = depends
    return found


def _result_dependence(eqn: Eqn, flags: Sequence[int]) -> Sequence[int]:
    union = 0
    for f in flags:
        union |= f
    if not eqn.primitive.multiple_results or not union:
        return [union] * len(eqn.outputs)
    found = [union & UNSURE] * len(eqn.outputs)
    types = [a.type for a in eqn.operands]
    for direction in (FIRST, SECOND):
        unknown = [bool(f & direction) for f in flags]
        if not any(unknown):
            continue
        halves = eqn.primitive.split(unknown, types, **eqn.params)
        depends = [True] * len(found) if halves is None else halves.out_unknown
        doubt = UNSURE if halves is None else 0
        found = [f | (direction | doubt if d else 0) for f, d in zip(found, depends, strict=True)]
    return found


# The rows of the results of one equation


def _rows_of(eqn: Eqn, operands: Sequence[Value], count: int) -> Sequence[Value]:
    rows = [x for x in operands if isinstance(x, Rows)]
    if not rows:
        return repeat(eqn, operands)
    if not eqn.primitive.multiple_results:
        found = _structured(eqn, operands, rows)
        if found is not None:
            return [full_like(found.type, 0) if found.is_sparse and not found.parts else found]
    batched = [isinstance(x, Rows) for x in operands]
    given = [x.dense() if isinstance(x, Rows) else x for x in operands]
    outs, flags = eqn.primitive.batch(count, given, batched, **eqn.params)
    if not eqn.primitive.multiple_results:
        outs, flags = [outs], [flags]
    return [
        Rows(v.type, count, y) if is_batched else y for v, y, is_batched in zip(eqn.outputs, outs, flags, strict=True)
    ]


def _structured(eqn: Eqn, operands: Sequence[Value], rows: Sequence[Rows]) -> Rows | None:
    """The rows of a result, from less than all elements of its operands' rows; None if there is no such way."""
    primitive = eqn.primitive
    if isinstance(primitive, Elementwise):
        return _elementwise(eqn, operands, rows)
    if primitive is reduce_sum:
        return summed(rows[0], eqn.params["axes"])
    if primitive is dot_general and len(rows) == 1:
        return product_with(eqn, operands)
    return moved(eqn, operands) if isinstance(primitive, Moving) else None


def _elementwise(eqn: Eqn, operands: Sequence[Value], rows: Sequence[Rows]) -> Rows | None:
    primitive = eqn.primitive
    if len(operands) == 1 and primitive in (neg, singular_slope):
        factor = rows[0].factor
        return rows[0].with_factor(primitive(full_like(rows[0].type, 1) if factor is None else factor))
    first, last = operands[0], operands[-1]
    if primitive is mul:
        if isinstance(first, Rows):
            return product(first, last) if isinstance(last, Rows) else first.scaled(last)
        return rows[0].scaled(first)
    if primitive is div and isinstance(first, Rows) and isinstance(last, Tracer):
        return first.with_factor(div(full_like(first.type, 1) if first.factor is None else first.factor, last))
    if primitive in (add, sub) and len(rows) == 2 and rows[0].has_base_of(rows[1]):
        ones = full_like(rows[0].type, 1)
        return rows[0].with_factor(primitive(*[ones if x.factor is None else x.factor for x in rows]))
    return _by_parts(eqn, operands, rows)


def _by_parts(eqn: Eqn, operands: Sequence[Value], rows: Sequence[Rows]) -> Rows | None:
    """The rows of a linear function of each element, part by part; None if zero rows do not stay zero."""
    linear = _linear_operands(eqn)
    for i, x in enumerate(operands):
        if (i in linear) != (isinstance(x, Rows) or (i in linear and splat(x) == 0)):
            return None
    found = aligned(rows)
    places = common_places(rows)
    if found is None or places is None:
        return None
    parts = []
    for k, place in enumerate(places):
        own = iter([values[k] for values in found])
        given = [next(own) if isinstance(x, Rows) else x for x in operands]
        present = [x for x in given if x is not None]
        if eqn.primitive is add and len(present) == 1:
            value = present[0]
        else:
            zero = full_like(rows[0].type, 0)
            value = eqn.primitive(*[zero if x is None else x for x in given], **eqn.params)
        parts.append(Part(value, place))
    return Rows(eqn.outputs[0].type, rows[0].count, parts=parts)
