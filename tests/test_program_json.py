"""Programs as text in JSON: all of them come back, to the bit, and no text does anything but be read or refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from operator import attrgetter
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

import ftrans as ft
from ftrans.control.rules.host_call import UserCode
from ftrans.core.primitive import Primitive
from ftrans.storage.names import primitives

# What holds objects of Python, and so cannot be text.
PYTHON = {"black_box", "call_jax", "factored_solve", "shard", "watch"}
STORABLE = [s for s in SAMPLES if s.primitive.name not in PYTHON]


def bits(values: list[Any]) -> list[tuple[Any, bytes]]:
    """Types and bytes of arrays."""
    return [(np.asarray(x).dtype, np.asarray(x).shape, np.asarray(x).tobytes()) for x in values]


@tables.each(dependence, sample=tables.covering(STORABLE, dependence, attrgetter("note"), times=2))
def test_every_primitive_comes_back(sample: Sample) -> None:
    program = sample.program()
    text = program.to_json()
    again = ft.Program.from_json(text)
    assert again.to_json() == text
    assert str(again) == str(program)
    operands = sample.draw()
    with np.errstate(all="ignore"):
        assert bits(again(*operands)) == bits(program(*operands))


def test_all_primitives_have_different_names() -> None:
    found: list[Primitive] = []

    def collect(cls: type) -> None:
        for sub in cls.__subclasses__():
            if sub.__module__.startswith("ftrans."):
                found.append(sub)  # type: ignore[arg-type]
            collect(sub)

    collect(Primitive)
    assert {type(p) for p in primitives().values()} <= set(found)
    assert not any(isinstance(p, UserCode) for p in primitives().values())
    assert {type(s.primitive) for s in STORABLE} <= {type(p) for p in primitives().values()}


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def spiral(y0: Any) -> Any:
    return ft.odeint(lambda y, t: np.stack([-y[1], y[0]]), y0, np.array([0.0, 1.0]))[-1].sum()


def doubling(x: Any) -> Any:
    return ft.while_loop(lambda x: np.sum(x) < 10, lambda x: 2 * x + np.sin(x), x).sum()


def spectrum(x: Any) -> Any:
    values, vectors = np.linalg.eigh(np.outer(x, x) + np.diag(x))
    return np.sum(values**2 * vectors[0] ** 2)


def solved(x: Any) -> Any:
    return ft.root(lambda y: y**3 + y - x, x).sum()


DERIVATIVES: list[tuple[Callable[..., Any], Any]] = [
    (rosenbrock, np.arange(4.0)),
    (spiral, np.array([1.0, 0.5])),
    (doubling, np.array([0.5, 0.7])),
    (spectrum, np.array([1.0, 2.0, 0.5])),
    (solved, np.array([1.0, 2.0])),
]


@pytest.mark.parametrize(("f", "x"), DERIVATIVES, ids=[f.__name__ for f, _ in DERIVATIVES])
def test_derivatives_come_back(f: Callable[..., Any], x: Any) -> None:
    program = ft.trace(ft.grad(f))(x)
    again = ft.Program.from_json(program.to_json())
    assert bits(again(x)) == bits(program(x))
    np.testing.assert_allclose(again(x)[0], ft.grad(f)(x), rtol=1e-12)


def test_what_is_read_can_be_transformed() -> None:
    x = np.arange(4.0)
    program = ft.Program.from_json(ft.trace(rosenbrock)(x).to_json())
    np.testing.assert_array_equal(ft.grad(lambda x: program_of(program, x))(x), ft.grad(rosenbrock)(x))


def program_of(program: ft.Program, x: Any) -> Any:
    from ftrans.core.interpret import inline
    from ftrans.numpy.promotion import asarray

    return inline(program, [asarray(x)])[0]


def test_constants_are_exact() -> None:
    from ml_dtypes import bfloat16

    table = np.array([0.1, np.inf, -np.inf, np.nan, -0.0, 5e-324, 1.7e308, 1 / 3, 0.2, 0.3])
    for dtype in (np.float64, np.float32, np.float16, bfloat16, np.complex128, np.int8, np.bool_):
        with np.errstate(all="ignore"):
            c = table.astype(dtype)
        program = ft.trace(lambda x, c=c: np.where(x, c, c[::-1]))(np.ones(10, bool))
        given = np.arange(10) % 2 == 0
        assert bits(ft.Program.from_json(program.to_json())(given)) == bits(program(given))


def test_lines_are_kept_as_text() -> None:
    program = ft.Program.from_json(ft.trace(ft.grad(rosenbrock))(np.arange(4.0)).to_json())
    line = next(eqn.line for eqn in program.eqns if eqn.line is not None)
    assert line.filename == __file__
    assert line.text.startswith("return np.sum(100")
    assert line.describe().endswith(line.text)
    again = ft.Program.from_json(program.to_json())
    assert [e.line and e.line.describe() for e in again.eqns] == [e.line and e.line.describe() for e in program.eqns]


# What cannot be written


@ft.custom_vjp
def wave(x: Any) -> Any:
    return np.sin(x)


wave.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (3 * ct * np.cos(x),))


def test_rules_of_the_user_are_kept() -> None:
    program = ft.Program.from_json(ft.trace(lambda x: wave(x) * x)(1.0).to_json())
    slope = ft.grad(lambda x: program_of(program, x))(0.5)
    assert slope == 3 * 0.5 * np.cos(0.5) + np.sin(0.5)


def test_rules_that_are_code_are_lost_with_an_error() -> None:
    def solved_backwards(y0: Any) -> Any:
        return ft.odeint(lambda y, t: -y, y0, np.array([0.0, 1.0]), adjoint="continuous")[-1].sum()

    program = ft.Program.from_json(ft.trace(solved_backwards)(np.array([1.0, 0.5])).to_json())
    with pytest.raises(NotImplementedError, match="derivative rule of odeint is Python"):
        ft.grad(lambda x: program_of(program, x))(np.array([1.0, 0.5]))


def test_python_functions_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"a call of the Python function quad\(.*cannot be written as text") as error:
        ft.trace(lambda x: ft.scipy.integrate.quad(lambda t: np.sin(t * x), 0, 1)[0])(1.0).to_json()
    assert f"at {__file__}" in str(error.value)


# What cannot be read


def good() -> dict[str, Any]:
    return json.loads(ft.trace(lambda x: np.sin(x) * np.array([1.0, 2.0]))(np.ones(2)).to_json())


def changed(*path: Any, to: Any) -> dict[str, Any]:
    """A text with something else in one place."""
    data = good()
    place: Any = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return data


def reduced(to: Any) -> dict[str, Any]:
    """A text with other parameters of its sum."""
    data = changed("primitives", 0, to="ReduceSum.reduce_sum")
    data["programs"][0]["equations"][0][2] = to
    return data


def with_any_parameters(to: Any) -> dict[str, Any]:
    """A text with an equation whose primitive takes any parameters."""
    data = changed("primitives", 0, to="Special.erf")
    data["programs"][0]["equations"][0][2] = to
    return data


BAD = [
    (changed("version", to=7), r"version 7, and this version of ftrans reads version 1"),
    (changed("format", to="x"), r"no entry \"format\""),
    (changed("primitives", 0, to="Elementwise.launch"), r"'Elementwise.launch' is no primitive"),
    (changed("primitives", 0, to="BlackBox.black_box"), r"'BlackBox.black_box' is no primitive"),
    (changed("primitives", 0, to=["os", "system"]), r"is no primitive"),
    (changed("types", 0, to=["float64", [10**30]]), r"does not fit into any memory"),
    (changed("types", 0, to=["float64", [2**62, 0, 2**62]]), r"does not fit into any memory"),
    (changed("types", 0, to=["float64", [-1]]), r"is no shape"),
    (changed("types", 0, to=["object", [1]]), r"'object' is no dtype"),
    (changed("types", 0, to=["float64", [1] * 100]), r"is no shape"),
    (changed("types", to={}), r"table of types is not a list"),
    (changed("constants", 0, "data", to="AAAA"), r"3 bytes in place of 16"),
    (changed("constants", 0, "data", to="%%%"), r"are damaged"),
    (changed("constants", 0, "data", to=5), r"are no text"),
    (changed("constants", 0, "splat", to=1), r"single number"),
    (changed("constants", 0, to=[]), r"a constant is no object"),
    (changed("programs", 0, "outputs", to=[17]), r"no variable before its use with the number 17"),
    (changed("programs", 0, "outputs", to=["c9"]), r"no constant with the number 9"),
    (changed("programs", 0, "equations", 0, 1, to=[1]), r"equation 0: there is no variable before its use"),
    (changed("programs", 0, "equations", 0, 2, to={"x": 0}), r"does not take these parameters"),
    (changed("primitives", 0, to="ReduceSum.reduce_sum"), r"does not take these operands and parameters"),
    (with_any_parameters({"**f(), z": 0}), r"'\*\*f\(\), z'\] are no names of parameters"),
    (with_any_parameters({"if": 0}), r"'if'\] are no names of parameters"),
    (reduced(to={"axes": {"program": 0}}), r"no program before its use"),
    (reduced(to={"axes": {"call": "os.system"}}), r"'call' is no kind of parameter"),
    (reduced(to={"axes": {"kept": 0}}), r"'kept' is no kind of parameter"),
    (reduced(to={"axes": {"record": "Popen", "fields": []}}), r"'Popen' is no record"),
    (changed("programs", 0, "equations", 0, 3, to=[]), r"the results of sin are"),
    (changed("programs", 0, "equations", 0, to=[0]), r"is not an equation"),
    (changed("programs", 0, "name", to=3), r"its name is no text"),
    (changed("programs", to=[]), r"it holds no program"),
    (changed("lines", 0, to=["a"]), r"is not a line"),
]


@pytest.mark.parametrize(("data", "message"), BAD, ids=[m for _, m in BAD])
def test_what_is_no_program_is_refused(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        ft.Program.from_json(json.dumps(data))
    assert "is no program of ftrans" in str(error.value)


@pytest.mark.parametrize("text", ["", "[", "null", "[]", '{"format": 1}', "[" * 100_000, "1" * 10_000])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no program of ftrans"):
        ft.Program.from_json(text)


def test_deep_parameters_are_refused() -> None:
    deep = json.dumps(reduced(to={"axes": "HERE"})).replace('"HERE"', "[" * 900 + "]" * 900)
    with pytest.raises(ValueError, match="is no program of ftrans"):
        ft.Program.from_json(deep)


def test_no_text_with_a_damaged_place_does_anything_else() -> None:
    text = json.dumps(good(), separators=(",", ":"))
    rng = np.random.default_rng(0)
    for _ in range(2000 if tables.whole else 200):
        place = int(rng.integers(len(text)))
        damaged = text[:place] + chr(rng.integers(32, 127)) + text[place + 1 :]
        with suppress(ValueError):
            assert isinstance(ft.Program.from_json(damaged), ft.Program)


def test_bytes_are_no_text() -> None:
    with pytest.raises(TypeError, match="takes the text that to_json has returned, not bytes"):
        ft.Program.from_json(b"{}")  # type: ignore[arg-type]


def test_another_process_reads_it() -> None:
    x = np.arange(4.0)
    text = ft.trace(ft.grad(rosenbrock))(x).to_json()
    code = (
        "import sys, numpy, ftrans\n"
        "program = ftrans.Program.from_json(sys.stdin.read())\n"
        "print(program(numpy.arange(4.0))[0].tobytes().hex())\n"
        "assert 'scipy' not in sys.modules and 'jax' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input=text, text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ft.grad(rosenbrock)(x).tobytes().hex()
