"""Profiles: what is counted exactly, what adds up, and what the reports look like; times are never compared."""

from __future__ import annotations

import asyncio
import json
import math
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import control_samples  # noqa: F401
import numpy as np
import pytest
import samples  # noqa: F401
from sampling import SAMPLES

import ftrans as ft
from ftrans.base.observe import Observer, current_observer, observing
from ftrans.debug.events import Place
from ftrans.debug.report import amount, seconds
from ftrans.run.costs import flops, nbytes, program_flops
from ftrans.run.evaluate import evaluate

M, N, K = 8, 5, 7


def product(x: Any, w: Any) -> Any:
    return np.sum(x @ w)


def matrices() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(M, K)), rng.normal(size=(K, N))


def row(prof: ft.debug.Profile, name: str, group_by: str = "primitive") -> Any:
    """The row of this name."""
    (found,) = (r for r in prof.rows(group_by) if r.name == name)
    return found


def loops(x: Any) -> Any:
    y = ft.fori_loop(0, 10, lambda i, c: np.sin(c) * 2.0, x)
    _, y = ft.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, np.exp(-c[1])), (0, y))
    y = ft.cond(x[0] > 0, lambda y: np.tanh(y), lambda y: np.cosh(y), y)
    return np.sum(y)


# Counting


def test_a_product_is_counted_exactly() -> None:
    x, w = matrices()
    program = ft.trace(product)(x, w)
    with ft.debug.profile() as prof:
        for _ in range(3):
            program(x, w)
    assert (row(prof, "dot_general").calls, row(prof, "reduce_sum").calls) == (3, 3)
    assert row(prof, "dot_general").flops == 3 * 2 * M * N * K
    assert row(prof, "reduce_sum").flops == 3 * M * N
    assert row(prof, "dot_general").nbytes == 3 * 8 * (M * K + K * N + M * N)
    totals = prof.totals()
    assert totals.flops == 3 * program_flops(program)
    assert totals.nbytes == 3 * sum(map(nbytes, program.eqns))
    assert totals.calls == 6


def test_loops_count_each_step() -> None:
    x = np.ones(4)
    program = ft.trace(loops)(x)
    with ft.debug.profile() as prof:
        program(x)
    calls = {r.name: r.calls for r in prof.rows()}
    assert (calls["sin"], calls["exp"], calls["tanh"]) == (10, 3, 1)
    assert "cosh" not in calls
    assert row(prof, "sin").flops == 40
    # What a loop does is counted in its body.
    assert row(prof, "scan").flops == row(prof, "while").flops == row(prof, "cond").flops == 0
    assert row(prof, "scan").nbytes == 0


def test_times_add_up() -> None:
    with ft.debug.profile() as prof:
        ft.grad(loops)(np.ones(4))
        ft.jacobian(np.cumprod)(np.ones(3))
    totals = prof.totals()
    assert 0 < totals.self_time <= totals.wall_time
    for group in ("primitive", "line", "scope"):
        rows = prof.rows(group)
        assert sum(r.self_time for r in rows) == pytest.approx(totals.self_time, rel=1e-9)
        assert sum(r.flops for r in rows) == totals.flops
        assert all(0 <= r.self_time <= r.total_time * (1 + 1e-9) <= totals.self_time * (1 + 2e-9) for r in rows)

    def check(place: Place) -> None:
        assert place.self_ns >= 0
        assert all(child.parent is place for child in place.children.values())
        for child in place.children.values():
            check(child)

    for place in prof.root.children.values():
        check(place)


def test_time_of_what_runs_inside_itself_counts_once() -> None:
    def nested(x: Any) -> Any:
        return np.sum(ft.fori_loop(0, 3, lambda i, c: ft.fori_loop(0, 2, lambda j, d: np.sin(d), c), x))

    program = ft.trace(nested)(np.ones(3))
    with ft.debug.profile() as prof:
        program(np.ones(3))
    assert row(prof, "scan").calls == 4
    assert row(prof, "sin").calls == 6
    assert row(prof, "scan").total_time <= prof.totals().self_time * (1 + 1e-9)


@pytest.mark.parametrize(
    ("f", "args", "expected"),
    [
        (lambda x: x**3, (np.ones(5),), 10),
        (lambda x: x * (1 + 2j), (np.ones(5, complex),), 20),
        (lambda x: x + 1, (np.arange(5),), 0),
        (lambda x: x.reshape(2, 3).T, (np.ones(6),), 0),
        (lambda x: np.sort(x), (np.ones(8),), 24),
        (lambda a: np.linalg.inv(a), (np.eye(3)[None].repeat(2, 0),), 2 * 2 * 27),
        (lambda a, b: np.linalg.solve(a, b), (np.eye(3), np.ones((3, 2))), 2 / 3 * 27 + 2 * 9 * 2),
        (lambda a: np.linalg.cholesky(a), (np.eye(6),), 6**3 / 3),
        (lambda x, y: np.einsum("bij,bjk->bik", x, y), (np.ones((2, 3, 4)), np.ones((2, 4, 5))), 2 * 2 * 3 * 4 * 5),
        (lambda x: ft.cond(x > 0, lambda x: np.sin(np.cos(x)), lambda x: x, x), (1.0,), 1 + 2),
        (lambda x: ft.jit(np.sin)(x) + 1, (np.ones(3),), 6),
        (lambda x: x[np.array([0, 2])], (np.ones(3),), 0),
    ],
)
def test_estimates(f: Any, args: Any, expected: float) -> None:
    assert program_flops(ft.trace(f)(*args)) == pytest.approx(expected)


# Running under a profile


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_results_are_the_same_bits(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4, 3)).astype(dtype)

    def f(x: Any) -> Any:
        y = x**3 + x.sum(axis=0) * np.float32(2)
        return np.sum(ft.scan(lambda c, r: (c * r + 1, np.sin(c)), y[0], x)[1] ** 4) + np.sum(y / (1 + x[:, :1] ** 2))

    plain = ft.value_and_grad(f)(x)
    with ft.debug.profile():
        profiled = ft.value_and_grad(f)(x)
    assert plain[0] == profiled[0]
    np.testing.assert_array_equal(plain[1], profiled[1])
    assert profiled[1].flags.writeable


def test_every_primitive_runs_alike_under_an_observer() -> None:
    class Count(Observer):
        seen = 0

        def equation(self, eqn: Any, operands: Any, run: Any) -> Any:
            results = run()
            Count.seen += 1
            assert len(operands) == len(eqn.operands)
            assert len(results) == len(eqn.outputs)
            assert 0 <= flops(eqn) < math.inf
            return results

    for sample in SAMPLES:
        program, operands = sample.program(), sample.draw()
        with np.errstate(all="ignore"):
            plain = evaluate(program, operands)
            with observing(Count()):
                observed = evaluate(program, operands)
        for x, y in zip(plain, observed, strict=True):
            np.testing.assert_array_equal(x, y, strict=True)
    assert Count.seen > len(SAMPLES)


def test_nothing_is_prepared_for_profiles_without_one() -> None:
    program = ft.trace(product)(*matrices())
    program(*matrices())
    assert not [key for key in program.derived if "observer" in str(key)]


def test_tracing_and_transforming_are_listed() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.sin(x) * 3.25)

    with ft.debug.profile() as prof:
        ft.grad(f)(np.ones(3))
    names = {r.name for r in prof.rows()}
    assert {"tracing", "transforming: jvp", "transforming: transpose", "transforming: simplify"} <= names
    assert any(e.kind == "tracing" and e.name == "tracing f" for e in prof.events)
    assert all(e.line.startswith("test_profile.py:") for e in prof.events)
    with ft.debug.profile() as prof:
        ft.grad(f)(np.ones(3))
    assert "transforming: jvp" not in {r.name for r in prof.rows()}


def test_errors_pass_and_leave_nothing_behind() -> None:
    def f(a: Any) -> Any:
        return np.sum(np.linalg.inv(a))

    with ft.debug.profile() as prof, pytest.raises(np.linalg.LinAlgError) as caught:
        ft.grad(f)(np.zeros((2, 2)))
    assert "np.linalg.inv(a)" in "".join(caught.value.__notes__)
    assert current_observer() is None
    assert row(prof, "inv").calls == 1
    with pytest.raises(KeyError), ft.debug.profile() as prof:
        raise KeyError
    assert current_observer() is None
    assert prof.totals().wall_time > 0


def test_warnings_keep_the_line() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.log(x))

    with ft.debug.profile(), pytest.warns(RuntimeWarning, match="np.log"):
        ft.value_and_grad(f)(np.array([0.0, 1.0]))


def test_profiles_nest() -> None:
    program = ft.trace(product)(*matrices())
    with ft.debug.profile() as outer:
        program(*matrices())
        with ft.debug.profile() as inner:
            program(*matrices())
    assert (row(outer, "dot_general").calls, row(inner, "dot_general").calls) == (2, 1)


def test_threads_and_tasks_are_apart() -> None:
    program = ft.trace(product)(*matrices())

    def run(count: int) -> None:
        for _ in range(count):
            program(*matrices())

    with ft.debug.profile() as prof:
        thread = threading.Thread(target=run, args=(5,))
        thread.start()
        thread.join()
        run(2)
    assert row(prof, "dot_general").calls == 2

    counts = {}

    async def task(name: str, count: int) -> None:
        with ft.debug.profile() as mine:
            for _ in range(count):
                program(*matrices())
                await asyncio.sleep(0)
        counts[name] = row(mine, "dot_general").calls

    async def both() -> None:
        await asyncio.gather(task("a", 2), task("b", 3))

    asyncio.run(both())
    assert counts == {"a": 2, "b": 3}


def test_an_observer_sees_operands_and_results() -> None:
    seen = []

    class Watch(Observer):
        def equation(self, eqn: Any, operands: Any, run: Any) -> Any:
            results = run()
            seen.append((eqn.primitive.name, [np.shape(x) for x in operands], [np.shape(x) for x in results]))
            return results

    with observing(Watch()):
        ft.trace(product)(*matrices())(*matrices())
        with observing(None):
            ft.trace(product)(*matrices())(*matrices())
    assert seen == [("dot_general", [(M, K), (K, N)], [(M, N)]), ("reduce_sum", [(M, N)], [()])]


def test_operations_that_run_at_once_are_reported_as_a_whole() -> None:
    x, w = matrices()
    program = ft.trace(product)(x, w)
    line = program.eqns[0].line
    with ft.debug.profile() as outer, ft.debug.profile() as inner:
        observer = current_observer()
        assert observer is not None
        assert observer.operation("product", program, [x, w], lambda: program(x, w), line) == program(x, w)
    for prof in (outer, inner):
        assert row(prof, "product").calls == 1
        assert row(prof, "product").flops == program_flops(program)
        assert [e.line for e in prof.events if e.name == "product"] == [repr(line)]
        # The other call of the program runs by equations.
        assert row(prof, "dot_general").calls == 1


def test_operations_on_jax_arrays_are_seen() -> None:
    import jax

    with jax.enable_x64(True):
        x = jax.numpy.ones(3)
    with ft.debug.profile() as prof:
        ft.grad(lambda x: np.sum(np.sin(x)))(x)
    assert row(prof, "cos").calls == 1


# Scopes


def scoped(x: Any) -> Any:
    with ft.debug.scope("encoder"):
        y = np.sin(x)
        with ft.debug.scope("attention"):
            y = np.exp(y)
    return np.sum(y)


def test_scopes_nest_and_derivatives_inherit_them() -> None:
    program = ft.trace(scoped)(np.ones(3))
    assert [eqn.line.scope for eqn in program.eqns] == ["encoder", "encoder/attention", ""]
    with ft.debug.profile() as prof:
        ft.grad(scoped)(np.ones(3))
    assert any(e.name == "cos" and e.scope == "encoder" for e in prof.events)
    outer, inner = row(prof, "encoder", "scope"), row(prof, "encoder/attention", "scope")
    assert outer.total_time >= outer.self_time + inner.self_time * (1 - 1e-9)
    assert inner.calls == 1
    hessian = ft.trace(ft.hessian(scoped))(np.ones(3))
    assert {eqn.line.scope for eqn in hessian.eqns} >= {"encoder", "encoder/attention"}


def test_one_line_in_two_scopes_is_two_places() -> None:
    def block(x: Any) -> Any:
        return np.tanh(x)

    def f(x: Any) -> Any:
        for i in range(2):
            with ft.debug.scope(f"layer {i}"):
                x = block(x)
        return np.sum(x)

    with ft.debug.profile() as prof:
        value = ft.grad(f)(np.ones(2))
        ft.grad(f)(np.ones(2))
    assert {r.name: r.calls for r in prof.rows("scope") if "layer" in r.name}.keys() == {"layer 0", "layer 1"}
    np.testing.assert_allclose(value, (1 - np.tanh(1) ** 2) * (1 - np.tanh(np.tanh(1)) ** 2))
    # A function traced again is the same program, so that a second call derives nothing.
    assert sum(e.name == "transforming: jvp" for e in prof.events) == 1


def test_scope_as_decorator() -> None:
    @ft.debug.scope("power")
    def power(x: Any, n: int) -> Any:
        """The power."""
        return x if n == 1 else power(x, n - 1) * x

    program = ft.trace(lambda x: power(x, 3) + 1.0)(2.0)
    assert [eqn.line.scope for eqn in program.eqns] == ["power/power", "power", ""]
    assert power.__doc__ == "The power."


def test_scopes_end_with_exceptions() -> None:
    scope = ft.debug.scope("a")
    with pytest.raises(KeyError), scope, scope:
        raise KeyError
    assert ft.trace(np.sin)(1.0).eqns[0].line.scope == ""
    with pytest.raises(TypeError, match="takes a name"):
        ft.debug.scope(3)  # type: ignore[arg-type]


# Tables


def test_tables_sort_and_group() -> None:
    with ft.debug.profile() as prof:
        ft.grad(loops)(np.ones(4))
    for key in ("self_time", "total_time", "calls", "flops", "bytes", "time_per_call", "flops_per_second", "name"):
        lines = prof.table(sort_by=key).splitlines()
        assert lines[0].split()[:3] == ["primitive", "calls", "self"]
    first = prof.table(sort_by="calls", limit=1).splitlines()[2]
    assert first.split()[0] in ("mul", "neg", "sin", "lt")
    assert "more rows" in prof.table(limit=1)
    names = [r.split()[0] for r in prof.table("name", limit=None).splitlines()[2:-2]]
    assert names == sorted(names)
    assert prof.table("self_cpu_time_total") == prof.table("tottime") == prof.table() == str(prof) == repr(prof)
    assert "ft.fori_loop(0, 10, " in prof.table(group_by="line")
    assert "(no scope)" in prof.table(group_by="scope")
    assert "<table>" in prof._repr_html_()
    with pytest.raises(ValueError, match="did you mean 'self_time'") as caught:
        prof.table(sort_by="selftime")
    assert "test_profile.py" in str(caught.value)
    with pytest.raises(ValueError, match="group_by is one of 'primitive', 'line', 'scope'"):
        prof.table(group_by="lines")


def test_numbers_are_short() -> None:
    assert [seconds(t) for t in (0, 1.5e-7, 9.999e-4, 0.0123, 61.0)] == ["0 ns", "150 ns", "1.00 ms", "12.3 ms", "61 s"]
    assert [amount(x) for x in (0, 7, 999, 1234, 2.5e12)] == ["0", "7", "999", "1.23 k", "2.50 T"]
    assert amount(2048, "B") == "2.05 kB"


def test_an_empty_profile_is_no_error() -> None:
    with ft.debug.profile() as prof:
        pass
    assert prof.events == []
    assert prof.totals()[:4] == (0, 0, 0, 0)
    assert "0 operations" in str(prof)


# Files


def test_chrome_trace(tmp_path: Path) -> None:
    with ft.debug.profile() as prof:
        ft.grad(scoped)(np.ones(3))
        ft.grad(loops)(np.ones(3))
    prof.chrome_trace(tmp_path / "trace.json")
    document = json.loads((tmp_path / "trace.json").read_text())
    spans = [e for e in document["traceEvents"] if e["ph"] == "X"]
    assert len(spans) == len(prof.events)
    for span in spans:
        assert {"name", "cat", "ts", "dur", "pid", "tid", "args"} <= span.keys()
        assert span["dur"] >= 0
        assert span["ts"] >= 0
    assert any(
        s["name"] == "cos" and s["args"]["scope"] == "encoder" and "np.sin(x)" in s["args"]["line"] for s in spans
    )
    # Spans of one thread nest.
    open_ends: list[float] = []
    for span in spans:
        while open_ends and span["ts"] >= open_ends[-1] - 1e-3:
            open_ends.pop()
        assert not open_ends or span["ts"] + span["dur"] <= open_ends[-1] + 1e-3
        open_ends.append(span["ts"] + span["dur"])


def test_events_are_limited_and_tables_are_not(tmp_path: Path) -> None:
    with ft.debug.profile(max_events=5) as prof:
        ft.grad(loops)(np.ones(3))
    assert len(prof.events) == 5
    assert row(prof, "sin").calls >= 10
    prof.chrome_trace(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())["otherData"]["events left out"] > 10


def test_charts(tmp_path: Path) -> None:
    with ft.debug.profile() as prof:
        ft.grad(scoped)(np.ones(3))
        # A line with what mathematical text and fonts stumble over.
        ft.grad(lambda x: np.sum(x * len("$_{^ 図")))(np.ones(3))
    for kind in ("flame", "bars"):
        prof.chart(tmp_path / f"{kind}.png", kind, group_by="line")
        assert (tmp_path / f"{kind}.png").read_bytes().startswith(b"\x89PNG\r\n")
    prof.chart(tmp_path / "flame.svg")
    assert "</svg>" in (tmp_path / "flame.svg").read_text()


def test_charts_that_cannot_be_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ft.debug.profile() as empty:
        np.sin(1.0)
    with pytest.raises(ValueError, match="nothing was recorded"):
        empty.chart(tmp_path / "a.png")
    with ft.debug.profile() as prof:
        ft.grad(np.sin)(1.0)
    with pytest.raises(ValueError, match="'flame', 'bars'"):
        prof.chart(tmp_path / "a.png", kind="pie")
    with pytest.raises(ValueError, match=r"\.png, \.svg"):
        prof.chart(tmp_path / "a.txt")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'ftrans\[plot\]'"):
        prof.chart(tmp_path / "a.png")


# Compiled programs


def compiled_sample(x: Any, w: Any) -> Any:
    with ft.debug.scope("layer"):
        y = x @ w
        y = np.tanh(y)
    y = ft.fori_loop(0, 6, lambda i, c: np.sin(c) + 0.5, y)
    return np.sum(y)


def test_compiled_calls_are_events_with_the_costs_of_their_lines() -> None:
    x, w = matrices()
    g = ft.jit(compiled_sample)
    with ft.debug.profile() as prof:
        for _ in range(3):
            g(x, w)
    assert row(prof, "jit(compiled_sample)").calls == 3
    assert row(prof, "compiling: XLA").calls == 1
    # XLA counts the body of the loop once, or as often as it runs where it has unrolled it.
    least = 2 * M * N * K + M * N * (1 + 2 + 1)
    assert 3 * least <= row(prof, "jit(compiled_sample)").flops * 1.01
    assert "compiling: XLA" in {e.name for e in prof.events}
    with ft.debug.profile() as again:
        g(x, w)
    assert "compiling: XLA" not in {e.name for e in again.events}
    (report,) = prof.compiled()
    assert report.calls == 3
    assert report.time_per_call > 0
    assert report.estimated_flops == 2 * M * N * K + M * N * (1 + 2 * 6 + 1)
    by_line = {r.name.split(": ", 1)[-1]: r for r in report.rows()}
    assert by_line["y = x @ w"].flops == 2 * M * N * K
    assert by_line["y = np.tanh(y)"].flops == M * N
    (loop,) = (r for name, r in by_line.items() if "np.sin(c)" in name)
    assert loop.flops == 6 * 2 * M * N
    assert {"layer", "(no scope)"} <= {r.name for r in report.rows("scope")}
    assert "3 calls" in str(report)
    assert "<table>" in report._repr_html_()


def test_cost_of_a_gradient() -> None:
    x, w = matrices()
    report = ft.debug.cost(ft.grad(lambda w: np.sum(np.tanh(x @ ft.jit(lambda w: w)(w)) ** 2)))(w)
    (line,) = (r for r in report.rows() if "x @" in r.name)
    # The product forwards and that with the cotangent backwards, and at least 4 operations on each element.
    assert line.flops >= 2 * 2 * M * N * K + 4 * M * N
    assert report.estimated_flops == sum(r.flops for r in report.rows())
    # XLA counts about the same, and has the arrays of the products to read and write.
    assert report.flops == pytest.approx(report.estimated_flops, rel=0.2)
    assert report.nbytes >= x.nbytes + 2 * w.nbytes
    assert report.temporary_nbytes >= 0
    assert "of temporary memory" in str(report)
    assert report.table(sort_by="bytes", group_by="scope", limit=1).startswith("scope")
    with pytest.raises(TypeError, match="takes arrays"):
        ft.debug.cost(np.sin)("x")


def test_a_scope_is_no_decorator_of_what_runs_later() -> None:
    async def coroutine() -> None: ...

    def generator() -> Iterator[int]:
        yield 1

    for f in (coroutine, generator):
        with pytest.raises(TypeError, match=rf"{f.__name__} is a generator or coroutine.*inside of it"):
            ft.debug.scope("name")(f)


def test_operations_on_tensors_of_many_shapes_are_one_place() -> None:
    with ft.debug.profile() as prof:
        for size in range(1, 6):
            np.sin(ft.autograd.tensor(np.ones(size), requires_grad=True))
    (place,) = [place for place in prof.root.walk() if place.name == "Sin"]
    assert place.calls == 5
    assert place.flops == 1 + 2 + 3 + 4 + 5
