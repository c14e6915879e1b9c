"""Tests of `ft.patch` on random modules, at special values, and while modules change or run."""

import cmath
import functools
import importlib
import math
import os
import sys
import threading

import numpy as np
import pytest
import scipy.sparse.linalg
import tables
from others_modules import OthersModule

import ftrans as ft


def by_differences(f, at, h=1e-3):
    """The gradient of a function of two numbers, extrapolated twice."""
    found = []
    for i in range(2):

        def along(t, i=i):
            return f(*[x + t * (i == j) for j, x in enumerate(at)])

        d = [(along(h / 2**k) - along(-h / 2**k)) / (2 * h / 2**k) for k in range(3)]
        e = [(4 * d[k + 1] - d[k]) / 3 for k in range(2)]
        found.append((16 * e[1] - e[0]) / 15)
    return np.array(found)


def is_smooth(written):
    """Whether no branch of its function changes close by."""
    slopes = [by_differences(written.f, written.at, h) for h in (1e-3, 5e-4)]
    return np.allclose(*slopes, rtol=1e-6, atol=1e-7)


def assert_right(seed, written, value, slope):
    """Assert that the function of a patched module has its value and derivatives, some in further modes."""
    f, at = written.f, written.at
    gradient = ft.grad(f, (0, 1))
    assert (f(*at), type(f(*at))) == (value, type(value)), written.source
    np.testing.assert_allclose(gradient(*at), slope, rtol=1e-6, atol=1e-7, err_msg=written.source)
    if seed % 10 == 6:
        lanes = ft.vmap(gradient)(*[np.full(2, x) for x in at])
        np.testing.assert_allclose(lanes, np.stack([slope] * 2, 1), rtol=1e-6, atol=1e-7)
    if seed % 20 == 0:
        np.testing.assert_allclose(ft.jit(gradient)(*at), slope, rtol=1e-6, atol=1e-7)
    if seed % 10 == 1:
        steps = [[gradient(*(np.array(at) + s * 1e-5 * e)) for s in (1, -1)] for e in np.eye(2)]
        curvature = [(np.array(a) - np.array(b)) / 2e-5 for a, b in steps]
        np.testing.assert_allclose(ft.hessian(f, (0, 1))(*at), np.transpose(curvature), 1e-4, 1e-6)


@pytest.mark.parametrize("first", range(0, 1000 if tables.whole else 40, 40))
def test_random_modules(first, monkeypatch):
    written = {seed: OthersModule(seed) for seed in range(first, first + 40)}
    written = {seed: w for seed, w in written.items() if is_smooth(w)}
    assert len(written) > 32
    plain = {seed: (w.f(*w.at), by_differences(w.f, w.at)) for seed, w in written.items()}
    for w in written.values():
        monkeypatch.setitem(sys.modules, w.module.__name__, w.module)
    # Each change of what is patched looks through the whole process.
    with ft.patch(*[w.module for w in written.values()]):
        for seed, w in written.items():
            assert_right(seed, w, *plain[seed])


@ft.patch
def root_or(x):
    try:
        return math.sqrt(x) * math.tanh(x)
    except ValueError:
        return -3.0 * x


def test_batches_raise_the_errors_of_their_elements():
    xs = np.array([0.5, -0.5, 2.0])
    np.testing.assert_allclose(ft.vmap(root_or)(xs), [root_or(x) for x in xs], rtol=1e-15)
    np.testing.assert_allclose(ft.vmap(ft.grad(root_or))(xs), [ft.grad(root_or)(x) for x in xs], rtol=1e-15)


SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, math.inf, -math.inf, math.nan, 720.0, -750.0, 1e308]
CALLS = [
    *[(f, (x,)) for f in (math.sinh, math.cosh, math.exp, math.log, math.sqrt, math.hypot, math.ulp) for x in SPECIAL],
    *[(f, (x, y)) for f in (math.remainder, math.log, math.hypot) for x in SPECIAL for y in SPECIAL],
    (math.remainder, (5.0, 2.0)), (math.remainder, (-7.0, 2.0)), (math.remainder, (1e300, 0.1)),
    (math.hypot, (1e200, -1e200, 1e200)), (math.hypot, (1e-200, 2e-200, 0.0)), (cmath.rect, (0.0, -1.0)),
    *[(complex, (x, y)) for x in (1.0, -0.0, math.inf) for y in (-0.0, 2.0, -math.inf)],
    *[(cmath.log, (z,)) for z in (1j, -1 - 0j, complex(-1.0, -0.0), 0j)], (cmath.log, (2.0 + 1j, 3.0 + 0j)),
]  # fmt: skip


@ft.patch
def called(f, args):
    return f(*args)


def outcome(f, args):
    try:
        return np.asarray(f(*args))
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        return type(error), str(error).split("\n")[0]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values():
    for f, args in CALLS:
        expected = outcome(f, args)
        found = outcome(lambda *a, f=f: ft.jvp(lambda *b: called(f, b), a, a)[0], args)
        if isinstance(expected, tuple):
            assert found == expected, (f, args)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-15, err_msg=f"{f} of {args}")
            for part in (np.real, np.imag):
                assert np.signbit(part(found)) == np.signbit(part(expected)) or np.isnan(part(expected)), (f, args)
    np.testing.assert_allclose(ft.grad(lambda x: called(math.remainder, (x, 0.7)))(0.0), 1.0)
    np.testing.assert_allclose(ft.grad(lambda y: called(math.remainder, (5.0, y)))(0.7), -7.0)


@ft.patch
def handed_over(x):
    import operator

    import scipy.integrate
    import scipy.optimize

    made = functools.partial(np.asarray, dtype=float)([x, 1.0])
    made = made + operator.methodcaller("astype", float)(np.array([1, x]))
    total = np.vectorize(math.sin)(x) + np.frompyfunc(math.cos, 1, 1)(x) + power(x)
    total = total + scipy.optimize.brentq(functools.partial(operator.sub, x), 0.0, 1.0)
    total = total + scipy.optimize.fixed_point(math.cos, x) + halves.solve(np.array([x, 1.0]))[0]
    return float(total) + made.sum() + scipy.integrate.quad(math.exp, 0.0, x)[0]


# Its class does not say that it is of SciPy.
halves = scipy.sparse.linalg.splu(2 * scipy.sparse.eye_array(2, format="csc"))
power = functools.partial(math.pow, 2.0)


def test_functions_that_are_handed_over():
    slope = np.cos(0.5) - np.sin(0.5) + 2**0.5 * np.log(2) + 3.5 + np.exp(0.5)
    np.testing.assert_allclose(ft.grad(handed_over)(0.5), slope, rtol=1e-14)


def test_shapes_are_those_of_numpy():
    def shapes(x):
        for make in (ft.numpy.zeros, ft.numpy.ones, ft.numpy.empty):
            for wrong in (-1, (2, -3), 2.5, "a"):
                with pytest.raises((TypeError, ValueError)) as found:
                    make(wrong)
                with pytest.raises((TypeError, ValueError)) as expected:
                    np.zeros(wrong)
                assert str(found.value) == str(expected.value)
        return x * ft.numpy.zeros((2, 0)).size + ft.numpy.ones(np.int64(3)).sum() * x

    assert ft.grad(shapes)(1.0) == 3.0


FIRST = """
import math

def f(x):
    return math.sin(x)

def steps(x):
    for i in range(3):
        yield math.sin(i * x)
"""


@pytest.fixture
def changing(tmp_path, monkeypatch):
    """A module whose source the test may write anew."""
    (tmp_path / "changing_module.py").write_text(FIRST)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("changing_module")
    del sys.modules["changing_module"]


def rewrite(module, text):
    """Write a source that is known to be newer."""
    with open(module.__file__, "w") as file:
        file.write(text)
    os.utime(module.__file__, (2e9, 2e9))
    importlib.invalidate_caches()


def test_a_module_that_is_reloaded(changing):
    held = changing.f
    with ft.patch(changing):
        assert ft.grad(changing.f)(0.0) == 1.0
        rewrite(changing, FIRST.replace("math.sin(x)", "math.sinh(2 * x)"))
        importlib.reload(changing)
        assert ft.grad(changing.f)(0.0) == 2.0
        assert ft.grad(held)(0.0) == 1.0
    assert changing.f(0.5) == math.sinh(1.0)
    assert held(0.5) == math.sin(0.5)
    assert not [n for n in vars(changing) if "ftrans" in n]


def test_a_source_that_is_not_what_was_imported(changing):
    rewrite(changing, FIRST.replace("math.sin(x)", "math.cos(x)"))
    with ft.patch(changing) as handle:
        # The plain call must not compute what the file says now.
        assert changing.f(0.5) == math.sin(0.5)
        assert "changed" in handle.skipped["changing_module"]
        assert sum(changing.steps(0.0)) == 0.0


def test_code_that_runs_when_its_patch_is_undone(changing):
    handle = ft.patch(changing)
    running, entered, leave = changing.steps(0.5), threading.Event(), threading.Event()
    next(running)
    found = []

    def work():
        for i, value in enumerate(changing.steps(0.5)):
            found.append(value)
            if i == 0:
                entered.set()
                leave.wait(20)

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait(20)
    handle.undo()
    leave.set()
    thread.join()
    assert [*running] == found[1:] == [math.sin(0.5), math.sin(1.0)]
    with pytest.raises(TypeError, match="math"):
        ft.grad(changing.f)(0.5)
