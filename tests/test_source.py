"""Programs written out as source of NumPy: the same bits, in a process that cannot import ftrans."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import control_samples  # noqa: F401
import linalg_samples  # noqa: F401
import numpy as np
import pytest
import special_samples_bessel  # noqa: F401
import special_samples_errors  # noqa: F401
import special_samples_gamma  # noqa: F401
import tables
from samples import SAMPLES
from sampling import Sample, dependence
from test_program_json import DERIVATIVES, bits

import ftrans as ft

# What holds objects of Python, and so has no source.
PYTHON = {"black_box", "call_jax", "factored_solve", "watch"}
WRITTEN = [s for s in SAMPLES if s.primitive.name not in PYTHON]


def run(source: str, *args: Any) -> list[Any]:
    """What the last function of a source returns."""
    assert "ftrans" not in re.sub(r'^""".*|#.*', "", source, flags=re.M)
    names: dict[str, Any] = {}
    exec(source, names)
    out = names[re.findall(r"^def (\w+)", source, flags=re.M)[-1]](*args)
    return list(out) if isinstance(out, tuple) else [out]


@tables.each(dependence, sample=tables.covering(WRITTEN, dependence, attrgetter("note")))
def test_every_primitive_is_written(sample: Sample) -> None:
    program, operands = sample.program(), sample.draw()
    with np.errstate(all="ignore"):
        expected = program(*operands)
        found = run(program.to_source(), *operands)
    if sample.primitive.name == "call":
        # It is compiled by XLA where there is ftrans.
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-14)
    else:
        assert bits(found) == bits(expected)


def logsumexp(x: Any) -> Any:
    return ft.scipy.special.logsumexp(x * np.linspace(0, 1, len(x)))


def density(x: Any) -> Any:
    return np.sum(ft.scipy.special.gammaln(x + 1) - ft.scipy.special.jv(1.5, x))


def minimum(x: Any) -> Any:
    return ft.argmin(lambda y: np.sum((y - x) ** 4 + y**2), np.zeros(2)).sum()


MORE = [*DERIVATIVES, (logsumexp, np.arange(4.0)), (density, np.array([0.5, 2.0]))]


@pytest.mark.parametrize(("f", "x"), MORE, ids=[f.__name__ for f, _ in MORE])
def test_gradients_are_written(f: Callable[..., Any], x: Any) -> None:
    program = ft.trace(ft.grad(f))(x)
    assert bits(run(program.to_source(), x)) == bits(program(x))


def with_table(x: Any) -> Any:
    return np.sum(np.sin(x * TABLE)) + np.sum(SMALL * x[:2])


TABLE, SMALL = np.random.default_rng(0).standard_normal(100), np.array([1 / 3, 0.1])


def test_another_process_runs_it(tmp_path: Path) -> None:
    x = np.linspace(0, 1, 100)
    sources = {"gradient": ft.trace(ft.grad(with_table))(x), "loop": ft.trace(ft.grad(DERIVATIVES[2][0]))(x[:2] + 1)}
    for name, program in sources.items():
        assert program.to_source(tmp_path / f"{name}.py") == (tmp_path / f"{name}.py").read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["gradient.npz", "gradient.py", "loop.py"]
    code = (
        "import sys\n"
        "sys.modules['ftrans'] = None\n"
        "import numpy as np, gradient, loop\n"
        "x = np.linspace(0, 1, 100)\n"
        "print(gradient.grad_with_table(x).tobytes().hex())\n"
        "print(loop.grad_doubling(list(x[:2] + 1)).tobytes().hex())\n"
        "assert 'scipy' not in sys.modules and 'jax' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    expected = [p(x if n == "gradient" else x[:2] + 1)[0].tobytes().hex() for n, p in sources.items()]
    assert done.stdout.split() == expected


def test_large_constants_are_in_the_text_without_a_path() -> None:
    program = ft.trace(with_table)(TABLE)
    assert bits(run(program.to_source(), TABLE)) == bits(program(TABLE))


def layer(params: Any, x: Any, *rest: Any, scale: Any) -> Any:
    """A function with containers and all kinds of parameters."""
    return np.sum(np.tanh(params["w"] @ x + params["b"])) * scale + rest[0]


def test_the_source_is_good_to_read() -> None:
    params = {"w": np.ones((2, 3)), "b": np.ones(2)}
    source = ft.trace(ft.grad(layer))(params, np.ones(3), 3.0, scale=np.float32(2)).to_source()
    assert "def grad_layer(params_b, params_w, x, rest, scale):" in source
    assert "        params_w: float64 (2, 3).\n        x: float64 (3,).\n" in source
    assert "    Returns:\n        float64 (2,), float64 (2, 3).\n" in source
    assert re.search(
        r'    # test_source.py:\d+: return np.sum\(np.tanh\(params\["w"\] @ x \+ params\["b"\]\)\)', source
    )
    assert re.search(r"    # derivative of test_source.py:\d+: return", source)
    assert '    """Sum over the axes contract of the products of the elements' in source


def test_names_do_not_clash() -> None:
    def f(np_: Any, a: Any, pad_: Any, sum: Any) -> Any:
        return np.pad(np.sin(a) * pad_, 1) * sum + np_

    args = np.ones(3), np.array(2.0), np.ones(1), np.array(0.5)
    program = ft.trace(f)(*args)
    assert bits(run(program.to_source(), *args)) == bits(program(*args))


def test_arguments_of_other_types_are_refused() -> None:
    source = ft.trace(lambda x: x * 2.0)(np.ones(3)).to_source()
    assert bits(run(source, [1, 2, 3])) == bits([np.array([2.0, 4.0, 6.0])])
    for wrong in (np.ones(2), np.ones(3) + 1j, 1.0):
        with pytest.raises(ValueError, match=r"x is an array of shape \(3,\) and dtype float64, not"):
            run(source, wrong)


def test_python_functions_are_refused_by_name(tmp_path: Path) -> None:
    program = ft.trace(lambda x: ft.scipy.integrate.quad(lambda t: np.sin(t * x), 0, 1)[0])(1.0)
    with pytest.raises(TypeError, match=r"it calls the Python function quad\(.*\n  at ") as error:
        program.to_source(tmp_path / "f.py")
    assert __file__ in str(error.value)
    assert not list(tmp_path.iterdir())
    with pytest.raises(TypeError, match=r"root needs the program .*, since it makes derivatives of it"):
        ft.trace(minimum)(np.ones(2)).to_source()


def test_names_are_no_code(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return np.sin(x) * TABLE

    f.__name__ = '''f"""; raise SystemExit; """\\'''
    path = tmp_path / "a'b\\.py"
    program = ft.trace(f)(TABLE)
    assert bits(run(program.to_source(), TABLE)) == bits(program(TABLE))
    program.to_source(path)
    assert [name for name in runpy.run_path(str(path)) if name.startswith("f")]


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"name that ends in .py, not "):
        ft.trace(lambda x: x)(1.0).to_source(tmp_path / "f.txt")
