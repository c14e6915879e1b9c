"""Loop-invariant code motion: equations of a scan that move before or after it, and results that need no loop.

The cost of a loop is dominated by what it reads and writes in each step.  So products of constants with elements of
the sequences are computed for all steps at once before it; and a carry that only adds up products, such as the gradient
of a weight matrix, becomes one product over all steps after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from ...core.interpret import inline
from ...core.program import Atom, Const, Eqn, Program, Var, literal, needed_eqns
from ...core.trace import Tracer
from ...core.types import is_inexact
from ...ops import elementwise as e
from ...ops import literals, parts
from ...ops.broadcast import broadcast, reduce_sum
from ...ops.contractions import dot_general
from ...transforms.batch import batch
from ...transforms.simplify import simplify
from ..subprograms import chosen, cut, redundant, rewired, specialized, used_inputs

# New sequences may take this much memory, or as much as the sequences of the original loop.
_MOST_BYTES = 1 << 26
# Reading a constant of this size in every step costs more than writing a product of it that is this much smaller.
_LARGE_BYTES = 1 << 18
_SMALLER = 16
# Elementwise functions of arrays up to this size cost less for all steps at once than in each step.
SMALL_BYTES = 1 << 14
# Bodies without products that touch less memory than this are compiled to one operation by XLA on CPUs.
_ONE_OPERATION_BYTES = 1 << 10


class Loop:
    """A scan that is being optimized.

    Attributes:
        program: the body.
        fixed: constants of the body.
        carry: initial carries.
        xs: sequences.
        length: the number of steps.
        outputs: for each output of the body, the number of its result.  Results of the original loop come first; those
            with higher numbers are intermediate ones.
        results: results, by number, that are known without running the loop.
        later: how to compute, from other results, those that the loop does not return.
    """

    def __init__(
        self, program: Program, fixed: list[Tracer], carry: list[Tracer], xs: list[Tracer], length: int
    ) -> None:
        self.program = program
        self.fixed = fixed
        self.carry = carry
        self.xs = xs
        self.length = length
        self.outputs = list(range(len(program.outputs)))
        self.results: dict[int, Tracer] = {}
        self.later: dict[int, Callable[[], Tracer]] = {}
        self._original = self._count = len(program.outputs)

    def improve(self) -> None:
        """Move equations out of the loop until nothing changes."""
        before = None
        while before is not self.program:
            before = self.program = simplify(self.program)
            self._take_out_constant_carries()
            self._take_out_redundant_inputs()
            self._take_out_results()
            self._take_out_invariant_equations()
            self._narrow_products()
            self._take_out_functions_of_elements()
            self._take_out_sums()

    def original_results(self, outs: Sequence[Tracer]) -> list[Tracer]:
        """The results of the original loop, from those of the improved one."""
        self.results.update(zip(self.outputs, outs, strict=True))
        return [self._result(number) for number in range(self._original)]

    def _result(self, number: int) -> Tracer:
        if number not in self.results:
            self.results[number] = self.later[number]()
        return self.results[number]

    def _inputs(self) -> list[list[Var]]:
        return cut(self.program.inputs, len(self.fixed), len(self.carry))

    def _rewire(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        self.program = rewired(self.program, inputs, outputs)
        self.outputs = [self.outputs[i] for i in outputs]

    def _may_write(self, values: Sequence[Var]) -> bool:
        """Whether there is memory for these values of every step."""
        written = sum(a.type.nbytes for a in self.program.outputs[len(self.carry) :])
        present = sum(x.type.nbytes for x in self.xs) + self.length * written
        return self.length * sum(v.type.nbytes for v in values) <= max(present, _MOST_BYTES)

    def _take_out_constant_carries(self) -> None:
        consts, carries = len(self.fixed), len(self.carry)
        _, inputs, _ = self._inputs()
        constant = [v is a for v, a in zip(inputs, self.program.outputs, strict=False)]
        if not any(constant):
            return
        fixed = [i for i, c in enumerate(constant) if c]
        kept = [i for i, c in enumerate(constant) if not c]
        self.results.update((self.outputs[i], self.carry[i]) for i in fixed)
        self._rewire(
            [
                *range(consts),
                *(consts + i for i in (*fixed, *kept)),
                *range(consts + carries, len(self.program.inputs)),
            ],
            [*kept, *range(carries, len(self.program.outputs))],
        )
        self.fixed = [*self.fixed, *(self.carry[i] for i in fixed)]
        self.carry = [self.carry[i] for i in kept]

    def _take_out_redundant_inputs(self) -> None:
        consts, carries = len(self.fixed), len(self.carry)
        of_fixed = redundant(self.fixed)
        of_xs: list[int | Const | None] = []
        for known in redundant(self.xs):
            if isinstance(known, Const):
                known = literal(known.value, known.type.with_shape(known.type.shape[1:]))
            of_xs.append(consts + carries + known if isinstance(known, int) else known)
        self.program = simplify(specialized(self.program, [*of_fixed, *[None] * carries, *of_xs]))
        self.fixed = [x for x, k in zip(self.fixed, of_fixed, strict=True) if k is None]
        self.xs = [x for x, k in zip(self.xs, of_xs, strict=True) if k is None]
        fixed_used, _, xs_used = cut(used_inputs(self.program), len(self.fixed), carries)
        kept = (*fixed_used, *(True,) * carries, *xs_used)
        self._rewire([i for i, k in enumerate(kept) if k], range(len(self.outputs)))
        self.fixed, self.xs = chosen(self.fixed, fixed_used), chosen(self.xs, xs_used)

    def _take_out_results(self) -> None:
        carries = len(self.carry)
        fixed, _, xs = self._inputs()
        first: dict[Atom, int] = {}
        kept = list(range(carries))
        for place, atom in enumerate(self.program.outputs[carries:], carries):
            number = self.outputs[place]
            shape = (self.length, *atom.type.shape)
            if isinstance(atom, Const) and atom.is_splat:
                self.results[number] = literals.full(shape, atom.value, atom.type.dtype)
            elif atom in fixed:
                x = self.fixed[fixed.index(atom)]
                self.results[number] = broadcast(x, shape=shape, dims=tuple(range(1, len(shape))))
            elif atom in xs:
                self.results[number] = self.xs[xs.index(atom)]
            elif atom in first:
                self.later[number] = lambda same=first[atom]: self._result(same)  # type: ignore[misc]
            else:
                first[atom] = number
                kept.append(place)
        self._rewire(range(len(self.program.inputs)), kept)

    def _take_out_invariant_equations(self) -> None:
        consts = len(self.fixed)
        program = self.program
        before, self.program = program.derive(("invariant", consts), lambda: _invariant(program, consts))
        self.fixed = [*self.fixed, *inline(before, self.fixed)]

    def _narrow_products(self) -> None:
        """Leave out unused parts of products with constants."""
        consts = len(self.fixed)
        program = self.program
        self.program = program.derive(("narrow", consts), lambda: _narrow(program, consts))

    def _take_out_functions_of_elements(self) -> None:
        # A loop without carries was written to save memory.
        if not self.carry or is_one_operation(self.program):
            return
        program = self.program
        fixed, _, xs = self._inputs()
        key = ("before", len(fixed), len(xs))
        before, rest = program.derive(key, lambda: _before(program, fixed, xs))
        values = [a for a in before.outputs if isinstance(a, Var)]
        if not values or not self._may_write(values):
            return
        flags = (False,) * len(fixed) + (True,) * len(xs)
        batched = batch(before, self.length, flags, (True,) * len(values))
        self.xs = [*self.xs, *inline(simplify(batched.program), [*self.fixed, *self.xs])]
        self.program = rest

    def _take_out_sums(self) -> None:
        sums = _Sums(self.program, *self._inputs())
        for index in range(len(self.carry)):
            term = sums.term(index)
            saved = None if term is None else sums.saved(term)
            if term is None or saved is None:
                continue
            if sum(v.type.nbytes for v in saved) < term.type.nbytes and self._may_write(saved):
                self._sum_later(index, term, saved, sums)
                return

    def _sum_later(self, index: int, term: Var, saved: Sequence[Var], sums: _Sums) -> None:
        """Replace the carry that adds up a sum by sequences of the values that the sum needs."""
        program, carries = self.program, len(self.carry)
        numbers: dict[Atom, int] = {a: self.outputs[i] for i, a in enumerate(program.outputs) if i >= carries}
        for var in saved:
            numbers[var] = self._count
            self._count += 1
        fixed, _, xs = self._inputs()
        operands: dict[Atom, Tracer] = dict(zip([*fixed, *xs], [*self.fixed, *self.xs], strict=True))
        init, length = self.carry[index], self.length

        def value(atom: Atom) -> Tracer:
            if isinstance(atom, Const):
                return Tracer(init.builder, atom)
            return operands[atom] if atom in operands else self._result(numbers[atom])

        def total() -> Tracer:
            return e.add(init, sums.total(term, value, length))

        self.later[self.outputs[index]] = total
        outputs = (*program.outputs, *saved)
        self.program = program.derive(
            ("with outputs", outputs), lambda: Program(program.name, program.inputs, program.eqns, outputs)
        )
        self.outputs += [numbers[v] for v in saved]
        unused = [literal(0, v.type) if v is sums.carry[index] else None for v in program.inputs]
        self.program = specialized(self.program, unused)
        self._rewire(range(len(self.program.inputs)), [i for i in range(len(self.outputs)) if i != index])
        self.carry = [x for i, x in enumerate(self.carry) if i != index]


class _Sums:
    """How sums over the steps of a loop can be computed from the values of all steps."""

    def __init__(self, program: Program, fixed: Sequence[Var], carry: Sequence[Var], xs: Sequence[Var]) -> None:
        self.carry = carry
        self._program = program
        self._fixed: set[Atom] = set(fixed)
        self._at_hand: set[Atom] = {*fixed, *xs, *program.outputs[len(carry) :]}
        self._definitions: dict[Atom, Eqn] = {v: eqn for eqn in program.eqns for v in eqn.outputs}
        self._uses: dict[Atom, int] = {}
        for atom in (*(a for eqn in program.eqns for a in eqn.operands), *program.outputs):
            self._uses[atom] = self._uses.get(atom, 0) + 1

    def term(self, index: int) -> Var | None:
        """The term that a carry adds up, if it does nothing else; None otherwise."""
        var, out = self.carry[index], self._program.outputs[index]
        eqn = self._definitions.get(out)
        if eqn is None or eqn.primitive is not e.add or self._uses[out] != 1 or self._uses.get(var) != 1:
            return None
        x, y = eqn.operands
        term = y if x is var else x if y is var else None
        return term if isinstance(term, Var) and is_inexact(term.type.dtype) else None

    def saved(self, term: Var) -> list[Var] | None:
        """The values to write in each step so that the sum of `term` can be computed from them; None if it cannot."""
        eqns = self._passed(term)
        if eqns is None:
            return None
        factors = (a for eqn in eqns if eqn.primitive is dot_general for a in eqn.operands)
        return list(dict.fromkeys(a for a in factors if isinstance(a, Var) and not self._is_at_hand(a)))

    def _passed(self, term: Var) -> list[Eqn] | None:
        """The linear equations between `term` and available values or products, with which the sum can be exchanged."""
        needed: set[Atom] = {term}
        found: list[Eqn] = []
        for eqn in reversed(self._program.eqns):
            if not any(v in needed and not self._is_at_hand(v) for v in eqn.outputs):
                continue
            if eqn.primitive is not dot_general and not _is_linear(eqn):
                return None
            found.append(eqn)
            needed.update(() if eqn.primitive is dot_general else eqn.operands)
        ends = all(a in self._definitions or self._is_at_hand(a) for a in needed)
        return found[::-1] if ends else None

    def _is_at_hand(self, atom: Atom) -> bool:
        return isinstance(atom, Const) or atom in self._at_hand

    def _is_constant(self, atom: Atom) -> bool:
        return isinstance(atom, Const) or atom in self._fixed

    def total(self, term: Var, value: Callable[[Atom], Tracer], length: int) -> Tracer:
        """The sum of `term` over the steps, where `value` gives a constant, or the values of all steps."""
        totals: dict[Atom, Tracer] = {}

        def summed(atom: Atom) -> Tracer:
            x = value(atom)
            return e.mul(x, literals.full_like(x, length)) if self._is_constant(atom) else reduce_sum(x, axes=(0,))

        def total_of(atom: Atom) -> Tracer:
            if atom not in totals:
                totals[atom] = summed(atom)
            return totals[atom]

        for eqn in self._passed(term) or ():
            if eqn.primitive is dot_general:
                totals[eqn.outputs[0]] = self._total_of_products(eqn, value, summed)
            else:
                totals[eqn.outputs[0]] = eqn.primitive.bind_all([total_of(a) for a in eqn.operands], eqn.params)[0]
        return total_of(term)

    def _total_of_products(self, eqn: Eqn, value: Callable[[Atom], Tracer], summed: Callable[[Atom], Tracer]) -> Tracer:
        x, y = eqn.operands
        # The sum of products with a constant is the product of the sum with the constant.
        if self._is_constant(x):
            return dot_general(value(x), summed(y), **eqn.params)
        if self._is_constant(y):
            return dot_general(summed(x), value(y), **eqn.params)
        contract, shared = (
            tuple(tuple(i + 1 for i in dims) for dims in eqn.params[name]) for name in ("contract", "batch")
        )
        steps = tuple((0, *dims) for dims in contract)
        return dot_general(value(x), value(y), contract=steps, batch=shared)


def _is_linear(eqn: Eqn) -> bool:
    """Whether an equation commutes with the sum over the steps."""
    count = len(eqn.operands)
    return len(eqn.outputs) == 1 and len(eqn.primitive.linear_in(count, eqn.params)) == count


def is_one_operation(program: Program) -> bool:
    """Whether XLA compiles this body to one operation, to which elementwise functions add little cost."""
    touched = sum(a.type.nbytes for a in (*program.inputs, *program.outputs))
    return touched <= _ONE_OPERATION_BYTES and not any(eqn.primitive is dot_general for eqn in program.eqns)


def _before(program: Program, fixed: Sequence[Var], xs: Sequence[Var]) -> tuple[Program, Program]:
    """The part to compute for all steps at once, as a program of constants and elements; and the body that takes its
    results as further elements.

    This part is products with large constants, and elementwise functions of small elements.
    """
    constant: set[Atom] = set(fixed)
    known: set[Atom] = {*fixed, *xs}
    early: list[Eqn] = []
    moved: set[Atom] = set()
    for eqn in program.eqns:
        if all(isinstance(a, Const) or a in known for a in eqn.operands):
            early.append(eqn)
            known.update(eqn.outputs)
            factors = [a for a in eqn.operands if isinstance(a, Const) or a in constant]
            if eqn.primitive is dot_general and len(factors) == 1:
                least = max(_LARGE_BYTES, _SMALLER * eqn.outputs[0].type.nbytes)
                moved.update(eqn.outputs if factors[0].type.nbytes >= least else ())
            elif isinstance(eqn.primitive, e.Elementwise) and len(factors) < len(eqn.operands):
                moved.update(eqn.outputs if eqn.outputs[0].type.nbytes <= SMALL_BYTES else ())
    needed: set[Atom] = set(program.outputs)
    rest: list[Eqn] = []
    for eqn in reversed(program.eqns):
        if moved.isdisjoint(eqn.outputs) and not needed.isdisjoint(eqn.outputs):
            rest.append(eqn)
            needed.update(eqn.operands)
    boundary = [v for eqn in early for v in eqn.outputs if v in moved and v in needed]
    before = Program(program.name, (*fixed, *xs), needed_eqns(early, boundary), boundary)
    return before, Program(program.name, (*program.inputs, *boundary), rest[::-1], program.outputs)


def _narrow(program: Program, consts: int) -> Program:
    """The body, with a slice of a product with a constant replaced by a product with a slice of the constant."""
    constant: set[Atom] = set(program.inputs[:consts])
    uses = Counter(a for eqn in program.eqns for a in eqn.operands)
    uses.update(program.outputs)
    products = {
        eqn.outputs[0]: eqn for eqn in program.eqns if eqn.primitive is dot_general and uses[eqn.outputs[0]] == 1
    }
    eqns: list[Eqn] = []
    for eqn in program.eqns:
        product = products.get(eqn.operands[0]) if eqn.primitive is parts.slice_ else None  # type: ignore[arg-type]
        narrowed = None if product is None else _narrowed(eqn, product, constant)
        eqns += [eqn] if narrowed is None else narrowed
    if len(eqns) == len(program.eqns):
        return program
    return Program(program.name, program.inputs, needed_eqns(eqns, program.outputs), program.outputs)


def _narrowed(cutting: Eqn, product: Eqn, constant: set[Atom]) -> list[Eqn] | None:
    start, limit, strides = (cutting.params[name] for name in ("start", "limit", "strides"))
    whole = product.outputs[0].type.shape
    cut_axes = [i for i, n in enumerate(whole) if (start[i], limit[i]) != (0, n)]
    if product.params["batch"] != ((), ()) or len(cut_axes) != 1 or any(n != 1 for n in strides):
        return None
    (axis,) = cut_axes
    place = 0
    for number, operand in enumerate(product.operands):
        for own in range(operand.type.ndim):
            if own in product.params["contract"][number]:
                continue
            if place == axis and operand in constant:
                shape = operand.type.shape
                ends = {
                    "start": tuple(start[axis] if i == own else 0 for i in range(len(shape))),
                    "limit": tuple(limit[axis] if i == own else n for i, n in enumerate(shape)),
                    "strides": (1,) * len(shape),
                }
                part = Var(parts.slice_.type_rule(operand.type, **ends))
                operands = tuple(part if i == number else a for i, a in enumerate(product.operands))
                return [
                    Eqn(parts.slice_, (operand,), ends, (part,), cutting.line),
                    Eqn(dot_general, operands, product.params, cutting.outputs, product.line),
                ]
            place += 1
    return None


def _invariant(program: Program, consts: int) -> tuple[Program, Program]:
    """The part that depends only on constants, as a program; and the body that takes its results as further constants.

    Equations that only repeat smaller values stay in the body, where they cost less than reading the result.
    """
    fixed = program.inputs[:consts]
    invariant: set[Atom] = set(fixed)
    candidates: list[Eqn] = []
    needed: set[Atom] = set(program.outputs)
    staying: set[Eqn] = set()
    for eqn in program.eqns:
        if all(isinstance(a, Const) or a in invariant for a in eqn.operands):
            candidates.append(eqn)
            invariant.update(eqn.outputs)
        else:
            staying.add(eqn)
            needed.update(eqn.operands)
    boundary: list[Var] = []
    for eqn in reversed(candidates):
        mine = [v for v in eqn.outputs if v in needed]
        if mine and (eqn.primitive is broadcast or not any(isinstance(a, Var) for a in eqn.operands)):
            staying.add(eqn)
            needed.update(eqn.operands)
        else:
            boundary += mine
    before = Program(program.name, fixed, needed_eqns(candidates, boundary), boundary)
    if not boundary:
        return before, program
    eqns = [eqn for eqn in program.eqns if eqn in staying]
    return before, Program(program.name, (*fixed, *boundary, *program.inputs[consts:]), eqns, program.outputs)
