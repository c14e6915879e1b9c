"""What is called as in torch gives what torch gives, or an error that says what to write instead."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tables

import ftrans as ft
from ftrans import nn
from ftrans.autograd import tensor
from ftrans.core.trace import Tracer
from ftrans.numpy.torch_names import INSTEAD, instead

X = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.5]])
X3 = np.arange(24.0).reshape(2, 3, 4)
N = np.array([[-7, 7, 0], [5, -5, 9]])
TIES = np.array([[1.0, 2.0, 1.0, np.nan], [2.0, 0.0, 2.0, 2.0]])

# What torch gives, by NumPy or by hand.
RESULTS: list[tuple[str, Callable[[], Any]]] = [
    ("x.max(dim=1)", lambda: (X.max(1), [0, 1])),
    ("x.max(dim=1)[0]", lambda: X.max(1)),
    ("x.max(0, keepdim=True)", lambda: (X.max(0)[None], [[0, 1, 0]])),
    ("x.max(1, True)", lambda: (X.max(1)[:, None], [[0], [1]])),
    ("x.max(dim=-1).indices", lambda: [0, 1]),
    ("x.min(dim=0)", lambda: (X.min(0), [1, 0, 1])),
    ("x.min(dim=0, keepdim=True).values", lambda: X.min(0)[None]),
    ("x.max(x * 0)", lambda: np.maximum(X, 0)),
    ("x.min(other=x * 0)", lambda: np.minimum(X, 0)),
    ("x.max()", lambda: 4.0),
    ("x.sort(dim=1)", lambda: (np.sort(X, 1), [[1, 2, 0], [2, 0, 1]])),
    ("x.sort(descending=True)", lambda: (-np.sort(-X, 1), [[0, 2, 1], [1, 0, 2]])),
    ("x.sort(0, descending=True).indices", lambda: [[0, 1, 0], [1, 0, 1]]),
    ("ties.sort(dim=1, stable=True)", lambda: ([[1, 1, 2, np.nan], [0, 2, 2, 2]], [[0, 2, 1, 3], [1, 0, 2, 3]])),
    ("ties.sort(stable=True, descending=True)[0]", lambda: [[np.nan, 2, 1, 1], [2, 2, 2, 0]]),
    ("ties.sort(stable=True, descending=True)[1]", lambda: [[3, 1, 0, 2], [0, 2, 3, 1]]),
    ("ties.argsort(descending=True, stable=True)", lambda: [[3, 1, 0, 2], [0, 2, 3, 1]]),
    ("x.sort(1, True).indices", lambda: [[0, 2, 1], [1, 0, 2]]),
    ("x.sort(1, False)", lambda: (np.sort(X, 1), [[1, 2, 0], [2, 0, 1]])),
    ("x.argsort(1, True)", lambda: [[0, 2, 1], [1, 0, 2]]),
    ("x.argsort(1, False)", lambda: np.argsort(X, 1)),
    ("x.max(axis=1)", lambda: X.max(1)),  # NumPy's, by the name of the argument
    ("x.max(axis=())", lambda: X),
    ("np.max(x, 1)", lambda: X.max(1)),
    ("np.sum(x, ())", lambda: X),
    ("x.sum(axis=())", lambda: X),
    ("x.diagonal(dim1=1, dim2=0)", lambda: np.diagonal(X)),
    ("x3.diagonal(1, dim1=0, dim2=2)", lambda: np.diagonal(X3, 1, 0, 2)),
    ("x.expand(size=(4, -1, 3))", lambda: np.broadcast_to(X, (4, 2, 3))),
    ("x.view(size=(3, 2))", lambda: X.reshape(3, 2)),
    ("x[None].squeeze(0)", lambda: X),
    ("x.argsort(dim=0)", lambda: np.argsort(X, 0)),
    ("x.argmax(dim=1)", lambda: [0, 1]),
    ("x.argmin(1, True)", lambda: [[1], [2]]),
    ("x.std(dim=1)", lambda: np.std(X, 1, ddof=1)),
    ("x.std(dim=(0, 1), keepdim=True)", lambda: np.std(X, ddof=1)[None, None]),
    ("x.std(1, keepdim=True)", lambda: np.std(X, 1, ddof=1)[:, None]),
    ("x.std(unbiased=True)", lambda: np.std(X, ddof=1)),
    ("x.std(unbiased=False)", lambda: np.std(X)),
    ("x.var(dim=0, unbiased=False)", lambda: np.var(X, 0)),
    ("x.var(0, correction=0)", lambda: np.var(X, 0)),
    ("x.var(dim=1, correction=2)", lambda: np.var(X, 1, ddof=2)),
    ("x.var(axis=1)", lambda: np.var(X, 1)),
    ("x.sum(dim=1)", lambda: X.sum(1)),
    ("x.sum(0, True)", lambda: X.sum(0)[None]),
    ("x.sum(dim=[0, 1])", lambda: X.sum()),
    ("x.sum(dim=())", lambda: X.sum()),
    ("x.mean(1, keepdim=True)", lambda: X.mean(1)[:, None]),
    ("x.prod(dim=0)", lambda: X.prod(0)),
    ("x.all(1, True)", lambda: [[True], [True]]),
    ("(x > 0).any(dim=0)", lambda: [True, True, True]),
    ("x.cumsum(dim=1)", lambda: np.cumsum(X, 1)),
    ("x.norm()", lambda: np.sqrt(np.sum(X**2))),
    ("x.norm(1)", lambda: np.sum(np.abs(X))),
    ("x.norm(2)", lambda: np.sqrt(np.sum(X**2))),
    ("x.norm(float('inf'))", lambda: 4.0),
    ("x.norm('fro')", lambda: np.sqrt(np.sum(X**2))),
    ("x.norm('nuc')", lambda: np.linalg.svd(X)[1].sum()),
    ("x.norm(3, dim=1, keepdim=True)", lambda: np.sum(np.abs(X) ** 3, 1, keepdims=True) ** (1 / 3)),
    ("x3.norm(2, dim=(0, 2))", lambda: np.sqrt(np.sum(X3**2, (0, 2)))),
    ("x.norm(ord=2)", lambda: np.linalg.norm(X, 2)),  # that is NumPy's name
    ("x.squeeze(dim=0)", lambda: X),
    ("x[None].squeeze(dim=(0, 1))", lambda: X),
    ("x3.transpose(1, 2)", lambda: np.swapaxes(X3, 1, 2)),
    ("x3.transpose(dim0=1, dim1=2)", lambda: np.swapaxes(X3, 1, 2)),
    ("x.transpose(1, 0)", lambda: X.T),
    ("x3.permute(2, 0, 1)", lambda: np.transpose(X3, (2, 0, 1))),
    ("x3.permute(dims=(2, 0, 1))", lambda: np.transpose(X3, (2, 0, 1))),
    ("x3.flatten(1)", lambda: X3.reshape(2, 12)),
    ("x3.flatten(start_dim=0, end_dim=1)", lambda: X3.reshape(6, 4)),
    ("x3.flatten(-2, -1)", lambda: X3.reshape(2, 12)),
    ("x3[0, 0, 0].flatten(0)", lambda: [0.0]),
    ("x.flatten()", X.ravel),
    ("x.view(-1)", X.ravel),
    ("x.view(3, 2)", lambda: X.reshape(3, 2)),
    ("x.expand(4, -1, 3)", lambda: np.broadcast_to(X, (4, 2, 3))),
    ("x[:, :1].expand(-1, 3)", lambda: np.broadcast_to(X[:, :1], (2, 3))),
    ("x.expand([2, 2, 3])", lambda: np.broadcast_to(X, (2, 2, 3))),
    ("x.unsqueeze(-1)", lambda: X[..., None]),
    ("x.t()", lambda: X.T),
    ("x.nonzero(as_tuple=False)", lambda: [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]),
    ("x.add(x, alpha=2)", lambda: 3 * X),
    ("x.sub(1, alpha=2)", lambda: X - 2),
    ("x.clone().add_(x, alpha=2)", lambda: 3 * X),
    ("x.div(2, rounding_mode='floor')", lambda: np.floor(X / 2)),
    ("x.div(2, rounding_mode='trunc')", lambda: np.trunc(X / 2)),
    ("n.div(2, rounding_mode='trunc')", lambda: [[-3, 3, 0], [2, -2, 4]]),
    ("n // 2", lambda: [[-4, 3, 0], [2, -3, 4]]),
    ("n.remainder(4)", lambda: [[1, 3, 0], [1, 3, 1]]),
    ("n.fmod(4)", lambda: [[-3, 3, 0], [1, -1, 1]]),
    ("(n + 10).reciprocal()", lambda: 1 / (N + 10)),
    ("n / 2", lambda: N / 2),
    ("x.equal(x)", lambda: True),
    ("x.equal(x[:1])", lambda: False),
    ("x.eq(x[:1])", lambda: [[True] * 3, [False] * 3]),
    ("x.clamp(min=0)", lambda: np.maximum(X, 0)),
    ("x.clamp(max=1)", lambda: np.minimum(X, 1)),
    ("x.round()", lambda: np.round(X)),
    ("x.to('cpu')", lambda: X),
    ("x.to('cpu', np.float64)", lambda: X),
    ("x.to(n)", lambda: X.astype(int)),
    ("x.long()", lambda: X.astype(int)),
    ("x.type(np.int64)", lambda: X.astype(int)),
    ("x.relu()", lambda: np.maximum(X, 0)),
    ("x.sigmoid()", lambda: 1 / (1 + np.exp(-X))),
    ("x.mm(x.T)", lambda: X @ X.T),
    ("x.mv(x[0])", lambda: X @ X[0]),
    ("x3.bmm(x3.mT)", lambda: X3 @ np.swapaxes(X3, 1, 2)),
    ("x.dim(), x.numel(), len(x)", lambda: (2, 6, 2)),
    ("x.maximum(p)", lambda: np.maximum(X, 2 * X)),
    ("p.minimum(p)", lambda: 2 * X),
    ("x.add(p)", lambda: 3 * X),
    ("x.clone().add_(p)", lambda: 3 * X),
    ("x.take(n[1] % 6)", lambda: [-2.5, -1.0, 0.5]),
]  # fmt: skip


def tensors(**options: Any) -> dict[str, Any]:
    found = {"x": tensor(X, **options), "x3": tensor(X3, **options), "ties": tensor(TIES, **options), "n": tensor(N)}
    return {**found, "p": nn.Parameter(2 * X), "b": nn.Buffer(X), "np": np}


def as_array(x: Any) -> Any:
    if isinstance(x, tuple):
        return [as_array(y) for y in x]
    return x.detach().numpy() if isinstance(x, ft.autograd.Tensor) else np.asarray(x)


@pytest.mark.parametrize(("call", "expected"), RESULTS, ids=[call for call, _ in RESULTS])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_call_of_torch_gives_its_result(call: str, expected: Callable[[], Any], requires_grad: bool) -> None:
    found, wanted = as_array(eval(call, tensors(requires_grad=requires_grad))), expected()
    wanted = [np.asarray(y) for y in wanted] if isinstance(wanted, tuple) else np.asarray(wanted)
    for a, b in zip(found, wanted, strict=True) if isinstance(wanted, list) else [(found, wanted)]:
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_a_traced_value_is_changed_in_place_by_a_tensor_that_is_captured() -> None:
    t = tensor([1.0, 2.0], requires_grad=True)
    ft.vmap(lambda x: (x * 1).add_(t))(np.ones((3, 2))).sum().backward()
    np.testing.assert_array_equal(t.grad.numpy(), [3.0, 3.0])


def test_the_gradient_of_an_extreme_goes_to_the_element_that_is_named() -> None:
    x = tensor(TIES[1], requires_grad=True)
    values, indices = x.max(dim=0)
    values.backward()
    expected = np.zeros(4)
    expected[int(indices)] = 1
    np.testing.assert_array_equal(x.grad.numpy(), expected)
    x.grad = None
    (x.sort(descending=True).values * np.arange(4.0)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, 3.0, 1.0, 2.0])


# Calls that would mean one thing to NumPy and another to torch, and others that do not exist here.
ERRORS = {
    "x.transpose(0, 1)": r"np\.swapaxes\(x, 0, 1\)",
    "x.transpose(-2, -1)": r"np\.swapaxes\(x, -2, -1\)",
    "x.repeat(2, 1)": r"x\.tile\(2, 1\)",
    "x[0].repeat(2)": r"np\.repeat\(x, repeats, axis\)",
    "x.std(0, True)": "unbiased= or ddof=",
    "x.var(False)": "unbiased= or ddof=",
    "x.max(keepdim=True)": "one axis, and keepdim=",
    "x.max(dim=(0, 1))": "one axis",
    "x.max(1)": r"x\.max\(dim=1\) for the one, and x\.max\(axis=1\)",
    "x.min(-1)": r"x\.min\(dim=-1\) for the one",
    "x.max(np.int64(0))[1]": r"x\.max\(dim=0\)",
    "x.sum(())": r"all axes in torch, and for none in NumPy.* axis=\(\)",
    "x.mean(())": "all axes in torch",
    "x.max(())": "all axes in torch",
    "x.std([])": "all axes in torch",
    "x.cumsum(1, True)": "keep all axes",
    "x.cumprod(1, keepdim=True)": "keep all axes",
    "x.squeeze(0)": r"axis 0 .* has size 2; write x\.squeeze\(dim=0\)",
    "x[None].squeeze((0, -1))": r"axis -1 .* has size 3",
    "x3.transpose((1, 2))": r"np\.swapaxes",
    "x.type()": r"x\.dtype",
    "x.view(dtype=np.int64)": r"\.astype",
    "x.resize_(3)": r"np\.resize",
    "x.sum(dim=0, axis=1)": "dim= and axis= are the same",
    "x3.flatten(3)": "out of bounds",
    "x3.flatten(2, 1)": "which are none",
    "x.expand(-1, 2, 3)": "an axis that an array of shape",
    "x3.t()": r"x\.mT",
    "x.to('cuda')": "memory of the host",
    "x.to(device='cuda:0')": "memory of the host",
    "x.view(np.float32)": r"\.astype",
    "x.permute(1, 0, dims=(0, 1))": "not both",
    "x.to(dytpe=float)": r"to\(\) got .* 'dytpe'",
    "x.max(bogus=1)": r"^max\(\) got",
    "p.mean(bogus=1)": r"^mean\(\) got",
    "x.cuda()": "default device",
    "(n + 10).reciprocal_()": r"x = x\.reciprocal\(",
    "x.std()": r"x\.std\(correction=1\) for the one, and x\.std\(ddof=0\)",
    "x.var(1)": r"x\.var\(1, correction=1\) for the one",
    "x.sort()": r"x\.sort\(dim=-1\) for the one, and x\.sort\(axis=-1\)",
    "x.nonzero()": r"as_tuple=False\) for the one",
    "x.put(n, x)": r"put_\(indices, values\) for the one",
}


@pytest.mark.parametrize("call", ERRORS)
def test_a_call_of_another_meaning_is_an_error_with_the_way_out(call: str) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError), match=ERRORS[call]) as error:
        eval(call, tensors())
    assert "  at " in "\n".join([str(error.value), *getattr(error.value, "__notes__", ())])


class Of(nn.Module):
    """A module that computes one thing of its argument, of its parameter or of what it computed from that."""

    def __init__(self, f: Callable[[Any], Any], of: str) -> None:
        self.w = nn.Parameter(X)
        self.f = f
        self.of = of

    def forward(self, x: Any) -> Any:
        return self.f({"argument": x, "parameter": self.w, "product": self.w * 1.0}[self.of])


RUN: dict[str, Callable[[nn.Module], Any]] = {
    "arrays": lambda m: m(X),
    "tensors": lambda m: m(tensor(X)),
    "compiled": lambda m: nn.jit(m)(X),
    "gradient": lambda m: nn.grad(lambda m: sum(1.0 * np.sum(x) for x in np.atleast_1d(m(X))))(m),
}
IN_FORWARD: dict[str, tuple[Callable[[Any], Any], str]] = {
    "size": (lambda x: x.size(0), r"x\.shape\[i\]"),
    "masked_fill": (lambda x: x.masked_fill(x > 0, 1.0), r"np\.where\(mask, value, x\)"),
    "softmax": (lambda x: x.softmax(-1), r"F\.softmax\(x, dim\)"),
    "chunk": (lambda x: x.chunk(2), "array_split"),
    "cuda": (lambda x: x.cuda(), "default device"),
    "unsqueeze": (lambda x: x.unsqueeze(0), "expand_dims"),
    "permute": (lambda x: x.permute(1, 0), r"np\.transpose\(x, axes\)"),
    "float": (lambda x: x.float(), r"astype\(np\.float32\)"),
    "to": (lambda x: x.to(np.float32), r"astype\(dtype\)"),
    "contiguous": (lambda x: x.contiguous(), "x as it is"),
    "detach": (lambda x: x.detach(), "stop_gradient"),
    "maximum": (lambda x: x.maximum(x * 2), r"np\.maximum\(x, y\)"),
    "exp_": (lambda x: (x * 1).exp_(), r"x = np\.exp\(x\)"),
    "dim": (lambda x: x.sum(dim=1), "axis="),
    "keepdim": (lambda x: x.mean(0, keepdim=True), "keepdims="),
    "keepdim by position": (lambda x: x.sum(0, True), "keepdims=True"),
    "view": (lambda x: x.view(-1), r"x\.reshape"),
    "flatten": (lambda x: x.flatten(1), r"reshape|order must be 'C'"),
    "transpose": (lambda x: x[None].transpose(1, 2), r"np\.swapaxes"),
}


@pytest.mark.parametrize("of", ["argument", "parameter", "product"])
@pytest.mark.parametrize("run", RUN)
@pytest.mark.parametrize("name", IN_FORWARD)
def test_forward_code_works_as_in_torch_or_says_what_to_write(name: str, run: str, of: str) -> None:
    f, words = IN_FORWARD[name]
    try:
        RUN[run](Of(f, of))
    except (TypeError, AttributeError, ValueError) as error:
        assert re.search(words, "\n".join([str(error), *error.__notes__]))  # noqa: PT017
    else:
        # Only what gives torch's result may pass.
        expected = as_array(f(tensor(X)))
        if run != "gradient":
            np.testing.assert_allclose(as_array(RUN[run](Of(f, of))), expected, rtol=1e-14)


@pytest.mark.parametrize("call", ["transpose", "repeat"])
def test_a_parameter_is_not_transposed_or_repeated_in_another_sense(call: str) -> None:
    for run in RUN.values():
        with pytest.raises(TypeError, match=f"{call}.* in torch, and"):
            run(Of(lambda x: getattr(x, call)(*{"transpose": (0, 1), "repeat": (2, 1)}[call]), "parameter"))


def test_what_is_named_in_its_place_exists() -> None:
    roots = {"np": np, "ft": ft, "nn": nn, "F": nn.functional, "scipy": importlib.import_module("scipy")}
    importlib.import_module("scipy.special")
    names = {name for text in INSTEAD.values() for name in re.findall(r"\b((?:np|ft|nn|F|scipy)(?:\.\w+)+)", text)}
    assert len(names) > 60
    for name in names:
        root, *rest = name.split(".")
        found = roots[root]
        for part in rest:
            found = getattr(found, part)


@tables.each(str, name=list(INSTEAD))
def test_a_name_of_torch_is_there_or_explained(name: str) -> None:
    found = [_error(tensor(X), name), _error(nn.Parameter(X, requires_grad=False), name)]
    ft.trace(lambda x: (found.append(_error(x, name)), x)[1])(X)
    assert all(INSTEAD[name] in text for text in found if text)


def test_methods_of_tensors_that_arrays_do_not_have_are_explained() -> None:
    own = ("atom", "builder", "line", "memory", "weak")
    names = [n for n in dir(Tracer) if n not in own and not n.startswith("_") and not hasattr(np.ndarray, n)]
    assert len(names) > 100
    assert [n for n in names if instead(n) is None] == []


@pytest.mark.parametrize("kind", ["tensor", "traced value"])
def test_wrong_arguments_are_told_by_the_name_of_the_method(kind: str) -> None:
    said: list[tuple[str, str]] = []

    def call_all(x: Any) -> Any:
        for name in dir(type(x)):
            if not name.startswith("_") and callable(getattr(type(x), name, None)):
                try:
                    getattr(x.copy(), name)(bogus=1)
                except Exception as error:
                    said.append((name, str(error)))
        return x

    if kind == "tensor":
        call_all(tensor(X))
    else:
        ft.trace(call_all)(X)
    assert len(said) > 100
    told = [(name, re.match(r"(\S+)\(\) (?:got an unexpected|missing)", text)) for name, text in said]
    assert [(name, m[1]) for name, m in told if m and not re.fullmatch(r"(Tensor\.|Tracer\.)?[a-z]\w*", m[1])] == []


def _error(x: Any, name: str) -> str:
    """The words of the error for an attribute that is not there."""
    try:
        getattr(x, name)
    except AttributeError as error:
        return str(error)
    return ""
