"""The backward of one operation, derived from its program by `transforms.differentiate.pullback`.

A pullback is two programs: one computes the values and residuals, the other is linear and takes residuals and
cotangents.  There are two ways to provide the residuals:

* For an operation of NumPy, the arguments and results that are needed are kept, and the residuals recomputed from them.
  Most of these arrays are alive anyway, so a graph holds little memory of its own.
* A whole program, such as a loop, runs in the form that returns its residuals in addition to its results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from ..core.interpret import inline
from ..core.program import Atom, Const, Eqn, Program, Var, literal, needed_eqns
from ..core.trace import Builder, Tracer, building
from ..core.types import is_inexact
from ..run.straightline import compiled, function_of
from ..transforms.differentiate import linearize
from ..transforms.simplify import simplify
from ..transforms.transpose import transpose

Flags = tuple[bool, ...]
Function = Callable[..., list[Any]]
Run = Callable[[Program, Sequence[Any]], list[Any]]

_next_number = count().__next__


class Pull:
    """The backward of an operation, for cotangents of some of its results.

    Attributes:
        program: some of the kept values, then cotangents -> cotangents of the active arguments that get one.
        takes: the kept values that the program takes: first by their numbers, finally by their positions.
        takes_all: whether these are all, in their order.
        in_active: which of the active arguments get a cotangent.
        is_fresh: for each resulting cotangent, whether it is a new array.
        function: the program on NumPy arrays, whose results may share memory with the arguments; None until first used.
        passes_on: if each resulting cotangent is one of the arguments as it is, which one; otherwise None.
    """

    __slots__ = ("_parts", "function", "in_active", "is_fresh", "passes_on", "program", "takes", "takes_all")

    def __init__(self, program: Program, takes: Sequence[int], in_active: Flags, run: Run | None = None) -> None:
        self.program = program
        self.takes = tuple(takes)
        self.takes_all = False
        self.in_active = in_active
        # One that does not run on NumPy stays as it is.
        self._parts: dict[Flags, Pull] | None = {} if run is None else None
        self.function: Function | None = None if run is None else lambda *args: run(program, args)
        fresh = {v for eqn in program.eqns if not eqn.primitive.aliases for v in eqn.outputs} - _viewed(program)
        numbers = {v: i for i, v in enumerate(program.inputs)}
        passes_on = all([isinstance(a, Var) and a in numbers for a in program.outputs])
        self.passes_on = [numbers[a] for a in program.outputs if isinstance(a, Var)] if passes_on else None
        self.is_fresh = tuple(a in fresh and program.outputs.count(a) == 1 for a in program.outputs)

    def part(self, needed: Flags) -> Pull:
        """What computes the cotangents of those active arguments that are flagged."""
        if self._parts is None:
            return self
        found = self._parts.get(needed)
        if found is None:
            found = self._parts[needed] = self._part(
                tuple([a and n for a, n in zip(self.in_active, needed, strict=True)])
            )
        return found

    def _part(self, in_active: Flags) -> Pull:
        program, outputs = self.program, iter(self.program.outputs)
        made = [(next(outputs), n) for a, n in zip(self.in_active, in_active, strict=True) if a]
        chosen = [atom for atom, n in made if n]
        eqns = needed_eqns(program.eqns, chosen, set(program.inputs))
        found = _restricted(Program(program.name, program.inputs, eqns, chosen), len(self.takes), in_active)
        found.takes = tuple([self.takes[i] for i in found.takes])
        return found

    def compiled(self) -> Function:
        """What `function` is from now on."""
        found = self.function = function_of(self.program, fresh=False)
        return found


class Derivative:
    """The backward of an operation with respect to its active arguments, and the values to keep for it.

    Kept values are numbered: arguments first, then results, then extra values.

    Attributes:
        number: tells it from all others, also from those that are gone.
        program: the operation.
        active: which arguments are active.
        edge_of: for each active argument its number among them.
        out_active: which results depend on an active argument.
        out_types: types of the results.
        result_count: number of results.
        inputs: which arguments are kept.
        outputs: which results are kept.
        kept_count: how many values are kept.
        only: the backward of an operation with one result, once `only_pull` has been asked for it.
        extras: a program that computes the extra values; None if there are none.
        uses_arguments: whether the backward uses the arguments and results themselves, which may be changed in place.

    Args:
        program: the operation.
        active: which arguments are active.
        run: runs programs on arrays; the NumPy evaluator by default.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    extras: Function | None
    kept_count: int
    uses_arguments = True

    def __init__(self, program: Program, active: Flags, run: Run | None = None) -> None:
        self.number = _next_number()
        self.program = program
        self._run = run
        self.active = active
        self.edge_of = [active[:i].count(True) for i in range(len(active))]
        self._parts = linearize(program, active)
        self.out_active = self._parts.out_active
        self.result_count = len(self.out_active)
        self.out_types = program.out_types
        self._pulls: dict[Flags, Pull] = {}
        self.only: Pull | None = None

    def pull_of(self, present: Sequence[bool]) -> Pull:
        """The backward for cotangents of some results, of which there is at least one."""
        return self.only_pull() if len(present) == 1 else self.pull(tuple(present))

    def only_pull(self) -> Pull:
        """The backward of an operation with one result."""
        found = self.only
        if found is None:
            found = self.only = self.pull((True,))
        return found

    def pull(self, present: Flags) -> Pull:
        """The backward for cotangents of the results flagged in `present`, which must be active."""
        found = self._pulls.get(present)
        if found is None:
            found = self._pulls[present] = self._pull(present)
            found.takes = self._positions(found.takes)
            found.takes_all = found.takes == tuple(range(self.kept_count))
        return found

    def _positions(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """The positions of these numbers among the kept values."""
        count, end = len(self.program.inputs), len(self.program.inputs) + len(self.program.outputs)
        kept = [*self.inputs, *(count + j for j in self.outputs)]
        return tuple(kept.index(i) if i < end else len(kept) + i - end for i in numbers)

    def _pull(self, present: Flags) -> Pull:
        raise NotImplementedError

    def recorded_pull(self, present: Flags) -> Pull:
        """A backward that starts from arguments, results and masks only, so that it can itself be differentiated."""
        return self.pull(present)

    def _transposed(self, present: Flags) -> tuple[Program, Flags]:
        """The transposed linear program: residuals, then cotangents -> cotangents."""
        parts = self._parts
        linear = (False,) * parts.residual_count + (True,) * self.active.count(True)
        turned = transpose(parts.linear, linear, tuple(p for p, a in zip(present, self.out_active, strict=True) if a))
        return simplify(turned.program), turned.in_active

    def _composed(self, present: Flags, from_results: bool = True) -> tuple[Program, Flags]:
        """Arguments, results, then cotangents -> cotangents: residuals are recomputed from arguments and results."""
        linear, in_active = self._transposed(present)
        values, types = self._parts.values, self.program.out_types
        count, given = len(types), len(self.program.inputs) + len(types)
        builder = Builder([*self.program.in_types, *types, *(t for t, p in zip(types, present, strict=True) if p)])
        with building(builder):
            inputs = builder.inputs()
            known: dict[Atom, Tracer] = dict(zip(values.inputs, inputs, strict=False))
            if from_results:
                for atom, y in zip(values.outputs[:count], inputs[len(known) : given], strict=True):
                    known.setdefault(atom, y)
            uses = {a for eqn in linear.eqns for a in eqn.operands} | set(linear.outputs)
            residuals = values.outputs[count:]
            wanted = [a for a, v in zip(residuals, linear.inputs, strict=False) if v in uses and a not in known]
            for eqn in needed_eqns(values.eqns, wanted, known):
                operands = [Tracer(builder, a) if isinstance(a, Const) else known[a] for a in eqn.operands]
                for var, result in zip(eqn.outputs, builder.repeat(eqn, operands), strict=True):
                    known.setdefault(var, result)
            for atom in residuals:
                # Residuals that the linear program does not use are not computed.
                known.setdefault(atom, Tracer(builder, atom if isinstance(atom, Const) else literal(0, atom.type)))
            cotangents = inline(linear, [*(known[a] for a in residuals), *inputs[given:]])
            composed = builder.finish(cotangents, f"pull({self.program.name})")
        return simplify(self._with_lines_of_its_own(composed)), in_active

    def _with_lines_of_its_own(self, composed: Program) -> Program:
        """A backward with those lines of the user that it belongs to."""
        return composed


class OfCall(Derivative):
    """The derivative of one NumPy call: keeps arguments and results, or masks in place of larger arguments."""

    def __init__(self, program: Program, active: Flags, run: Run | None = None) -> None:
        super().__init__(program, active, run)
        self._full, self._in_active = self._composed(self.out_active)
        count = len(program.inputs)
        given = self._full.inputs[: count + len(program.outputs)]
        masks = _masks(self._full, given) if self.out_active.count(True) == 1 else []
        self._masks = masks
        self.extras = (
            function_of(Program("masks", given, needed_eqns(self._full.eqns, masks), masks)) if masks else None
        )
        used = _used(self._full, given, masks)
        self.inputs = tuple(i for i in range(count) if given[i] in used)
        self.outputs = tuple(j for j in range(len(program.outputs)) if given[count + j] in used)
        self.kept_count = len(self.inputs) + len(self.outputs) + len(masks)

    def _with_lines_of_its_own(self, composed: Program) -> Program:
        # The line that happens to be the first to go back through such a call is not that of all of them.
        return without_lines(composed)

    def _pull(self, present: Flags) -> Pull:
        count = len(self.program.inputs) + len(self.program.outputs)
        if present == self.out_active:
            program, in_active = self._full, self._in_active
        else:
            program, in_active = self._composed(present)
        cotangents = program.inputs[count:]
        inputs = [*program.inputs[:count], *self._masks]
        eqns = needed_eqns(program.eqns, program.outputs, {*inputs, *cotangents})
        return _restricted(Program(program.name, [*inputs, *cotangents], eqns, program.outputs), len(inputs), in_active)


class OfProgram(Derivative):
    """The derivative of a whole program, which runs as `forward`: it returns residuals after the results.

    Attributes:
        forward: arguments -> results, then residuals, which share no memory with the arguments.
        run_forward: runs it on a list of arrays.
    """

    uses_arguments = False

    def __init__(self, program: Program, active: Flags, run: Run | None = None) -> None:
        super().__init__(program, active, run)
        linear, _ = self._transposed(self.out_active)
        count = len(program.outputs)
        uses = {a for eqn in linear.eqns for a in eqn.operands} | set(linear.outputs)
        self._is_used = [v in uses for v in linear.inputs[: self._parts.residual_count]]
        values = self._parts.values
        residuals = [a for a, u in zip(values.outputs[count:], self._is_used, strict=True) if u]
        self.forward = simplify(
            Program(program.name, values.inputs, values.eqns, [*values.outputs[:count], *residuals])
        )
        self.run_forward: Callable[[Sequence[Any]], list[Any]] = (
            compiled(self.forward) if run is None else functools.partial(run, self.forward)
        )
        # Arguments are kept only for higher derivatives, which start from them.
        self.inputs = tuple(range(len(program.inputs)))
        self.outputs = ()
        self.extras = None
        self.kept_count = len(self.inputs) + self._is_used.count(True)
        self._recorded: dict[Flags, Pull] = {}

    def _pull(self, present: Flags) -> Pull:
        linear, in_active = self._transposed(present)
        count = self._parts.residual_count
        kept = [v for v, u in zip(linear.inputs[:count], self._is_used, strict=True) if u]
        start = len(self.program.inputs) + len(self.program.outputs)
        program = Program(f"pull({self.program.name})", [*kept, *linear.inputs[count:]], linear.eqns, linear.outputs)
        pull = _restricted(program, len(kept), in_active)
        return Pull(pull.program, [start + i for i in pull.takes], in_active, self._run)

    def recorded_pull(self, present: Flags) -> Pull:
        found = self._recorded.get(present)
        if found is None:
            program, in_active = self._composed(present, from_results=False)
            found = _restricted(program, len(program.inputs) - present.count(True), in_active)
            found.takes = self._positions(found.takes)
            self._recorded[present] = found
        return found


def without_lines(program: Program) -> Program:
    """`program` without lines: each node that uses it has its own line."""
    eqns = [Eqn(eqn.primitive, eqn.operands, eqn.params, eqn.outputs, None) for eqn in program.eqns]
    return Program(program.name, program.inputs, eqns, program.outputs)


def _viewed(program: Program) -> set[Atom]:
    """The values of a program of which a result may be a view."""
    made_by: dict[Atom, Eqn] = {v: eqn for eqn in program.eqns for v in eqn.outputs}
    found: set[Atom] = set()
    pending = list(program.outputs)
    while pending:
        eqn = made_by.get(pending.pop())
        if eqn is not None and eqn.primitive.aliases:
            found.update(eqn.operands)
            pending += eqn.operands
    return found


def _restricted(program: Program, count: int, in_active: Flags) -> Pull:
    """The backward by a program, without those of its first `count` inputs that it does not use."""
    used = {a for eqn in program.eqns for a in eqn.operands} | set(program.outputs)
    takes = [i for i, v in enumerate(program.inputs[:count]) if v in used]
    inputs = [*(program.inputs[i] for i in takes), *program.inputs[count:]]
    return Pull(Program(program.name, inputs, program.eqns, program.outputs), takes, in_active)


def _used(program: Program, given: Sequence[Var], masks: Sequence[Var]) -> set[Var]:
    """Which of the variables `given` are needed if `masks` are kept."""
    eqns = needed_eqns(program.eqns, program.outputs, {*program.inputs, *masks})
    used = {a for eqn in eqns for a in eqn.operands} | set(program.outputs)
    return {v for v in (*given, *masks) if v in used}


def _masks(program: Program, given: Sequence[Var]) -> list[Var]:
    """Booleans to keep because they take less memory than the arguments from which they are computed.

    Arguments and results count half, since other references may keep them alive.
    """

    def price(masks: list[Var]) -> float:
        return sum(v.type.nbytes * (1.0 if v in masks else 0.5) for v in _used(program, given, masks))

    masks: list[Var] = []
    candidates = [v for eqn in program.eqns for v in eqn.outputs if not is_inexact(v.type.dtype) and v.type.nbytes]
    while candidates:
        best = min(candidates, key=lambda v: price([*masks, v]))
        if price([*masks, best]) >= price(masks):
            break
        masks.append(best)
        candidates.remove(best)
    return masks
