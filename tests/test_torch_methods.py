"""The table of torch's methods: each entry in every mode against figures that were made with torch."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import tables
import torch_method_rows as rows

import ftrans as ft
from ftrans import autograd, nn
from ftrans.autograd import torch_methods
from ftrans.base.forward_code import ForwardArray
from ftrans.numpy.after_trace import let_outlive

FIGURES = json.loads(rows.FIGURES.read_text())
ALWAYS = [*rows.calls(rows.METHODS), *rows.calls(rows.FUNCTIONS)]
OF_VALUES = rows.calls(rows.OF_VALUES)
TRAINED = [name for name, a in rows.ARRAYS.items() if a.dtype.kind == "f"]


def result(call: str, values: Any) -> list[Any]:
    """The arrays of the result of a call."""
    return rows.leaves(eval(call, {"torch": autograd, **values}))


def described(y: Any) -> tuple[tuple[int, ...], str, list[float]]:
    """Shape, kind and elements."""
    array = np.asarray(y.detach() if isinstance(y, autograd.Tensor) else y)
    flat = array.reshape(-1)
    if array.dtype.kind == "c":
        flat = np.stack([flat.real, flat.imag], -1).reshape(-1)
    return array.shape, array.dtype.kind, flat.astype(float).tolist()


def check(call: str, outs: list[Any]) -> None:
    """Compare the arrays of a result with torch's."""
    expected = FIGURES[call][0]
    assert len(outs) == len(expected), call
    for y, (shape, kind, elements) in zip(outs, expected, strict=True):
        found = described(y)
        assert (call, found[0], found[1]) == (call, tuple(shape), kind)
        np.testing.assert_allclose(found[2], elements, 1e-6, 1e-7, err_msg=call)


def objective(call: str, values: Any) -> Any:
    """The number that is differentiated."""
    outs = [y for y in result(call, values) if hasattr(y, "dtype") and y.dtype.kind == "f"]
    return sum(np.sum(y * rows.weights(tuple(y.shape)).astype(y.dtype)) for y in outs)


def check_gradients(call: str, gradients: dict[str, Any]) -> None:
    """Compare derivatives with torch's."""
    for name, expected in FIGURES[call][1].items():
        found = np.zeros(len(expected)) if gradients.get(name) is None else np.asarray(gradients[name]).reshape(-1)
        np.testing.assert_allclose(found, expected, 1e-5, 1e-6, err_msg=f"{call}: {name}")


class Of(nn.Module):
    """A module that computes something of its arguments, or of its parameters and buffers."""

    def __init__(self, f: Callable[[Any], Any], of_cells: bool = False) -> None:
        for name, a in rows.ARRAYS.items():
            setattr(self, name, nn.Parameter(a) if name in TRAINED else nn.Buffer(a))
        self.f = f
        self.of_cells = of_cells

    def forward(self, values: Any) -> Any:
        return self.f({name: getattr(self, name) for name in rows.ARRAYS} if self.of_cells else values)


def name_of(call: str) -> str:
    """What rows of one test have in common: the name of the method, up to its first letter."""
    return next(part for part in call.replace("torch.", "").split(".")[-1:][0].split("(")[:1])[:1]


@pytest.mark.filterwarnings("ignore")
@tables.each(name_of, call=[*ALWAYS, *OF_VALUES])
def test_tensors(call: str) -> None:
    check(call, result(call, {name: autograd.tensor(a) for name, a in rows.ARRAYS.items()}))
    values = {name: autograd.tensor(a, requires_grad=name in TRAINED) for name, a in rows.ARRAYS.items()}
    if call in ALWAYS:
        check(call, result(call, values))
        if FIGURES[call][1]:
            total = objective(call, values)
            if total.requires_grad:
                total.backward()
            check_gradients(call, {name: x.grad for name, x in values.items()})


@pytest.mark.filterwarnings("ignore")
@tables.each(name_of, call=[*ALWAYS, *OF_VALUES])
@pytest.mark.parametrize("of_cells", [False, True])
def test_arrays_and_cells_in_forward_code(call: str, of_cells: bool) -> None:
    def f(values: Any) -> Any:
        found = eval(call, {"torch": autograd, **values})
        plain = [type(y) for y in rows.leaves(found) if type(y) is np.ndarray or isinstance(y, np.generic)]
        assert plain == [] or ".numpy" in call, call
        return found

    outs = rows.leaves(Of(f, of_cells)({name: a.copy() for name, a in rows.ARRAYS.items()}))
    assert not any(isinstance(y, ForwardArray | autograd.Tensor) for y in outs)
    check(call, outs)


@pytest.mark.filterwarnings("ignore")
@tables.each(name_of, call=[call for call in ALWAYS if FIGURES[call][1]])
@pytest.mark.parametrize("of_cells", [False, True])
def test_derivatives_in_forward_code(call: str, of_cells: bool) -> None:
    if of_cells:
        found = nn.grad(lambda m: m(rows.ARRAYS))(Of(lambda values: objective(call, values), True))
    else:
        model = Of(lambda values: objective(call, values))
        fixed = {name: a for name, a in rows.ARRAYS.items() if name not in TRAINED}
        found = ft.grad(lambda given: model({**given, **fixed}))({name: rows.ARRAYS[name] for name in TRAINED})
    check_gradients(call, found)


@pytest.mark.filterwarnings("ignore")
@tables.each(name_of, call=ALWAYS)
def test_batches(call: str) -> None:
    def f(values: Any) -> Any:
        return [y if hasattr(y, "dtype") else np.asarray(y) for y in result(call, values)]

    model = Of(f)
    outs = ft.vmap(lambda values: model(values))({name: np.stack([a, a]) for name, a in rows.ARRAYS.items()})
    check(call, [np.asarray(y)[1] for y in outs])


@pytest.mark.filterwarnings("ignore")
@tables.in_chunks(len(ALWAYS), calls=ALWAYS if tables.whole else ALWAYS[::5])
def test_compiled(calls: Any) -> None:
    model = nn.jit(Of(lambda values: [result(call, values) for call in calls]))
    for call, outs in zip(calls, model(rows.ARRAYS), strict=True):
        check(call, outs)


def test_the_page_has_the_table() -> None:
    text = (Path(__file__).parents[1] / "docs/modules.md").read_text()
    table = {name for line in text.splitlines() if line.startswith("|") for name in re.findall(r"`(\w+)`", line)}
    in_place = {f"{name}_" for name in torch_methods.IN_PLACE}
    missing = {*torch_methods.METHODS, *torch_methods.FUNCTIONS, *in_place} - table
    assert not missing, "docs/modules.md, Methods of torch"


@pytest.mark.parametrize("of", ["arrays", "compiled"])
def test_values_of_forward_code_have_every_method_of_tensors(of: str) -> None:
    found: list[str] = []

    def f(x: Any) -> Any:
        found.extend(name for name in (*torch_methods.METHODS, "size") if not hasattr(x, name))
        return x

    model = Single(f)
    (nn.jit(model) if of == "compiled" else model)(np.ones(3))
    assert found == []


class Single(nn.Module):
    """A module that computes something of one argument."""

    def __init__(self, f: Callable[[Any], Any]) -> None:
        self.f = f

    def forward(self, x: Any) -> Any:
        return self.f(x)


def test_arrays_are_plain_outside_of_forward_code() -> None:
    x = np.arange(6.0).reshape(2, 3)
    seen: list[Any] = []

    def forward(x: Any) -> Any:
        assert isinstance(x, np.ndarray)
        assert np.shares_memory(x, given)
        seen.append(x)
        x[0, 0] += 1
        return {"same": x, "parts": [x.unsqueeze(0), x.sum()], "pair": (x.sum().sqrt(), x[0, 0])}

    given = x.copy()
    out = Single(forward)(given)
    assert out["same"] is given
    assert given[0, 0] == 1
    assert type(out["parts"][0]) is np.ndarray
    assert [type(y) for y in (out["parts"][1], *out["pair"])] == [np.float64] * 3
    assert seen[0].unsqueeze(0).shape == (1, 2, 3)
    np.testing.assert_array_equal(seen[0].max(1), given.max(1))  # outside of forward code it is NumPy's


def test_containers_that_forward_code_changes_hold_plain_arrays_again() -> None:
    def forward(cache: Any) -> Any:
        cache["k"] = cache["k"].unsqueeze(0)
        cache["list"].append(cache["list"][0].sum(dim=0))
        return cache["k"].size(0)

    cache = {"k": np.ones(3), "list": [np.ones((2, 2))]}
    assert Single(forward)(cache) == 1
    assert cache["k"].shape == (1, 3)
    assert [type(x) for x in (cache["k"], *cache["list"])] == [np.ndarray] * 3


def test_what_a_module_keeps_is_plain() -> None:
    class Keeping(nn.Module):
        def __init__(self) -> None:
            self.total = nn.Buffer(np.zeros(3))
            self.last: Any = None

        def forward(self, x: Any) -> Any:
            self.total = self.total + x.sum(dim=0)
            self.last = x
            return pickle.loads(pickle.dumps(x)), copy.deepcopy(x)

    model = Keeping()
    assert [type(y) for y in model(np.ones((2, 3)))] == [np.ndarray] * 2
    assert [type(y) for y in (model.last, model.total.value)] == [np.ndarray] * 2


def test_functions_take_arrays_of_jax() -> None:
    x = jnp.asarray(rows.ARRAYS["x"].astype(np.float32))
    found = [autograd.unsqueeze(x, 0), autograd.max(x, 1)[0], autograd.cat([x, x], 1), autograd.softmax(x, -1)]
    assert [y.shape for y in found] == [(1, 2, 3), (2,), (2, 6), (2, 3)]
    with pytest.raises(AttributeError) as error:
        Single(lambda x: x.unsqueeze(0))(x)
    assert "np.expand_dims" in "".join(error.value.__notes__)


def test_numbers_in_forward_code_are_immutable_as_those_of_numpy() -> None:
    def forward(x: Any) -> Any:
        total = x.sum()
        before, element = total, x[0]
        total += 1
        element += 1
        return before, total, x[0], {x.sum(): 1}[before], f"{total:.1f}", total.item()

    assert Single(forward)(np.ones(3)) == (3.0, 4.0, 1.0, 1, "4.0", 4.0)


def test_random_numbers_are_not_frozen_into_compiled_programs() -> None:
    model = Single(lambda x: x + autograd.randn_like(x))
    assert not np.array_equal(model(np.zeros(3)), model(np.zeros(3)))
    with pytest.raises(TypeError, match=r"nn\.RngState\(\)"):
        nn.jit(model)(np.zeros(3))


# Calls in forward code that mean one thing to NumPy and another one to torch.
UNCLEAR = {
    "x.max(1)": r"x\.max\(dim=1\) for the one, and x\.max\(axis=1\)",
    "x.std()": r"x\.std\(correction=1\) for the one, and x\.std\(ddof=0\)",
    "x.var(0)": r"x\.var\(0, correction=1\)",
    "x.sort()": r"x\.sort\(dim=-1\)",
    "x.nonzero()": r"as_tuple=True",
    "x.repeat(2, 1)": r"x\.tile\(2, 1\)",
    "x.transpose(0, 1)": r"x\.transpose\(1, 0\)",
    "x.sum(())": r"axis=\(\)",
    "x.put(n, x)": r"put_",
    "x.squeeze(0)": r"x\.squeeze\(dim=0\)",
    "x[0, None, [0, 1]]": r"x\[0\]\[:, \[1, 2\]\]",
}


@pytest.mark.parametrize("call", UNCLEAR)
@pytest.mark.parametrize("of", ["arrays", "tensors", "gradient", "gradient after a patch"])
def test_unclear_calls_are_errors(call: str, of: str) -> None:
    model = Single(lambda x: eval(call, {"x": x, "n": rows.ARRAYS["n"]}))
    x = rows.ARRAYS["x"]
    run: dict[str, Callable[[], Any]] = {
        "arrays": lambda: model(x),
        "tensors": lambda: model(autograd.tensor(x)),
        "gradient": lambda: ft.grad(lambda x: np.sum(model(x)))(x),
    }
    if of == "gradient after a patch":
        let_outlive()
        of = "gradient"
    with pytest.raises((TypeError, ValueError), match=UNCLEAR[call]):
        run[of]()
    # Outside of forward code, they are NumPy's.
    if call not in ("x.put(n, x)", "x.sort()", "x.squeeze(0)", "x.nonzero()", "x.repeat(2, 1)"):
        ft.grad(lambda x: np.sum(eval(call, {"x": x})))(x)


def test_names_of_torch_that_are_elsewhere_are_explained() -> None:
    with pytest.raises(AttributeError, match=r"write nn\.save\(path, model\.state_dict\(\)\), the path first"):
        autograd.save  # noqa: B018
    with pytest.raises(TypeError, match="cannot be put on 'cuda'"):
        autograd.zeros(2, device="cuda")
    with pytest.raises(TypeError, match="floating-point"):
        autograd.set_default_dtype(int)


def test_the_default_dtype_is_that_of_what_is_created() -> None:
    autograd.set_default_dtype(autograd.float32)
    try:
        made = [
            autograd.zeros(2),
            autograd.randn(2),
            autograd.tensor([1.0]),
            autograd.arange(0, 1, 0.5),
            autograd.full((2,), 0.5),
        ]
        assert {x.dtype for x in made} == {np.dtype(np.float32)}
        assert autograd.tensor(np.ones(2)).dtype == np.float64
        assert autograd.arange(3).dtype == np.int64
    finally:
        autograd.set_default_dtype(autograd.float64)
