"""Exported functions: values, files, calls, what is refused, and that plain JAX runs them without ftrans."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import textwrap
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import ml_dtypes
import numpy as np
import pytest
import scipy.special
import tables
from checks import assert_close

import ftrans as ft
from ftrans import nn

RNG = np.random.default_rng(0)
A = RNG.standard_normal((3, 3))
X = RNG.standard_normal(3)


class Point(NamedTuple):
    x: Any
    y: Any


@ft.custom_vjp
def hundredfold(x: Any) -> Any:
    return x * x


hundredfold.defvjp(lambda x: (x * x, x), lambda x, g: (100 * x * g,))


def energy(p: dict[str, Any]) -> Any:
    return (np.sin(A @ p["a"]) * p["b"]).sum()


def steps(x: Any) -> Any:
    return ft.while_loop(lambda c: c.sum() < 10, lambda c: c * 1.5, x, 20).sum()


def walk(x: Any) -> Any:
    return ft.scan(lambda c, a: (np.tanh(c + a), c * a), x, np.linspace(0, 1, 4))[1].sum()


# Name, function, arguments.
ROWS: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("product", lambda x: np.sin(A @ x), (X,)),
    ("gradient of a dict", ft.grad(energy), ({"b": 2.0, "a": X},)),
    ("second derivative", ft.hessian(lambda x: np.exp(np.sin(A @ x)).sum()), (X,)),
    ("third derivative", ft.grad(ft.grad(ft.grad(lambda x: np.sin(x) ** 3))), (0.7,)),
    ("a rule of the user", ft.grad(hundredfold), (2.0,)),
    ("a norm at 0", ft.grad(lambda x: np.linalg.norm(x)), (np.zeros(2),)),
    ("stop_gradient", ft.grad(lambda x: ft.stop_gradient(x) * x), (2.0,)),
    ("loops", ft.grad(lambda x: steps(x) + walk(x[0])), (np.ones(2),)),
    ("a root", ft.grad(lambda a: ft.root(lambda x, a: x**3 - a, 1.0, a)), (8.0,)),
    ("containers", lambda p, q: {"p": [p.y, None, (q, p.x * 2)], "q": Point(q, q + 1)}, (Point(1.0, X), np.arange(3))),
    ("a solution and eigenvalues", lambda a: (np.linalg.solve(a, X), np.linalg.eigh(a + a.T)), (A,)),
    (
        "other dtypes",
        lambda z, n, b: (z * 1j, n // 2, ~b),
        (np.array([1 + 2j], np.complex64), np.int8(7), np.array(True)),
    ),
    ("checkpoint", ft.grad(ft.checkpoint(lambda x: np.exp(np.sin(x)).sum())), (X,)),
    ("random numbers", lambda key: nn.random.normal(key, (5,)), (nn.random.key(3),)),
]


def same(found: Any, expected: Any) -> None:
    """Assert that two nested containers are equal up to rounding, with the same dtypes."""
    leaves, structure = jax.tree_util.tree_flatten(found)
    others, others_structure = jax.tree_util.tree_flatten(expected)
    assert str(structure) == str(others_structure)
    for x, y in zip(leaves, others, strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        assert_close(x, y)


@tables.each(by=lambda row: "all", row=ROWS)
def test_a_loaded_function_computes_the_same(row: Any, tmp_path: Path) -> None:
    _, f, args = row
    path = tmp_path / "f.export"
    ft.export(f, *args, platforms=("cpu", "cuda") if tables.whole else "cpu", path=path)
    same(ft.load_exported(path)(*args), f(*args))
    assert not jax.config.jax_enable_x64


def test_one_program_is_for_all_platforms() -> None:
    exported = ft.export(ft.grad(lambda x: np.cumsum(np.sin(x)).prod()), X)
    assert exported.platforms == ("cpu", "cuda", "tpu")
    assert exported.stablehlo().count("stablehlo.case")
    assert_close(exported(X), ft.grad(lambda x: np.cumsum(np.sin(x)).prod())(X))


def test_the_batch_has_any_size() -> None:
    f = ft.value_and_grad(lambda x, w: (np.sin(x * w) @ A @ x).sum())
    exported = ft.export(f, X, X, batch=0)
    for size in (1, 4):
        rows = RNG.standard_normal((size, 3))
        same(exported(rows, X), ft.vmap(f, in_axes=(0, None))(rows, X))
    both = ft.export(f, X, X, batch=(0, -1))
    same(both(rows, rows + 1), ft.vmap(f)(rows, rows + 1))


def test_a_network_is_a_function_of_its_input() -> None:
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 3)
    ).eval()
    image = RNG.standard_normal((1, 6, 6)).astype(np.float32)
    images = RNG.standard_normal((3, 1, 6, 6)).astype(np.float32)
    exported = ft.export(lambda x: model(x[None])[0], image, batch=0)
    assert {"0.weight", "5.bias"} <= {*exported.manifest["constants"]}
    expected = np.asarray(model(images))
    assert_close(exported(images), expected)
    assert exported(images).dtype == np.float32
    for parameter in model.parameters():
        parameter.value = parameter.value * 0
    assert_close(exported(images), expected)


def test_arrays_of_jax_give_arrays_of_jax_also_in_its_jit() -> None:
    exported = ft.export(lambda x: A.astype(np.float32) @ x, X.astype(np.float32))
    x = jax.numpy.asarray(X, np.float32)
    assert isinstance(exported(x), jax.Array)
    assert_close(np.asarray(jax.jit(lambda x: exported(x) * 2)(x)), exported(np.asarray(x)) * 2)
    assert_close(np.asarray(jax.jit(lambda y: exported(np.asarray(x)) * y)(2.0)), exported(np.asarray(x)) * 2)


def test_constants_of_every_dtype_are_stored(tmp_path: Path) -> None:
    given = [np.array([1, 2], dtype) for dtype in ("?", "i1", "u8", "f2", "f4", "f8", "c8", "c16", ml_dtypes.bfloat16)]
    given.append(np.array([1.0, 2.0], ">f8"))
    exported = ft.export(lambda x: [np.where(x > 0, c, c[::-1]) for c in given], 1.0, path=tmp_path / "f")
    same(ft.load_exported(tmp_path / "f")(2.0), [c.astype(c.dtype.newbyteorder("=")) for c in given])
    assert len(exported.manifest["constants"]) >= len(given)


def test_numbers_of_python_take_the_dtype_of_the_argument() -> None:
    exported = ft.export(lambda x: x * 2, np.float32(1.0))
    assert exported(3) == 6
    assert exported(3).dtype == np.float32
    assert exported(np.array(3.0, ">f4")) == 6
    with pytest.raises(TypeError, match=r"argument \[0\] is 300, which is not in the range of int8"):
        ft.export(lambda x: x, np.int8(1))(300)
    with pytest.raises(TypeError, match=r"argument \[0\] is complex and not an array of type float32\[\]"):
        exported(1j)


def test_the_precision_of_products_is_in_the_program() -> None:
    with ft.matmul_precision("high"):
        exported = ft.export(lambda x: x @ x, A.astype(np.float32))
    assert "precision = [HIGH, HIGH]" in exported.stablehlo()


PLAIN_JAX = """
    import json, zipfile
    import jax, jax.export, safetensors.numpy

    with zipfile.ZipFile(path) as file:
        manifest = json.loads(file.read("manifest.json"))
        arrays = safetensors.numpy.load(file.read("constants.safetensors"))
        program = jax.export.deserialize(bytearray(file.read("program.bin")))
    constants = [arrays[name] for name in manifest["constants"]]
    with jax.enable_x64(True):
        results = program.call(constants, arguments)
"""


def test_plain_jax_runs_it_without_ftrans(tmp_path: Path) -> None:
    rows = RNG.standard_normal((4, 3))
    gradient = ft.grad(lambda x: np.sum(np.sin(A @ x) * abs(A[0] + 1j)))
    cases = {"batch": (gradient, (X,), 0, [rows]), "dict": (ft.grad(energy), ({"b": 2.0, "a": X},), None, [X, 2.0])}
    for name, (f, args, batch, _) in cases.items():
        ft.export(f, *args, batch=batch, platforms="cpu", path=tmp_path / name)
    given = [(str(tmp_path / name), [np.asarray(x).tolist() for x in case[3]]) for name, case in cases.items()]
    code = f"""
    import sys
    sys.modules["ftrans"] = None

    def refuse(event, args):
        if event == "pickle.find_class":
            raise RuntimeError("something is unpickled")

    sys.addaudithook(refuse)
    import numpy as np

    for path, arguments in {given}:
        arguments = [np.asarray(x) for x in arguments]
{textwrap.indent(PLAIN_JAX, "    ")}
        print([np.asarray(y).tolist() for y in results])
    """
    run = [sys.executable, "-c", textwrap.dedent(code)]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    batch, mapping = map(json.loads, done.stdout.splitlines())
    assert_close(np.array(batch[0]), ft.vmap(gradient)(rows))
    expected = ft.grad(energy)({"b": 2.0, "a": X})
    assert_close(np.array(mapping[0]), expected["a"])
    assert_close(mapping[1], expected["b"])


def test_code_of_jax_is_exported_with_its_derivative() -> None:
    f = ft.grad(lambda x: ft.from_jax(lambda x: jax.numpy.sin(x) ** 2)(x).sum())
    assert_close(ft.export(f, X, batch=0)(A), np.sin(2 * A))
    on_host = ft.from_jax(lambda x: jax.pure_callback(np.sin, x, x))
    with pytest.raises(NotImplementedError, match=r"JAX cannot lower it \(NotImplementedError: serialization of host"):
        ft.export(on_host, X, platforms="cpu")


# What is refused


def branching(x: Any) -> Any:
    if x > 0:
        return x
    return -x


def test_branches_of_python_are_refused() -> None:
    with pytest.raises(TypeError, match=r"is for all values[\s\S]*test_export\.py[\s\S]*ftrans\.cond"):
        ft.export(branching, 1.0)


def test_functions_on_the_host_are_refused_by_name_and_line() -> None:
    with pytest.raises(NotImplementedError, match=r"cuda and tpu: kv is computed by[\s\S]*test_export\.py.*kv\("):
        ft.export(lambda x: scipy.special.kv(1.5, x), 1.0)
    # In a loop, too.
    with pytest.raises(NotImplementedError, match=r"kv is computed by[\s\S]*test_export\.py.*kv\("):
        ft.export(lambda x: ft.fori_loop(0, 3, lambda i, c: scipy.special.kv(1.5, c), x), 1.0, platforms="cpu")


def test_what_one_platform_cannot_do_is_said() -> None:
    with pytest.raises(NotImplementedError, match=r"for cuda and tpu: eig .*write platforms=\('cpu',\)"):
        ft.export(lambda x: np.linalg.eig(x)[0], A)
    exported = ft.export(lambda x: np.linalg.eig(x)[0], A, platforms=["cpu"])
    assert_close(np.sort_complex(exported(A)), np.sort_complex(np.linalg.eig(A)[0]))


def test_a_program_for_another_platform_is_not_run() -> None:
    exported = ft.export(np.cumsum, X, platforms="cuda")
    with pytest.raises(ValueError, match=r"was exported for cuda, but JAX runs on cpu here"):
        exported(X)


@pytest.mark.parametrize("wrong", ["gpu", (), ("cpu", "metal"), None, 3], ids=str)
def test_unknown_platforms_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"platforms of export are one or several of 'cpu', 'cuda'"):
        ft.export(np.sin, X, platforms=wrong)


@pytest.mark.parametrize("wrong", [1, -2, "x", (0, 3), True, 0.0], ids=str)
def test_wrong_batches_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"batch of export says which arguments"):
        ft.export(np.sin, X, batch=wrong)


def test_what_cannot_be_an_argument_or_a_result_is_refused() -> None:
    with pytest.raises(TypeError, match=r"argument \[0\] of lambda is .*close over it"):
        ft.export(lambda name: 1.0, "sin")
    with pytest.raises(TypeError, match=r"returned object at result, which is not an array"):
        ft.export(lambda x: object(), X)
    with pytest.raises(TypeError, match=r"the argument\[0\] is a container of class Linear"):
        ft.export(lambda m, x: m(x), nn.Linear(3, 3), X)
    with pytest.raises(TypeError, match=r"the result is a container of class OrderedDict"):
        ft.export(lambda x: OrderedDict(a=x), X)
    with pytest.raises(TypeError, match=r"the result is a container of class SparseValues"):
        ft.export(ft.sparse_jacobian(np.sin), X)
    with pytest.raises(TypeError, match=r"argument \[0\] of sin is a tensor"):
        ft.export(np.sin, ft.autograd.tensor(X))
    with pytest.raises(TypeError, match=r"called inside a function that is being traced"):
        ft.grad(lambda x: ft.export(np.sin, x)(x))(1.0)


def test_what_is_divided_over_devices_is_refused() -> None:
    with (
        ft.use_mesh(ft.mesh({"data": 8})),
        pytest.raises(NotImplementedError, match=r"over 8 devices.*\n.*test_export"),
    ):
        ft.export(lambda x: ft.shard(x, ft.P("data")) * 2, np.ones(8))


def test_no_path_of_this_machine_is_in_the_program(exported_energy: Any) -> None:
    assert ".py" not in exported_energy.stablehlo()
    assert jax.config.jax_traceback_in_locations_limit > 0


def test_a_module_in_training_is_refused() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    with pytest.raises(RuntimeError, match=r"call eval\(\)"):
        ft.export(model, np.ones((4, 3), np.float32))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), r"takes 1 arguments, 0 were given"),
        (({"a": X},), r"argument \[0\] is a dict with the keys \['a'\], but a dict with the keys \['b', 'a'\]"),
        (([X, 2.0],), r"argument \[0\] is a list of 2, but a dict"),
        (({"a": X[:2], "b": 1.0},), r"argument \[0\]\['a'\] has the shape \(2,\), but float64\[3\] is expected"),
        (({"a": X.astype(np.float32), "b": 1.0},), r"argument \[0\]\['a'\] is of dtype float32, but float64\[3\]"),
        (({"a": "x", "b": 1.0},), r"argument \[0\]\['a'\] is str and not an array"),
    ],
    ids=["count", "keys", "list", "shape", "dtype", "text"],
)
def test_wrong_calls_are_explained(args: tuple[Any, ...], message: str, exported_energy: Any) -> None:
    with pytest.raises(TypeError, match=rf"energy.*{message}[\s\S]*test_export\.py"):
        exported_energy(*args)


@pytest.fixture(scope="module")
def exported_energy() -> Any:
    return ft.export(energy, {"b": 2.0, "a": X}, platforms="cpu")


def test_wrong_batches_of_a_call_are_explained() -> None:
    exported = ft.export(lambda x, y: x @ y, X, X, batch=(0, 1), platforms="cpu")
    with pytest.raises(TypeError, match=r"batches of different sizes: 2 at \[0\], 3 at \[1\]"):
        exported(np.ones((2, 3)), np.ones((3, 3)))
    with pytest.raises(TypeError, match=r"the batch is empty"):
        exported(np.ones((0, 3)), np.ones((0, 3)))
    with pytest.raises(TypeError, match=r"has the shape \(3,\), but float64\[batch,3\] is expected"):
        exported(X, X)


def test_it_is_not_differentiated(exported_energy: Any) -> None:
    with pytest.raises(TypeError, match=r"export its derivative, ft\.export\(ft\.grad\(f\), \.\.\.\)"):
        ft.grad(exported_energy)({"b": 2.0, "a": X})
    with (
        jax.enable_x64(True),
        pytest.raises(TypeError, match=r"not differentiate or map it.*ft\.export\(ft\.grad\(f\)"),
    ):
        jax.grad(lambda x: exported_energy({"b": 2.0, "a": x}))(jax.numpy.asarray(X))


# Files


@pytest.fixture
def file(tmp_path: Path, exported_energy: Any) -> Path:
    exported_energy.save(tmp_path / "energy.export")
    return tmp_path / "energy.export"


def rewritten(path: Path, **parts: Any) -> Path:
    """The file with other contents of parts, by their names without suffix; None leaves one out."""
    with zipfile.ZipFile(path) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in found.items():
            new = parts.get(name.split(".")[0], lambda part: part)
            if new is not None:
                archive.writestr(name, new(part))
    return path


def changed(**entries: Any) -> Callable[[bytes], bytes]:
    return lambda part: json.dumps({**json.loads(part), **entries}).encode()


DAMAGES: dict[str, tuple[dict[str, Any], str]] = {
    "no manifest": ({"manifest": None}, "no item named 'manifest.json'"),
    "half a manifest": ({"manifest": lambda part: part[:50]}, "Unterminated"),
    "other": ({"manifest": lambda part: b"[]"}, "its manifest is none of a function"),
    "version": (
        {"manifest": changed(version=2)},
        r"version 2 of the format, this ftrans reads 1; use the versions that wrote it: .*'jax'",
    ),
    "constants": ({"manifest": changed(constants=["a"])}, "its manifest is incomplete"),
    "places": (
        {"manifest": changed(results={"structure": {"tuple": [0, 0]}, "leaves": []})},
        "its manifest is incomplete",
    ),
    "containers": ({"manifest": lambda part: part.replace(b'"tuple"', b'"object"')}, "its manifest is incomplete"),
    "dtypes": (
        {"manifest": lambda part: part.replace(b'"float64"', b'"float32"')},
        "the program takes other arguments than its manifest says",
    ),
    "depth": ({"manifest": lambda part: b"[" * 100_000}, "recursion"),
    "text": ({"manifest": lambda part: b"\xff" + part}, "codec"),
    "program": ({"program": lambda part: part[:100]}, r"JAX .* cannot read the program, which was written by .*'jax'"),
    "empty": ({"program": lambda part: b""}, r"JAX .* cannot read the program"),
    # As a newer version of StableHLO has operations that this one does not know.
    "StableHLO": (
        {"program": lambda part: part.replace(b"vhlo", b"vhlx")},
        r"JAX .* cannot read the program, .*StableHLO",
    ),
    "half the constants": ({"constants": lambda part: part[:40]}, "its constants cannot be read"),
}


@pytest.mark.parametrize(("parts", "message"), DAMAGES.values(), ids=DAMAGES)
def test_damaged_files_are_refused(parts: dict[str, Any], message: str, file: Path) -> None:
    with pytest.raises(ValueError, match=rf"energy\.export is damaged, or no file.*{message}"):
        ft.load_exported(rewritten(file, **parts))


def test_it_is_pickled_for_other_processes(exported_energy: Any) -> None:
    p = {"b": 2.0, "a": X}
    assert pickle.loads(pickle.dumps(exported_energy))(p) == exported_energy(p)


def test_a_flipped_bit_and_a_cut_file_are_noticed(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    file.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged"):
        ft.load_exported(file)
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="is damaged"):
        ft.load_exported(file)
    with pytest.raises(FileNotFoundError, match=r"there is no file .*other\n.*test_export\.py"):
        ft.load_exported(file.with_name("other"))
    with pytest.raises(TypeError, match="takes the path of a file, not int"):
        ft.load_exported(3)


def test_an_existing_file_is_replaced_only_when_all_is_known(file: Path) -> None:
    before = file.read_bytes()
    with pytest.raises(NotImplementedError):
        ft.export(lambda x: scipy.special.kv(1.5, x), 1.0, path=file)
    assert file.read_bytes() == before
    ft.export(np.sin, X, platforms="cpu", path=file)
    assert_close(ft.load_exported(file)(X), np.sin(X))
    assert os.listdir(file.parent) == [file.name]


def test_it_prints_its_types(exported_energy: Any) -> None:
    text = "<exported energy: ({'b': float64[], 'a': float64[3]},) -> float64[] for cpu>"
    assert repr(exported_energy) == text
