"""The first gradient of a function of some 1,000 operations that nobody has seen before, without a compiler."""

from __future__ import annotations

import functools
import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy

from .harness import Contender, Row, Table, Verdict, show_seconds, time_side_by_side
from .libraries import Library, autograd, available, ftrans, jax_on

OPERATIONS = 1_000
STAGE_ROUNDS = 7
# The functions are random, without repetition: of `a`, `b` and `c`, which are recent results, and numbers `k`.
STATEMENTS = {
    "elementwise": ["np.sin({a})", "np.tanh({a})", "{a} * {b}", "{a} - {b}", "0.{k} * {a}", "np.exp(-{a} * {a})"],
    "matrices": [
        "np.tanh({a} @ {b})",
        "0.5 * ({a} + {b}.T)",
        "{a} * np.mean({b})",
        "np.sin({a} - np.sum({b}, axis=0))",
        "{a} / 2.{k}",
    ],
    "indexing": [
        "np.tanh({a}[{k}] * {b})",
        "np.concatenate([{a}[{k}:], {b}[:{k}]])",
        "0.5 * ({a}[::-1] - {b})",
        "np.where({a} > 0.{k}, {a}, 0.5 * {b})",
        "np.sin({a}[{k}] + {b})",
    ],
    "scalars": [
        "0.{k} * ({a} - {b}) + 0.1 * {c}",
        "np.sin({a}) + 0.1 * {b}",
        "{a} / (1.0 + {b}**2)",
        "{a} * {b} - {c}",
    ],
}
BEGINNINGS = {
    "matrices": "v0 = v1 = v2 = np.outer(x, x)",
    "scalars": "v0, v1, v2 = x[0], x[1], x[2]",
    "one expression": "",
}


def run() -> Table:
    return Table(
        f"first_call: the first gradient of a new function of {OPERATIONS:,} equations, un-jitted",
        [row(kind) for kind in (*STATEMENTS, "one expression")],
    )


def row(kind: str) -> Row:
    import jax

    x = numpy.linspace(0.1, 1.0, 20)
    cpu = jax.devices("cpu")[0]
    libraries = available({"ftrans": ftrans, "jax": lambda: jax_on(cpu), "autograd": autograd})
    contenders = {name: newcomer(library, kind, x) for name, library in libraries.items()}
    timings = time_side_by_side(contenders, reference="jax", seconds=8.0, patience=5.0)
    columns = {name: timings.typical(name) for name in ("ftrans", "jax", "autograd")}
    stages = stages_of_an_equation(kind, x) if "ftrans" in libraries else {}
    measured = columns["ftrans"] if isinstance(columns["ftrans"], float) else None
    verdicts = [
        Verdict(measured, "in all", 0.15, show_seconds),
        Verdict(stages.get("derive"), "to derive an equation", 60e-6, show_seconds),
        timings.ratio("ftrans", "autograd"),
    ]
    return Row(kind, {**columns, **stages}, verdicts)


def newcomer(library: Library, kind: str, x: numpy.ndarray) -> Contender:
    """The gradient of another function in each turn.  Writing that function is not timed."""
    seeds = itertools.count()
    current: list[Callable[[], Any]] = []

    @contextmanager
    def scope() -> Iterator[None]:
        gradient = library.contender(random_function(kind, next(seeds)), (x,))
        with gradient.scope():
            current[:] = [gradient.call]
            yield

    return Contender(lambda: current[0](), scope)


def stages_of_an_equation(kind: str, x: numpy.ndarray) -> dict[str, float]:
    """Where the time goes, in seconds for each equation that was traced; one gradient is simplified and translated."""
    import ftrans as ft
    from ftrans.run.straightline import function_of
    from ftrans.transforms.differentiate import gradient
    from ftrans.transforms.simplify import simplify

    rounds: list[dict[str, float]] = []
    for seed in range(STAGE_ROUNDS):
        function = random_function(kind, -1 - seed)
        times = [time.perf_counter()]
        program = ft.trace(functools.partial(function, numpy))(x)
        times.append(time.perf_counter())
        simplified = simplify(gradient(program, (True,), False))
        times.append(time.perf_counter())
        function_of(simplified)
        times.append(time.perf_counter())
        durations = [(end - start) / len(program.eqns) for start, end in itertools.pairwise(times)]
        rounds.append(dict(zip(("trace", "derive", "translate"), durations, strict=True)))
    return {stage: statistics.median(times[stage] for times in rounds) for stage in rounds[0]}


def random_function(kind: str, seed: int) -> Callable[[Any, Any], Any]:
    """A function of `np` and a vector of 20 numbers, of about `OPERATIONS` operations."""
    source = random.Random(f"{kind} {seed}")
    body = one_expression(source) if kind == "one expression" else statements(kind, source)
    namespace: dict[str, Any] = {}
    exec(compile(f"def f(np, x):\n{body}", f"<{kind} {seed}>", "exec"), namespace)
    return namespace["f"]


def statements(kind: str, source: random.Random) -> str:
    lines = [BEGINNINGS.get(kind, "v0 = v1 = v2 = x")]
    count, operations = 3, 0
    while operations < OPERATIONS:
        template = source.choice(STATEMENTS[kind])
        a, b, c = (f"v{source.randrange(max(0, count - 6), count)}" for _ in "abc")
        lines.append(f"v{count} = {template.format(a=a, b=b, c=c, k=source.randrange(1, 10))}")
        count += 1
        operations += sum(template.count(sign) for sign in ("np.", "{b}", "[", "(1.0", "**", "-{a}", "{c}"))
    lines.append(f"return np.sum(np.tanh({' + '.join(f'v{i}' for i in range(count - 6, count))}))")
    return "\n".join(f"    {line}" for line in lines)


def one_expression(source: random.Random) -> str:
    terms = [
        f"np.{source.choice(['sin', 'cos', 'tanh'])}({source.random():.3f} * x) * x" for _ in range(OPERATIONS // 4)
    ]
    return f"    return np.sum({' + '.join(terms)})"
