"""Progress bars of loops: what they show, that they close, and that results are what they are without."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tqdm

import ftrans as ft
from ftrans.api.progress import open_bars
from ftrans.autograd import tensor

XS = np.linspace(0.1, 0.3, 300)
bars: list[FakeBar] = []


class FakeBar:
    """Stands in for the class tqdm, and remembers what it was told."""

    def __init__(self, total: int | None, desc: str | None, leave: bool, miniters: int) -> None:
        self.total, self.desc, self.leave = total, desc, leave
        self.n = 0
        self.moves = 0
        self.closed = False
        bars.append(self)

    def update(self, steps: int) -> None:
        assert steps >= 0
        assert not self.closed
        self.n += steps
        self.moves += 1

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> Any:
    bars.clear()
    monkeypatch.setattr(tqdm, "tqdm", FakeBar)
    yield
    assert all(bar.closed for bar in bars)
    assert not open_bars


def loop(progress: Any, reverse: bool = False, checkpoint: Any = None) -> Callable[..., Any]:
    def step(y: Any, x: Any) -> Any:
        return np.sin(y) + x, y * x

    def f(y: Any) -> Any:
        y, zs = ft.scan(step, y, XS, reverse=reverse, checkpoint=checkpoint, progress=progress)
        return y**2 + np.sum(zs)

    return f


def growth(progress: Any, **more: Any) -> Callable[..., Any]:
    return lambda y: ft.while_loop(lambda y: y < 100.0, lambda y: 1.01 * y, y, progress=progress, **more)


def counted(progress: Any) -> Callable[..., Any]:
    return lambda y: ft.fori_loop(3, 200, lambda i, y: np.cos(y) + 0.001 * i, y, progress=progress)


def same(f: Callable[..., Any], g: Callable[..., Any], *args: Any) -> None:
    np.testing.assert_allclose(f(*args), g(*args), rtol=1e-12)


WAYS = {
    "plain": lambda f: f,
    "jit": ft.jit,
    "grad": ft.grad,
    "jit(grad)": lambda f: ft.jit(ft.grad(f)),
    "jacfwd": ft.jacfwd,
    "hessian": ft.hessian,
    "third": lambda f: ft.grad(ft.grad(ft.grad(f))),
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@each_way
def test_scan_shows_one_full_bar(way: Callable[..., Any]) -> None:
    same(way(loop("steps")), way(loop(False)), 0.5)
    (bar,) = bars
    assert (bar.desc, bar.total, bar.n, bar.leave) == ("steps", 300, 300, True)
    assert 50 < bar.moves < 100


@each_way
def test_fori_loop(way: Callable[..., Any]) -> None:
    same(way(counted(True)), way(counted(False)), 0.5)
    (bar,) = bars
    assert (bar.desc, bar.total, bar.n) == (None, 197, 197)


@each_way
def test_while_loop_counts(way: Callable[..., Any]) -> None:
    same(way(lambda y: growth("count")(y) ** 4), way(lambda y: growth(False)(y) ** 4), 1.0)
    steps = int(np.ceil(np.log(100.0) / np.log(1.01)))
    assert bars
    assert all(bar.total is None and bar.desc == "count" for bar in bars)
    assert bars[0].n == steps


@pytest.mark.parametrize("more", [{"max_steps": 1000}, {"checkpoints": 5}, {"max_steps": 100}])
@pytest.mark.parametrize("way", [ft.grad, lambda f: ft.jit(ft.value_and_grad(f))], ids=["grad", "jit"])
def test_reverse_mode_of_while_loops(way: Callable[..., Any], more: dict[str, int]) -> None:
    same(way(growth(True, **more)), way(growth(False, **more)), 1.0)
    assert bars


@pytest.mark.parametrize("checkpoint", [True, 7, "sqrt", "dots"])
@pytest.mark.parametrize("reverse", [False, True])
def test_with_checkpoints_and_in_reverse(checkpoint: Any, reverse: bool) -> None:
    same(ft.grad(loop(True, reverse, checkpoint)), ft.grad(loop(False, reverse, checkpoint)), 0.5)
    assert [bar.n for bar in bars] == [300]


@pytest.mark.parametrize("f", [loop, growth, counted])
@pytest.mark.parametrize("compiled", [False, True])
def test_one_bar_for_a_batch(f: Any, compiled: bool) -> None:
    way = (lambda f: ft.jit(ft.vmap(f))) if compiled else ft.vmap
    same(way(f(True)), way(f(False)), np.array([0.5, 1.0, 2.0]))
    assert len(bars) == 1
    assert bars[0].total is None or bars[0].n == bars[0].total


def test_a_batch_shows_the_longest_lane() -> None:
    ft.vmap(growth(True))(np.array([1.0, 50.0]))
    assert bars[0].n == int(np.ceil(np.log(100.0) / np.log(1.01)))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_batch_without_lanes(compiled: bool) -> None:
    f = ft.vmap(loop(True))
    assert (ft.jit(f) if compiled else f)(np.ones(0)).shape == (0,)


@pytest.mark.parametrize("compiled", [False, True])
def test_nested_and_consecutive_bars(compiled: bool) -> None:
    def f(y: Any) -> Any:
        y = ft.fori_loop(0, 3, lambda i, y: loop("inner")(y) * 0.1, y, progress="outer")
        return loop("last")(y)

    (ft.jit(f) if compiled else f)(0.5)
    assert [(b.desc, b.n, b.leave) for b in bars] == [
        ("outer", 3, True), ("inner", 300, False), ("inner", 300, False), ("inner", 300, False), ("last", 300, True),
    ]  # fmt: skip


def test_map_and_no_steps() -> None:
    np.testing.assert_array_equal(ft.map(np.sqrt, XS, progress="roots"), np.sqrt(XS))
    assert [(b.desc, b.n) for b in bars] == [("roots", 300)]
    assert ft.scan(lambda y, x: (y + x, y), 1.0, np.ones(0), progress=True)[0] == 1.0
    assert ft.while_loop(lambda y: y < 0.0, lambda y: y + 1.0, 1.0, progress=True) == 1.0


@pytest.mark.parametrize(
    "way", [lambda f: f, ft.grad, lambda f: lambda x: f(tensor(x))], ids=["plain", "grad", "tensor"]
)
def test_bars_close_after_errors(way: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        return ft.scan(lambda y, i: (np.linalg.inv(y * (i - 3.0)), None), x, np.arange(10), progress=True)[0].sum()

    with pytest.raises(np.linalg.LinAlgError):
        way(f)(np.eye(2))
    assert [(b.n, b.closed) for b in bars] == [(3, True)]


def test_bars_go_to_stderr(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.undo()
    loop("integrating")(0.5)
    out, err = capsys.readouterr()
    assert not out
    assert "integrating: 100%" in err
    assert "300/300" in err


def test_the_error_without_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match=r"pip install ftrans\[progress\](.|\n)*loop\(True\)"):
        ft.scan(lambda y, x: (y, x), 0.0, XS, progress=bool(loop(True)))
    assert loop(False)(0.5)


def test_the_error_for_other_values() -> None:
    with pytest.raises(TypeError, match="progress of scan must be a bool or a description, not int"):
        loop(5)(0.5)


def test_retracing_finds_the_same_program() -> None:
    f = ft.grad(loop(True))
    f(0.5)
    traces = [ft.trace(loop("again"))(0.5) for _ in range(2)]
    params = [eqn.params for program in traces for eqn in program.eqns if eqn.primitive.name == "scan"]
    assert len(params) == 2
    assert bars.pop(0).n == 300
