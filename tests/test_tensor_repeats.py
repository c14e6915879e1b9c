"""Ways back that repeat: steps whose graphs are equal to earlier ones give the same bits as any backward pass."""

from __future__ import annotations

import gc
import sys
import threading
import warnings
import weakref

import numpy as np
import pytest

from ftrans import autograd, debug, nn
from ftrans.autograd import repeats


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch):
    monkeypatch.setattr(repeats, "_roots", {})


def _hits(monkeypatch):
    """How many nodes each way that was gone had."""
    found: list[int] = []
    go = repeats.Way.go

    def counted(self, *args):
        found.append(len(self.stops))
        return go(self, *args)

    monkeypatch.setattr(repeats.Way, "go", counted)
    return found


def _leaves(rng):
    return [autograd.tensor(rng.standard_normal(shape), requires_grad=True) for shape in ((3, 4), (4,), (4, 4), ())]


def _random_step(seed):
    """A function of tensors, the same operations whenever it is called."""

    def step(tensors):
        rng = np.random.default_rng(seed)
        made = [*tensors]

        def pick(test=lambda x: True):
            fitting = [x for x in made if test(x)]
            return fitting[rng.integers(len(fitting))]

        for _ in range(25):
            kind = rng.integers(9)
            if kind == 0:
                made.append(pick(lambda x: x.shape[-1:] in ((), (4,))) * pick(lambda x: x.shape in ((), (4,))))
            elif kind == 1:
                made.append(pick().tanh() + pick(lambda x: x.ndim == 0))
            elif kind == 2:
                made.append(pick(lambda x: x.shape == (3, 4)) @ pick(lambda x: x.shape == (4, 4)))
            elif kind == 3:
                made.append(pick(lambda x: x.ndim)[..., 1:3].sum())
            elif kind == 4:
                made.extend(pick(lambda x: x.shape == (3, 4)).chunk(2, 1)[::-1])
            elif kind == 5:
                made.append(pick().relu() - 0.5)
            elif kind == 6:
                made.append(pick(lambda x: x.shape == (4, 4)).T)
            elif kind == 7:
                made.append(pick(lambda x: x.shape == (3, 4)).mean(0))
            else:
                made.append(pick().exp() / 3.0)
        return sum(x.sum() for x in made[-6:]) + made[2].mean()

    return step


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_give_the_bits_of_any_backward_pass(seed, monkeypatch):
    hits = _hits(monkeypatch)
    step = _random_step(seed)

    def gradients(round):
        leaves = _leaves(np.random.default_rng(round))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            step(leaves).backward()
        return [None if x.grad is None else x.grad.numpy().tobytes() for x in leaves]

    found = [gradients(round) for round in range(5)]
    assert len(hits) == 3
    repeats._roots.clear()
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["ftrans.autograd.backward"], "repeated", lambda root, output: None)
        assert found == [gradients(round) for round in range(5)]


def _warmed(step, *args):
    for _ in range(3):
        step(*args)


def test_graphs_that_differ_are_not_taken_for_each_other(monkeypatch):
    hits = _hits(monkeypatch)
    x, y = (autograd.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))

    def step(a, b, c):
        for z in (x, y):
            z.grad = None
        product = a * b
        (product * c).sum().backward()
        return [None if z.grad is None else z.grad.tolist() for z in (x, y)]

    _warmed(step, x, y, x)
    assert len(hits) == 1
    assert step(x, y, x) == [[2.0, 8.0], [1.0, 4.0]]
    assert len(hits) == 2
    assert step(x, x, x) == [[3.0, 12.0], None]
    assert len(hits) == 2
    assert step(y, x, y) == [[1.0, 4.0], [2.0, 8.0]]
    assert len(hits) == 3
    assert step(x, y, y) == [[1.0, 4.0], [2.0, 8.0]]
    assert len(hits) == 3
    assert step(x, y, x) == [[2.0, 8.0], [1.0, 4.0]]


def test_ways_alternate_and_graphs_that_never_repeat_are_left_alone(monkeypatch):
    hits = _hits(monkeypatch)
    x = autograd.tensor([1.0, 2.0], requires_grad=True)

    def step(count):
        z = x
        for _ in range(count):
            z = z * x
        z.sum().backward()

    for _ in range(8):
        step(1)
        step(2)
    assert hits.count(2) + hits.count(3) == len(hits) >= 8
    made = []
    monkeypatch.setattr(repeats, "way_from", lambda *args: made.append(args))
    for count in range(3, 60):
        step(count)
    assert len(made) <= 7


def test_what_is_known_of_graphs_is_bounded(monkeypatch):
    monkeypatch.setattr(repeats, "_MOST_STOPS_IN_ALL", 40)
    x = autograd.tensor([1.0, 2.0], requires_grad=True)
    for count in range(1, 40):
        z = x
        for _ in range(count):
            z = z * x
        z.sum().backward()
        kept = [way for root in repeats._roots.values() for way in root.ways]
        assert len(kept) <= 1
        assert sum(len(way.stops) for way in kept) <= 40


def test_hooks_retained_gradients_and_second_passes_hold(monkeypatch):
    x = autograd.tensor([1.0, 2.0], requires_grad=True)
    seen = []

    def step(hooked):
        x.grad = None
        y = x * 3.0
        if hooked:
            y.retain_grad()
            y.register_hook(lambda g: seen.append(g.tolist()) or 10 * g)
        z = (y * y).sum()
        z.backward(retain_graph=hooked)
        if not hooked:
            with pytest.raises(RuntimeError, match="a second time"):
                z.backward()
        else:
            assert y.grad.tolist() == [60.0, 120.0]
            z.backward()
        return x.grad.tolist()

    _warmed(step, False)
    assert step(False) == [18.0, 36.0]
    assert step(True) == [360.0, 720.0]
    assert seen == [[6.0, 12.0]] * 2
    handle = x.register_hook(lambda g: -g)
    assert step(False) == [-18.0, -36.0]
    handle.remove()
    assert step(False) == [18.0, 36.0]


def test_changes_in_place_are_errors():
    x = autograd.tensor([[2.0, 0.0], [0.0, 1.0]], requires_grad=True)

    def step(factor, change=False):
        x.grad = None
        y = x * factor
        z = (np.linalg.inv(y) * y).sum()
        if change:
            y += 1.0
        z.backward()

    _warmed(step, 2.0)
    with pytest.raises(RuntimeError, match="changed in place"):
        step(2.0, change=True)
    step(2.0)
    assert x.grad is not None


def test_warnings_name_the_line_of_the_operation():
    def step(value):
        x = autograd.tensor([value], requires_grad=True)
        np.log1p(x).sum().backward()
        return x.grad.tolist()

    _warmed(step, 4.0)
    with pytest.warns(RuntimeWarning, match=r"np\.log1p\(x\)"):
        assert step(-1.0) == [np.inf]


def test_calls_that_were_recorded_before_follow_modes_and_changes():
    rng = np.random.default_rng(0)
    x, w = (autograd.tensor(rng.standard_normal((3, 3)).astype(np.float32), requires_grad=True) for _ in range(2))
    exact = [x @ w for _ in range(3)][-1]
    with nn.autocast("bfloat16"):
        rounded = x @ w
    assert 0 < np.abs((exact - rounded).detach().numpy()).max() < 0.1
    with autograd.no_grad():
        assert not (x @ w).requires_grad
    y = x * w
    parts = [y[1:, 0] for _ in range(3)]
    with autograd.no_grad():
        z = y.clone()
        part = z[1:, 0]
    y *= 2.0
    assert parts[-1].tolist() == y[1:, 0].tolist()
    assert not part.requires_grad
    parts[-1].sum().backward()
    expected = np.zeros((3, 3), np.float32)
    expected[1:, 0] = 2.0 * w.detach().numpy()[1:, 0]
    assert np.array_equal(x.grad.numpy(), expected)
    assert [(x[1], x[True].shape, x[1.0 > 0].shape)[1:] for _ in range(3)] == [((1, 3, 3), (1, 3, 3))] * 3


def test_observers_are_told_of_each_operation():
    x = autograd.tensor([1.0, 2.0], requires_grad=True)

    def step():
        (x * x).sum().backward()

    _warmed(step)
    with debug.profile() as profile:
        step()
    assert "MulBackward" in str(profile)


def test_nothing_of_a_graph_is_kept_alive_and_gradients_are_arrays_of_their_own():
    x = autograd.tensor(np.ones(3), requires_grad=True)
    found = []

    def step():
        y = x + 1.0
        found.append(weakref.ref(y))
        y.sum().backward()
        return x.grad

    for _ in range(5):
        x.grad = None
        first = step()
    gc.collect()
    assert all(ref() is None for ref in found)
    first.numpy()[:] = 5.0
    x.grad = None
    assert step().tolist() == [1.0] * 3


def test_threads_go_ways_of_their_own():
    step = _random_step(3)
    expected = []

    def gradients(round, out):
        leaves = _leaves(np.random.default_rng(round))
        step(leaves).backward()
        out.append([x.grad.numpy().tobytes() for x in leaves if x.grad is not None])

    for round in range(4):
        gradients(round, expected)
    results = [[] for _ in range(4)]
    threads = [
        threading.Thread(target=lambda out=out: [gradients(round, out) for round in range(4)]) for out in results
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(out == expected for out in results)
