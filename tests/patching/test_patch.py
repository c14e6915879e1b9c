"""Tests of `ft.patch`: code that cannot be edited takes traced values, and is what it was after `undo`."""

import functools
import gc
import importlib
import linecache
import math
import os
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest
from checks import assert_docstrings_run
from tables import naming

import ftrans as ft

PACKAGE = {
    "__init__.py": "",
    "formulas.py": '''
import cmath, functools, math, operator
import numpy as np
import numpy.linalg as la
from math import sin as sine, log, pi
from numpy import asarray as aa, zeros
from numpy import float64

alias = math.exp
TABLE = {"sin": math.sin, "exp": np.exp}
knots = np.array([0.0, 1.0, 4.0, 9.0])


def by_import(x):
    return sine(x) * alias(x)

def by_default(x, f=math.cos):
    return f(x)

def by_table(x):
    return TABLE["sin"](x) + TABLE["exp"](x)

def by_argument(x):
    return sum(map(math.sqrt, [x, 2 * x])) + functools.reduce(operator.add, map(float, [x, 1]))

class Shape:
    make = staticmethod(np.zeros)

    def __init__(self, x):
        self.x = float(x)

    @property
    def area(self):
        return math.pi * math.pow(self.x, 2)

    def filled(self):
        out = self.make(3)
        out[0] = self.x
        out[1:] = [math.tanh(self.x), 2.0]
        return float(np.sum(out * np.arange(3.0)) + out[0])

def by_class(x):
    s = Shape(x)
    return s.area + s.filled()

def allocated(x):
    table = zeros((2, 3))
    row, column = table[0], table[:, 1]
    row[2] = x
    column[...] = x * x
    flat = table.reshape(-1)
    assert isinstance(table, np.ndarray)
    return float64(flat[1] + 3.0 * table[0, 2] + la.norm(table))

def forced(x):
    a = aa([x, 1.0, 2 * x], dtype=float)
    b = np.array([[x, 0], [1, x]], dtype=np.float64)
    c = np.array([1, 2.0, x], dtype=object).astype(float)
    return float((b @ a[:2]).sum() * np.asarray(float(x), float) + c.sum())

def looked_up(x):
    i = np.searchsorted(knots, x) - 1
    t = (x - knots[i]) / (knots[i + 1] - knots[i])
    return (1 - t) * knots[i] ** 2 + t * knots[i + 1] ** 2 + knots[knots > 0].sum()

def handled(x):
    try:
        return math.log(x)
    except ValueError:
        return -3.0 * x

def overflown(x):
    try:
        return math.exp(x)
    except OverflowError:
        return 5.0 * x

@functools.lru_cache(maxsize=None)
def cached(x, n=3):
    return math.sin(x) * n

@functools.lru_cache(maxsize=None)
def table_of(n):
    out = np.zeros(n)
    for i in range(n):
        out[i] = i * math.sqrt(i)
    return out

def by_cache(x):
    return cached(x) + x * table_of(4)[2]

def vectorized(x):
    f = np.vectorize(lambda t: math.sin(t) if t > 0.5 else t * t)
    g = np.frompyfunc(lambda t: math.cosh(t), 1, 1)
    a = np.array([x, 0.2, 2 * x])
    return float(f(a).sum() + g(a).astype(float).sum())

def iterated(x):
    total = 0.0
    for (i,), v in np.ndenumerate(np.array([x, x * x])):
        total += (i + 1) * v
    for v in np.nditer(np.array([x, 1.0])):
        total += v * v
    return total + np.fromiter((math.sin(t) for t in (x, 2.0)), float).sum() + np.piecewise(
        np.array([x, -x]), [np.array([True, False])], [lambda t: t**3, lambda t: t]).sum()

def complex_numbers(x):
    z = complex(x, 2.0)
    return abs(cmath.exp(z)) + cmath.phase(z) + cmath.polar(cmath.sqrt(z))[0] + cmath.rect(x, 0.5).imag

def many(x):
    return (math.hypot(x, 2.0, 3.0) + math.dist([x, 1.0], [0.0, 2.0]) + math.fsum([x, 1e-9, x * x]) + math.gamma(x)
            + math.lgamma(x) + math.erf(x) + math.fmod(7.5, x) + math.copysign(x, -1.0) + math.ldexp(x, 3)
            + math.modf(x)[0] + math.frexp(x)[0] + math.prod([x, 2.0, x]) + math.log(x, 3.0) + math.atan2(x, 2.0)
            + math.comb(5, 2) * x + (1.0 if math.isclose(x, x + 1e-15) else 2.0) * x + math.degrees(x)
            + math.remainder(x, 0.7) + math.expm1(x) + math.log1p(x) + math.log2(x) + math.cbrt(x) + math.asinh(x))

def asked(x):
    kinds = [type(x) is float, type(x) in (float, int), isinstance(x, (int, float)), np.isscalar(x)]
    return x * (1.0 + sum(2.0**i for i, k in enumerate(kinds) if k))

def outside(x):
    return ready(x)

def ready(x):
    return np.r_[x, 1.0, 2 * x].sum()
''',
    "later.py": "import math\n\ndef half(x):\n    return math.sin(x) / 2\n",
}  # fmt: skip

FUNCTIONS = [
    "allocated", "asked", "by_argument", "by_cache", "by_class", "by_default", "by_import", "by_table",
    "complex_numbers", "forced", "handled", "iterated", "looked_up", "many", "outside", "overflown", "vectorized",
]  # fmt: skip


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of somebody else, which is imported for the first time."""
    folder = tmp_path / "otherpeople"
    folder.mkdir()
    for name, text in PACKAGE.items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield "otherpeople"
    for name in [n for n in sys.modules if n.partition(".")[0] == "otherpeople"]:
        del sys.modules[name]


def by_differences(f, x, h=1e-3):
    """The derivative of a function of one number, extrapolated twice."""
    d = [(f(x + h / 2**k) - f(x - h / 2**k)) / (2 * h / 2**k) for k in range(3)]
    e = [(4 * d[k + 1] - d[k]) / 3 for k in range(2)]
    return (16 * e[1] - e[0]) / 15


def test_derivatives_of_patched_code(package):
    module = importlib.import_module(f"{package}.formulas")
    functions = {name: getattr(module, name) for name in FUNCTIONS}
    x, h = 1.3, 1e-3
    plain = {name: [f(x), f(x + h), f(x - h), by_differences(f, x)] for name, f in functions.items()}
    # Each change of what is patched looks through the whole process.
    with ft.patch(package):
        for name, f in functions.items():
            value, after, before, slope = plain[name]
            with naming(name):
                assert f(x) == value
                assert type(f(x)) is type(value)
                np.testing.assert_allclose(ft.grad(f)(x), slope, rtol=1e-8)
                np.testing.assert_allclose(ft.value_and_grad(f)(x)[0], value, rtol=1e-14)
                curvature = (after - 2 * value + before) / h**2
                np.testing.assert_allclose(ft.hessian(f)(x), curvature, rtol=1e-4, atol=1e-4)
        compiled = ft.jit(lambda x: [ft.grad(f)(x) for f in functions.values()])(x)
        np.testing.assert_allclose(compiled, [slope for *_, slope in plain.values()], rtol=1e-8)
    assert [f(x) for f in functions.values()] == [value for value, *_ in plain.values()]


def snapshot(module):
    """All that one can see of a module: its names, and of functions and classes what they hold."""
    found = dict(vars(module))
    for name, x in vars(module).items():
        if isinstance(x, types.FunctionType):
            found[name, "code"], found[name, "defaults"] = x.__code__, x.__defaults__
        if isinstance(x, type):
            found |= {(name, k): v for k, v in vars(x).items()}
            found |= {(name, k, "code"): v.__code__ for k, v in vars(x).items() if isinstance(v, types.FunctionType)}
    return found


def test_undo_leaves_every_attribute_as_it_was(package):
    module = importlib.import_module(f"{package}.formulas")
    held = [module.Shape(1.0), module.by_default]
    before, finders = snapshot(module), list(sys.meta_path)
    outer = ft.patch(package)
    with ft.patch(f"{package}.formulas") as inner:
        assert module.by_default.__code__ is not before["by_default", "code"]
        assert package in ft.patched()
        assert f"{package}.formulas" in ft.patched()
    # Twice patched is once patched, until the last one is undone.
    assert ft.grad(module.by_import)(1.0) == pytest.approx(np.exp(1.0) * (np.sin(1.0) + np.cos(1.0)))
    outer.undo()
    outer.undo()
    inner.undo()
    after = snapshot(module)
    assert after.keys() == before.keys()
    assert [k for k in before if after[k] is not before[k]] == []
    assert sys.meta_path == finders
    assert ft.patched() == []
    assert held[0].area == pytest.approx(np.pi)
    with pytest.raises(TypeError, match="math"):
        ft.grad(module.by_import)(1.0)


def test_modules_that_are_imported_later_are_patched(package):
    with ft.patch(package):
        module = importlib.import_module(f"{package}.later")
        assert ft.grad(module.half)(0.0) == 0.5
        assert "exec_module" not in vars(module.__loader__)
    code = module.half.__code__
    with pytest.raises(TypeError):
        ft.grad(module.half)(0.0)
    with ft.patch(module):
        assert ft.grad(module.half)(0.0) == 0.5
    assert module.half.__code__ is code


def test_functions_that_the_collector_has_frozen(package):
    module = importlib.import_module(f"{package}.later")
    gc.freeze()
    frozen = gc.get_freeze_count()
    with ft.patch(package):
        assert ft.grad(module.half)(0.0) == 0.5
    assert gc.get_freeze_count() >= frozen
    with pytest.raises(TypeError):
        ft.grad(module.half)(0.0)


def test_all_imported_code(package):
    module = importlib.import_module(f"{package}.formulas")
    with ft.patch():
        names = ft.patched()
        assert f"{package}.formulas" in names
        assert not {n.partition(".")[0] for n in names} & {"ftrans", "numpy", "scipy", "jax", "jaxlib", "pytest"}
        assert ft.grad(module.many)(1.3) != 0.0
        later = importlib.import_module(f"{package}.later")
        assert ft.grad(later.half)(0.0) == 0.5


def test_closures_that_exist_already(package, monkeypatch):
    module = importlib.import_module(f"{package}.later")
    source = "import math\n\ndef make(k):\n    return lambda x: math.sin(k * x), lambda x: math.cos(k * x)\n"
    path = f"{module.__file__.removesuffix('later.py')}closures.py"
    with open(path, "w") as file:
        file.write(source)
    importlib.invalidate_caches()
    closures = importlib.import_module(f"{package}.closures")
    sine, cosine = closures.make(2.0)
    codes = sine.__code__, cosine.__code__
    with ft.patch(package):
        assert ft.grad(sine)(0.0) == 2.0
        assert ft.grad(cosine)(1.0) == pytest.approx(-2.0 * np.sin(2.0))
        made = closures.make(3.0)
        assert ft.grad(made[0])(0.0) == 3.0
    assert (sine.__code__, cosine.__code__) == codes
    assert made[0].__code__ is codes[0]


def test_modules_that_are_loaded_when_they_are_asked(tmp_path, monkeypatch):
    source = """
import importlib.util, math, sys
spec = importlib.util.find_spec("fails_when_loaded")
spec.loader = importlib.util.LazyLoader(spec.loader)
lazy = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lazy)

def resample(x):
    return lazy.resample(x)

def sine(x):
    return math.sin(x)
"""
    (tmp_path / "fails_when_loaded.py").write_text("raise ImportError('it is not installed')")
    (tmp_path / "loads_later.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("loads_later")
    with ft.patch("loads_later"):
        assert ft.grad(module.sine)(0.0) == 1.0
    with pytest.raises(ImportError, match="it is not installed"):
        module.resample(1.0)


def test_caches_hold_no_traced_values(package):
    module = importlib.import_module(f"{package}.formulas")
    with ft.patch(package):
        ft.grad(module.by_cache)(1.3)
        assert type(module.table_of(4)) is np.ndarray
        assert module.cached.cache_info().currsize == 0
    assert module.table_of.cache_info().currsize == 1
    assert module.table_of(4)[2] == 2 * np.sqrt(2.0)


def test_only_what_is_traced_is_changed(package):
    module = importlib.import_module(f"{package}.formulas")
    seen = []

    def traced(x):
        thread = threading.Thread(target=lambda: seen.append(module.aa([1.0, 2.0], dtype=float)))
        thread.start()
        thread.join()
        return module.by_import(x)

    with ft.patch(package):
        ft.grad(traced)(1.0)
        assert type(module.Shape.make(3)) is np.ndarray
    assert type(seen[0]) is np.ndarray


def test_patching_while_another_thread_traces(package):
    module = importlib.import_module(f"{package}.later")
    entered, leave = threading.Event(), threading.Event()

    def slow(x):
        entered.set()
        leave.wait(20)
        return x * 2.0

    thread = threading.Thread(target=lambda: ft.grad(slow)(1.0))
    thread.start()
    entered.wait(20)
    try:
        with pytest.raises(RuntimeError, match="another thread traces"):
            ft.patch(package)
    finally:
        leave.set()
        thread.join()
    assert ft.patched() == []
    with ft.patch(package):
        assert ft.grad(module.half)(0.0) == 0.5


@ft.patch
def decorated(x, power=2):
    import math

    out = np.zeros(2)
    out[0] = math.pow(x, power)
    return float(out[0])


@ft.patch
class Decorated:
    def value(self, x):
        import math

        return math.sin(x)

    @staticmethod
    def double(x):
        return 2.0 * float(x)


def test_decorated_functions():
    assert ft.grad(decorated)(3.0) == 6.0
    assert decorated(3.0) == 9.0
    assert ft.grad(Decorated().value)(0.0) == 1.0
    assert ft.grad(Decorated.double)(1.0) == 2.0
    assert ft.patch(decorated) is decorated


def test_functions_that_others_wrap():
    @ft.patch
    @ft.jit
    def compiled(x):
        return math.pow(x, 3)

    @ft.patch
    @functools.cache
    def cached(x):
        return math.pow(x, 3)

    class Powers:
        @ft.patch
        @staticmethod
        def static(x):
            return math.pow(x, 3)

        @ft.patch
        @classmethod
        def of_class(cls, x):
            return math.pow(x, 3)

        @ft.patch
        @property
        def attribute(self):
            return math.pow(self.x, 3)

        def method(self, x):
            return math.pow(x, 3)

    def attribute_of(x):
        powers = Powers()
        powers.x = x
        return powers.attribute

    method = ft.patch(Powers().method)
    partial = ft.patch(functools.partial(lambda n, x: math.pow(x, n), 3))
    called = ft.patch(lambda x: cached(x))
    for f in (compiled, called, Powers.static, Powers.of_class, attribute_of, method, partial):
        assert ft.grad(f)(2.0) == 12.0
    assert "__ftrans_form__" not in sys.modules["ftrans.api.jit"].__dict__


SCRIPT = """
import math
import numpy as np
import ftrans as ft

ft.patch(__name__)

def f(x):
    return math.sin(x) * np.asarray(x, float)

print(ft.grad(f)(0.5))
for n in range(2):
    g = lambda x: math.cos(n + x)
    h = ft.jit(ft.grad(lambda x: f(x) + g(x)))
    print(h(0.5))
handlers = []
handlers.append(lambda x: math.sin(x))
print(ft.grad(lambda x: handlers[0](x))(0.5))
handlers.append(lambda x: math.cosh(x))
print(ft.grad(lambda x: handlers[1](x))(0.5))
"""


@pytest.mark.parametrize("how", ["file", "-c", "-"])
def test_own_script(tmp_path, how):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = {"file": [str(tmp_path / "script.py")], "-c": ["-c", SCRIPT], "-": ["-"]}[how]
    path = {**os.environ, "PYTHONPATH": str(Path(ft.__file__).parents[1])}
    command = [sys.executable, *command]
    done = subprocess.run(command, input=SCRIPT, env=path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    x, y = 0.5, np.sin(0.5) + 0.5 * np.cos(0.5)
    np.testing.assert_allclose(
        [float(s) for s in done.stdout.split()], [y, y - np.sin(x), y - np.sin(1 + x), np.cos(x), np.sinh(x)]
    )


def test_code_without_source():
    source = """
import math, numpy as np
from math import sin as sine
def f(x, kind=float):
    out = np.zeros(2)
    out[0] = sine(x)
    def inner(t):
        return math.exp(t) * float(t) if isinstance(t, float) and kind is float else 0.0
    return np.linalg.norm(out) * inner(x) + np.asarray(x, dtype=np.float64)
"""
    namespace = {}
    exec(compile(source, "<typed>", "exec"), namespace)
    f = ft.patch(namespace["f"])
    assert f(0.5) == np.sin(0.5) * np.exp(0.5) * 0.5 + 0.5
    slope = np.exp(0.5) * (np.cos(0.5) * 0.5 + np.sin(0.5) * 1.5) + 1.0
    np.testing.assert_allclose([ft.grad(f)(0.5), ft.jit(ft.grad(f))(0.5)], slope, rtol=1e-14)


def test_mistakes(package):
    with pytest.raises(ModuleNotFoundError, match="no package 'nowhere_to_be_found'"):
        ft.patch("nowhere_to_be_found")
    with pytest.raises(TypeError, match="compiled"):
        ft.patch("math")
    for wrong, instead in [
        ((3,), "not 3\n"),
        ((["statistics", "json"],), r"ft.patch\(\*names\)"),
        ((test_mistakes, test_own_script), "one function at a time"),
        ((math.sin,), "patch the code that calls it"),
        ((Decorated(),), "patch its package"),
    ]:
        with pytest.raises(TypeError, match=f"(?s)names of packages.*{instead}"):
            ft.patch(*wrong)
    with pytest.raises(TypeError, match="without parentheses"):
        ft.patch("statistics")(test_mistakes)
    assert ft.patched() == []
    handle = ft.patch("statistics")
    handle.undo()
    with pytest.raises(RuntimeError, match=r"call ft\.patch again"), handle:
        pass
    namespace = {"__file__": "somewhere.py"}
    exec("def f(x):\n    return x", namespace)
    with pytest.raises(ValueError, match="source"):
        ft.patch(namespace["f"])
    with pytest.raises(TypeError, match="no methods"):
        ft.patch(float)
    with pytest.raises(TypeError, match="needs no patch"):
        ft.patch(np)
    module = importlib.import_module(f"{package}.later")
    with open(module.__file__, "w") as file:
        file.write("import math\n\ndef half(y, z):\n    return math.sin(y)\n")
    linecache.checkcache()
    with ft.patch(package) as handle:
        assert "changed" in handle.skipped[f"{package}.later"]
        assert module.half(0.0) == 0.0
    assert ft.patched() == []


CONSTANTS = """
import math
import numpy as np
import scipy.special
import scipy.linalg

_tables = {}

def nodes(n):
    if n not in _tables:
        table = np.zeros(n)
        for i in range(n):
            table[i] = math.cos(i) + 1
        _tables[n] = table
    return _tables[n]

def by_table(x):
    return float(np.sum(x ** nodes(4)))

def shapes(x):
    sizes, mask = np.zeros(3, dtype=int), np.zeros(4, bool)
    sizes[1] = 2
    mask[sizes[1]:] = True
    order = np.arange(4)[::-1]
    plain = np.array([1.0, 2.0, 3.0, 4.0])
    return x * plain[mask].sum() + sum(range(sizes[1])) * x + [1.0, 5.0, 7.0][sizes[1]] * plain[order][0] * x

def numbers(x):
    a = np.full((2, 2), 3.0)
    a[0, 1] = 1.0
    text = f"{float(a[0, 1]):.2f}" + "%g" % a[1, 1].item()
    lu = scipy.linalg.lapack.dgetrf(a)[0]
    return x * len(text) * lu[0, 0] * np.linalg.det(a)
"""


def test_arrays_are_plain_until_something_traced_is_assigned(tmp_path, monkeypatch):
    (tmp_path / "constants_of_others.py").write_text(CONSTANTS)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("constants_of_others")
    with ft.patch(module):
        for name in ("shapes", "numbers"):
            f = getattr(module, name)
            for derived in (ft.grad(f), ft.jit(ft.grad(f))):
                np.testing.assert_allclose(derived(1.3), f(1.3) / 1.3, rtol=1e-14)
            np.testing.assert_allclose(ft.vmap(ft.grad(f))(np.ones(2)), f(1.0) * np.ones(2), rtol=1e-14)
        slope = np.sum((1 + np.cos(np.arange(4))) * 1.3 ** np.cos(np.arange(4)))
        # A table that is made while one trace runs serves in the next one, and where none runs.
        for derived in (ft.grad(module.by_table), ft.jit(ft.grad(module.by_table))):
            np.testing.assert_allclose(derived(1.3), slope, rtol=1e-14)
        np.testing.assert_allclose(module.by_table(1.3), np.sum(1.3 ** (1 + np.cos(np.arange(4)))), rtol=1e-14)
    del sys.modules["constants_of_others"]


ODD_ARRAYS = """
import numpy as np

class Named(np.ndarray):
    pass

def objects(x):
    out = np.empty((2, 2), dtype=object)
    for i in range(2):
        for j in range(2):
            out[i, j] = np.array([x * (i + 1), float(j)], dtype=float)
    return float(sum(len(e) * e[0] for e in out.flat))

def texts(x):
    names = np.zeros(2, dtype="U4")
    names[0] = "half"
    return x / 2 if names[0] == "half" else x

def classes(x):
    named = np.ones(2).view(Named)
    kept = np.asanyarray(named), np.zeros_like(named), np.array(named, subok=True)
    plain = np.asarray(named), np.array(named)
    assert [type(k) for k in kept] == [Named] * 3
    assert not any(isinstance(p, Named) for p in plain)
    return x * 3.0

def enumerated(x):
    return np.array([x, 2 * x], copy=np._CopyMode.IF_NEEDED, dtype=np.float64, subok=True, ndmin=2).sum()

def named_fields(x):
    table = np.zeros(2, dtype=[("a", float), ("b", int)])
    table["a"][0] = x
    return table["a"].sum()
"""


def test_arrays_that_are_not_of_numbers(tmp_path, monkeypatch):
    (tmp_path / "odd_arrays.py").write_text(ODD_ARRAYS)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("odd_arrays")
    with ft.patch(module):
        slopes = [ft.grad(f)(1.3) for f in (module.objects, module.texts, module.classes, module.enumerated)]
        np.testing.assert_allclose(slopes, [12.0, 0.5, 3.0, 3.0], rtol=1e-15)
        with pytest.raises(TypeError, match=r"table\[.a.\]\[0\] = x"):
            ft.grad(module.named_fields)(1.3)
    del sys.modules["odd_arrays"]


def test_a_change_of_what_is_patched_looks_through_the_process_once(package, monkeypatch):
    module = importlib.import_module(f"{package}.formulas")
    importlib.import_module(f"{package}.later")
    monkeypatch.setitem(sys.modules, "numba", types.ModuleType("numba"))
    counted, get_objects = [], gc.get_objects
    monkeypatch.setattr(gc, "get_objects", lambda *args: counted.append(args) or get_objects(*args))
    with ft.patch(package):
        assert len(counted) == 1
        ft.grad(module.by_import)(1.0)
        assert len(counted) == 1
    assert len(counted) == 2


def test_what_numba_has_compiled_runs_as_python(package, monkeypatch):
    module = importlib.import_module(f"{package}.later")
    Dispatcher = type(
        "Dispatcher", (), {"__module__": "numba.core", "__call__": lambda self, x: self.py_func(float(x))}
    )
    compiled = Dispatcher()
    compiled.py_func = module.half
    monkeypatch.setattr(module, "compiled", compiled, raising=False)
    path = f"{module.__file__.removesuffix('later.py')}caller.py"
    with open(path, "w") as file:
        file.write(f"from {package} import later\n\ndef double(x):\n    return 2 * later.compiled(x)\n")
    importlib.invalidate_caches()
    caller = importlib.import_module(f"{package}.caller")
    with ft.patch(package):
        assert ft.grad(caller.double)(0.0) == 1.0
        assert caller.double(0.5) == np.sin(0.5)


def test_docstrings_run():
    assert_docstrings_run("ftrans.patching.patch")
