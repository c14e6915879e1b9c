"""The rules of every primitive, on every sample of the tables in samples.py and the files *_samples*.py."""

from __future__ import annotations

import functools
import importlib
import itertools
import pkgutil
from collections.abc import Callable
from typing import Any

import control_samples  # noqa: F401
import linalg_samples  # noqa: F401
import numpy as np
import pytest
import samples  # noqa: F401
import special_samples_bessel  # noqa: F401
import special_samples_errors  # noqa: F401
import special_samples_gamma  # noqa: F401
import tables
from checks import (
    DIFFERENCES,
    Flags,
    assert_all_close,
    assert_close,
    assert_same_type,
    backward,
    checked,
    chosen,
    differences,
    forward,
    inexact,
    inner,
    linearized,
    magnitude,
    or_zeros,
    spread,
    through_xla,
    through_xla_together,
)
from sampling import FAILURES, KINKS, MISFITS, SAMPLES, Failure, Kink, Misfit, Sample, directions, program_of
from tables import covering, in_chunks, naming

import ftrans.control
import ftrans.ops
import ftrans.spectral
from ftrans.control.call import call
from ftrans.control.cond import cond
from ftrans.control.loops.rewind import rewind
from ftrans.control.loops.scan import scan
from ftrans.control.loops.while_loop import while_
from ftrans.control.rules.custom_rule import custom
from ftrans.control.rules.linear_call import linear_call
from ftrans.core.primitive import Primitive, RunOnly
from ftrans.core.program import Program, literal
from ftrans.core.trace import Builder, Tracer, building
from ftrans.core.types import is_complex, is_inexact, type_of
from ftrans.ops.broadcast import reduce_sum
from ftrans.ops.elementwise import add, mul, real, select
from ftrans.ops.indexing import gather, scatter_add
from ftrans.ops.sparse_solve import sparse_solve
from ftrans.run.evaluate import evaluate
from ftrans.spectral.sparse import extreme_eigenpairs, extreme_singular_triples
from ftrans.transforms.batch import batch
from ftrans.transforms.differentiate import gradient, pullback
from ftrans.transforms.jvp import jvp
from ftrans.transforms.simplify import simplify
from ftrans.transforms.transpose import transpose

DOUBLE = ("float64", "complex128")
LANES = 3

Form = tuple[Program, list[Any]]


def is_double(sample: Sample) -> bool:
    """Whether finite differences of the row are accurate."""
    types = [*sample.types, *sample.out_types]
    return all(t.dtype.name in DOUBLE for t in types if is_inexact(t.dtype))


WITH_OPERANDS = [s for s in SAMPLES if s.sources]
DIFFERENTIABLE = [s for s in SAMPLES if s.smooth and any(s.active) and any(is_inexact(t.dtype) for t in s.out_types)]
ACCURATE = [s for s in DIFFERENTIABLE if is_double(s)]
COARSE = [s for s in DIFFERENTIABLE if not is_double(s)]
# What is derived from derivatives: two rows of each primitive, real and complex.
TWO_OF_EACH = covering(ACCURATE, lambda s: (s.primitive.name, any(is_complex(t.dtype) for t in s.types)), times=2)

each = functools.partial(tables.each, lambda row: row.primitive.name)


def reversible(rows: list[Sample]) -> list[Sample]:
    """The rows for which reverse mode is defined."""
    return [s for s in rows if s.reversible]


def numpy_results(sample: Sample, operands: list[Any]) -> list[Any]:
    """What the primitive's `numpy` rule gives, as a list."""
    with np.errstate(all="ignore"):
        result = sample.primitive.numpy(*operands, **sample.params)
    return list(result) if sample.primitive.multiple_results else [result]


def test_every_primitive_has_a_sample() -> None:
    sampled = {s.primitive for s in SAMPLES}
    missing = []
    for package in (ftrans.ops, ftrans.spectral, ftrans.control):
        for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            module = importlib.import_module(info.name)
            primitives = {p for p in vars(module).values() if isinstance(p, Primitive)}
            missing += [f"{info.name}: {p.name}" for p in primitives - sampled if not isinstance(p, RunOnly)]
    assert not missing


# Evaluation


@each(sample=SAMPLES)
def test_inferred_type_is_run_time_type(sample: Sample) -> None:
    operands = sample.draw()
    for value, type in zip(numpy_results(sample, operands), sample.out_types, strict=True):
        assert_same_type(value, type)


@each(sample=SAMPLES)
def test_straight_line_is_the_numpy_rule(sample: Sample) -> None:
    operands = sample.draw()
    before = [np.array(x) for x in operands]
    results = checked(sample.program(), operands)
    assert_all_close(results, numpy_results(sample, operands), tolerance=1e-15 if is_double(sample) else None)
    for x, y in zip(operands, before, strict=True):
        np.testing.assert_array_equal(x, y)
    for result in results:
        if isinstance(result, np.ndarray):
            assert result.flags.writeable
            assert not any(np.may_share_memory(result, x) for x in operands)


# Rows that are compiled as one program.
TOGETHER = 32


@in_chunks(TOGETHER, rows=SAMPLES)
def test_xla_is_numpy(rows: list[Sample]) -> None:
    programs, operands = [s.program() for s in rows], [s.draw() for s in rows]
    results = through_xla_together(programs, operands)
    for sample, found, program, args in zip(rows, results, programs, operands, strict=True):
        with naming(sample), np.errstate(all="ignore"):
            expected = evaluate(program, args)
            assert_all_close(sample.canonical(found), sample.canonical(expected), looseness=sample.looseness)


def dtypes(sample: Sample) -> tuple[str, ...]:
    """Those of the operands, each once."""
    return tuple(sorted({t.dtype.name for t in sample.types}))


@each(sample=covering(SAMPLES, dtypes, lambda s: type(s.primitive).__module__))
def test_xla_op_by_op_is_numpy(sample: Sample) -> None:
    operands = sample.draw()
    with np.errstate(all="ignore"):
        expected = evaluate(sample.program(), operands)
    found = through_xla(sample.program(), operands)
    assert_all_close(sample.canonical(found), sample.canonical(expected), looseness=sample.looseness)


def with_constant(sample: Sample, index: int, value: float) -> Program:
    """The program of a sample whose operand at `index` is a constant filled with one number."""
    types = sample.types
    builder = Builder([t for i, t in enumerate(types) if i != index])
    with building(builder):
        operands: list[Any] = builder.inputs()
        operands.insert(index, Tracer(builder, literal(value, types[index])))
        return builder.finish(sample.primitive.bind_all(operands, sample.params), "with_constant")


# Primitives of sparse matrices given by entries and places, and the operand that is neither.
OF_ENTRIES = {sparse_solve: 1, extreme_eigenpairs: None, extreme_singular_triples: None}


def is_possible(sample: Sample, index: int, value: float) -> bool:
    """Whether an operand may be filled with a number: an index must stay in the range of the sample."""
    type = sample.types[index]
    if sample.primitive in OF_ENTRIES and index != OF_ENTRIES[sample.primitive]:
        # Zeros, or entries that all lie at one place, make no matrix that has a solution or distinct values.
        return False
    if value == -1 and type.dtype.kind in "ub":
        return False
    if type.dtype.kind not in "iu" or sample.primitive.broadcasts:
        return True
    drawn = np.array([sample.draw(seed)[index] for seed in range(9)])
    return drawn.size == 0 or bool(drawn.min() <= value <= drawn.max())


def outcome(program: Program, args: list[Any]) -> Any:
    """Results of a program, or the type of the error that it raises."""
    with np.errstate(all="ignore"):
        try:
            return evaluate(program, args)
        except (ValueError, ArithmeticError, IndexError, RuntimeError) as error:
            return type(error)


CONSTANTS = covering(
    [(s, value) for s in WITH_OPERANDS for value in (0, 1, -1, 2)],
    lambda cell: cell[0],
    lambda cell: (cell[0].primitive.name, cell[1]),
)


@tables.each(lambda cell: cell[0].primitive.name, cell=CONSTANTS)
def test_constant_operands(cell: tuple[Sample, float]) -> None:
    sample, value = cell
    for index, type in enumerate(sample.types):
        if not is_possible(sample, index, value):
            continue
        operands = sample.draw()
        operands[index] = np.full(type.shape, value, type.dtype)[()]
        expected = outcome(sample.program(), operands)
        del operands[index]
        program = with_constant(sample, index, value).check()
        for form in (program, simplify(program).check()):
            found = outcome(form, operands)
            if isinstance(expected, list):
                assert_all_close(found, expected)
            else:
                assert found is expected


BROADCASTING = [s for s in SAMPLES if s.primitive.broadcasts and len(s.sources) > 1 and s.types[0].shape == (2, 3)]


@in_chunks(TOGETHER, rows=BROADCASTING)
def test_xla_broadcasts_constants(rows: list[Sample]) -> None:
    for index in range(max(len(s.sources) for s in rows)):
        having = [s for s in rows if index < len(s.sources)]
        programs = [with_constant(s, index, 2) for s in having]
        drawn = [s.draw() for s in having]
        given = [[x for i, x in enumerate(xs) if i != index] for xs in drawn]
        results = through_xla_together(programs, given)
        for sample, found, operands in zip(having, results, drawn, strict=True):
            with naming(sample):
                operands[index] = np.full(sample.types[index].shape, 2, sample.types[index].dtype)
                assert_all_close(found, evaluate(sample.program(), operands))


@each(misfit=MISFITS)
def test_misfits_are_refused(misfit: Misfit) -> None:
    with pytest.raises(misfit.error):
        misfit.primitive.output_types(misfit.types, misfit.params)


@each(failure=FAILURES)
def test_failures_name_the_line(failure: Failure) -> None:
    program = program_of(failure.primitive, [type_of(x) for x in failure.operands], failure.params)
    with pytest.raises(failure.error) as caught:
        evaluate(program, failure.operands)
    assert "sampling.py" in caught.value.__notes__[0]


def test_xla_takes_the_nearest_valid_index() -> None:
    x, places = np.array([1.0, 2.0, 3.0]), np.array([5, -7, 1])
    types = [type_of(x), type_of(places)]
    read = program_of(gather, types, {"axis": 0})
    assert_close(through_xla(read, [x, places])[0], np.array([3.0, 1.0, 2.0]))
    # Writing agrees with reading, so that they stay each other's transposes.
    ct = np.array([10.0, 20.0, 30.0])
    added = program_of(scatter_add, [types[0], type_of(ct), types[1]], {"axis": 0})
    assert_close(through_xla(added, [np.zeros(3), ct, places])[0], np.array([20.0, 30.0, 10.0]))


# First derivatives


def subsets(flags: tuple[bool, ...]) -> list[tuple[bool, ...]]:
    """The non-empty subsets of what is flagged: singletons and the whole; with `--all` all subsets of three, too."""
    places = [i for i, f in enumerate(flags) if f]
    sizes = range(1, len(places) + 1) if len(places) <= (3 if tables.whole else 2) else (1, len(places))
    picks = [set(pick) for size in sizes for pick in itertools.combinations(places, size)]
    return [tuple(i in pick for i in range(len(flags))) for pick in picks]


@each(sample=DIFFERENTIABLE)
def test_first_derivatives(sample: Sample) -> None:
    """Forward mode is central differences, and reverse mode its transpose."""
    program, operands = sample.program(), sample.draw()
    tolerance = 1e-12 if is_double(sample) else 5e-2
    for active in subsets(sample.active):
        tangents = sample.tangents(active, seed=1)
        outs, pushed = forward(program, active, operands, tangents)
        assert_all_close(outs, evaluate(program, operands))
        if is_double(sample):
            expected = differences(
                lambda *xs: chosen(evaluate(program, xs), inexact(program)), operands, spread(tangents, active)
            )
            assert_all_close(pushed, expected, tolerance=DIFFERENCES)
            assert_all_close(linearized(program, active, operands, tangents)[1], pushed)
        if sample.reversible:
            cotangents = directions(pushed, seed=2)
            outs_again, pulled = backward(program, active, operands, cotangents)
            assert_all_close(outs_again, outs)
            scale = magnitude(cotangents, pushed)
            assert inner(cotangents, pushed) == pytest.approx(inner(pulled, tangents), abs=tolerance * scale)


@each(sample=COARSE)
def test_jvp_in_low_precision_is_that_in_high_precision(sample: Sample) -> None:
    def widened(x: Any) -> Any:
        dtype = np.asarray(x).dtype
        return x if not is_inexact(dtype) else np.asarray(x, np.complex128 if is_complex(dtype) else np.float64)[()]

    operands = sample.draw()
    params = sample.params
    if "dtype" in params:
        params = {**params, "dtype": np.dtype(np.complex128 if is_complex(params["dtype"]) else np.float64)}
    tangents = sample.tangents(sample.active, seed=1)
    _, pushed = forward(sample.program(), sample.active, operands, tangents)
    wide = [widened(x) for x in operands]
    wide_program = program_of(sample.primitive, [type_of(x) for x in wide], params)
    _, expected = forward(wide_program, sample.active, wide, [widened(t) for t in tangents])
    assert_all_close(
        pushed, [np.asarray(x).astype(np.asarray(y).dtype)[()] for x, y in zip(expected, pushed, strict=True)]
    )


@each(sample=reversible(ACCURATE))
def test_transposed_twice_is_linear_again(sample: Sample) -> None:
    program, operands = sample.program(), sample.draw()
    parts = pullback(program, sample.active)
    residuals = evaluate(parts.values, operands)[len(program.outputs) :]
    known = (False,) * len(residuals)
    again = transpose(parts.linear, known + (True,) * parts.out_active.count(True))
    tangents = sample.tangents(sample.active, seed=1)
    found = checked(again.program, [*residuals, *chosen(tangents, parts.in_active)])
    types = chosen(program.out_types, parts.out_active)
    pushed = spread(linearized(program, sample.active, operands, tangents)[1], inexact(program))
    assert_all_close(or_zeros(spread(found, again.in_active), types), chosen(pushed, parts.out_active))


def kinked(kink: Kink) -> tuple[Program, list[Any], Flags]:
    """The program at a kink, the tangents that there are, and which operands have one."""
    program = program_of(kink.primitive, [type_of(x) for x in kink.operands], kink.params)
    active = tuple(t is not None for t in kink.tangents)
    return program, chosen(kink.tangents, active), active


@each(kink=KINKS)
def test_conventions_at_kinks(kink: Kink) -> None:
    program, tangents, active = kinked(kink)
    _, (pushed,) = forward(program, active, kink.operands, tangents)
    assert_close(pushed, np.asarray(kink.expected, pushed.dtype)[()])
    cotangents = directions([pushed], seed=2)
    _, pulled = backward(program, active, kink.operands, cotangents)
    assert inner(cotangents, [pushed]) == pytest.approx(inner(pulled, tangents), abs=1e-12)


@in_chunks(TOGETHER, kinks=KINKS)
def test_conventions_at_kinks_compiled(kinks: list[Kink]) -> None:
    parts = [kinked(kink) for kink in kinks]
    derived = [jvp(program, active, inexact(program)).program for program, _, active in parts]
    args = [[*kink.operands, *tangents] for kink, (_, tangents, _) in zip(kinks, parts, strict=True)]
    for kink, found, (program, _, _) in zip(kinks, through_xla_together(derived, args), parts, strict=True):
        with naming(kink), np.errstate(all="ignore"):
            outs = evaluate(program, kink.operands)
            assert_all_close(found, [*outs, np.asarray(kink.expected, found[-1].dtype)[()]])


# Batching


def lanes(sample: Sample) -> list[list[Any]]:
    """Operands for each element of a batch."""
    return [sample.draw(seed) for seed in range(LANES)]


def gathered(rows: list[list[Any]], batched: tuple[bool, ...]) -> list[Any]:
    """The operands of a batch: stacked where they are batched, those of the first lane elsewhere."""
    return [np.stack(xs) if b else xs[0] for xs, b in zip(zip(*rows, strict=True), batched, strict=True)]


def assert_batch_is_loop(
    program: Program, rows: list[list[Any]], batched: tuple[bool, ...], looseness: float
) -> Program:
    """Assert that a batched program does what a loop does; return it."""
    derived = batch(program, LANES, batched)
    found = checked(derived.program, gathered(rows, batched))
    with np.errstate(all="ignore"):
        looped = [
            evaluate(program, [x if b else x0 for x, x0, b in zip(row, rows[0], batched, strict=True)]) for row in rows
        ]
    for value, is_batched, expected in zip(found, derived.out_batched, zip(*looped, strict=True), strict=True):
        assert_close(value, np.stack(expected) if is_batched else expected[0], looseness=looseness)
    return derived.program


@each(sample=WITH_OPERANDS)
def test_batch_is_loop(sample: Sample) -> None:
    every = (True,) * len(sample.sources)
    for batched in subsets(every):
        derived = assert_batch_is_loop(sample.program(), lanes(sample), batched, sample.looseness)
    # A batch of batches, of which one axis is the same for all: that is how transformations meet batched equations.
    rows = [gathered(lanes(sample), every), gathered(lanes(sample)[::-1], every)] * LANES
    assert_batch_is_loop(derived, rows[:LANES], every, sample.looseness)


@each(sample=TWO_OF_EACH)
def test_batched_jvp_is_a_loop(sample: Sample) -> None:
    rows = [[*xs, *directions(chosen(xs, sample.active), seed=i)] for i, xs in enumerate(lanes(sample))]
    pushed = jvp(sample.program(), sample.active).program
    assert_batch_is_loop(pushed, rows, (True,) * len(rows[0]), 10 * sample.looseness)


@each(sample=reversible(TWO_OF_EACH))
def test_batched_pullback_is_a_loop(sample: Sample) -> None:
    program = sample.program()
    parts = pullback(program, sample.active)
    count = len(program.outputs)
    rows = []
    for i, xs in enumerate(lanes(sample)):
        outs = evaluate(parts.values, xs)
        rows.append([*outs[count:], *directions(chosen(outs[:count], parts.out_active), seed=i)])
    residuals, cotangents = len(outs) - count, parts.out_active.count(True)
    for known_too in (True, False):
        assert_batch_is_loop(parts.linear, rows, (known_too,) * residuals + (True,) * cotangents, 10 * sample.looseness)


HOLDING = [s for s in ACCURATE if s.primitive in (call, cond, custom, linear_call, scan, while_, rewind)]


def batched_form(sample: Sample) -> Form:
    every = (True,) * len(sample.sources)
    return batch(sample.program(), LANES, every).program, gathered(lanes(sample), every)


def pushforward(sample: Sample) -> Form:
    return jvp(sample.program(), sample.active).program, [*sample.draw(), *sample.tangents(sample.active, seed=1)]


def pullback_values(sample: Sample) -> Form:
    return pullback(sample.program(), sample.active).values, sample.draw()


def pullback_linear(sample: Sample) -> Form:
    program = sample.program()
    parts = pullback(program, sample.active)
    outs = evaluate(parts.values, sample.draw())
    count = len(program.outputs)
    cotangents = directions(chosen(outs[:count], parts.out_active), seed=1)
    return parts.linear, [*outs[count:], *cotangents]


DERIVED = covering(
    [
        (sample, make)
        for sample in HOLDING
        for make in (batched_form, pushforward, pullback_values, pullback_linear)
        if sample.reversible or make in (batched_form, pushforward)
    ],
    lambda cell: cell[0],
    lambda cell: (cell[0].primitive.name, cell[1].__name__),
)


@in_chunks(4, cells=DERIVED)
def test_derived_control_flow_through_xla(cells: list[tuple[Sample, Callable[[Sample], Form]]]) -> None:
    forms = [make(sample) for sample, make in cells]
    results = through_xla_together([program for program, _ in forms], [args for _, args in forms])
    for (sample, make), found, (program, args) in zip(cells, results, forms, strict=True):
        with naming((sample, make.__name__)):
            assert_all_close(found, evaluate(program, args))


# Second derivatives


def weighted_sum(sample: Sample) -> tuple[Program, list[Any]]:
    """A scalar program: the sum of all inexact results, each element times a weight; and the weights."""
    weights = directions([np.zeros(t.shape, t.dtype) for t in sample.out_types if is_inexact(t.dtype)], seed=3)
    builder = Builder([*sample.types, *map(type_of, weights)])
    with building(builder):
        inputs = builder.inputs()
        outs = sample.primitive.bind_all(inputs[: len(sample.sources)], sample.params)
        total: Any = None
        remaining = iter(inputs[len(sample.sources) :])
        for y in outs:
            if is_inexact(y.dtype):
                term = mul(y, next(remaining))
                term = real(term) if is_complex(y.dtype) else term
                term = reduce_sum(term, axes=tuple(range(y.ndim)))
                total = term if total is None else add(total, term)
        return builder.finish([total], "weighted_sum").check(), weights


@each(sample=reversible(TWO_OF_EACH))
def test_second_derivatives(sample: Sample) -> None:
    program, weights = weighted_sum(sample)
    operands = sample.draw()
    args = [*operands, *weights]
    active = sample.active + (False,) * len(weights)
    t, u = sample.tangents(sample.active, seed=4), sample.tangents(sample.active, seed=5)
    slope = gradient(program, active, with_value=False)

    def times(vector: list[Any]) -> list[Any]:
        return forward(slope, active, args, vector)[1]

    forward_over_reverse = times(t)
    derived = jvp(program, active, (True,)).program
    along = Program("along", derived.inputs, derived.eqns, derived.outputs[1:])
    reverse_over_forward = gradient(along, active + (False,) * len(t), with_value=False)
    assert_all_close(checked(reverse_over_forward, [*args, *t]), forward_over_reverse, looseness=10 * sample.looseness)
    scale = magnitude(u, forward_over_reverse)
    assert inner(u, forward_over_reverse) == pytest.approx(inner(t, times(u)), abs=1e-11 * scale)
    expected = differences(lambda *xs: evaluate(slope, xs), args, spread(t, active))
    assert_all_close(forward_over_reverse, expected, tolerance=DIFFERENCES)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_select_with_zero_keeps_every_bit(dtype: str, zero: float) -> None:
    x = np.random.default_rng(0).standard_normal((80, 100)).astype(dtype)
    x.flat[:4] = [np.nan, np.inf, -np.inf, -0.0]
    condition = np.random.default_rng(1).random(x.shape) < 0.5
    number = np.dtype(dtype).type(zero)
    for strided in (lambda a: a, lambda a: a[:, ::-1], lambda a: a.T):
        c, y = strided(condition), strided(x)
        for operands in ((c, y, number), (c, number, y)):
            found, expected = select.numpy(*operands), np.where(*operands)
            assert found.dtype == expected.dtype
            assert found.tobytes() == expected.tobytes()
