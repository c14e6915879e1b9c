"""Series of pandas and arrays of xarray hold traced values, with their labels; other holders are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ftrans as ft

# xarray switches warnings off while it computes, which compiled code cannot follow where they are errors.
pytestmark = pytest.mark.filterwarnings("default")

X = np.array([1.0, 2.0, 3.0])
VALUES = [1.0, 2.0, 4.0]

# What is computed from x and data `s` with the labels 10, 20, 30, others `b` with 20, 30, 40; and the gradient.
IN_PANDAS: dict[str, tuple[Callable[..., Any], list[float]]] = {
    "left": (lambda x, s, b: np.sum(s * x), [1, 2, 4]),
    "right": (lambda x, s, b: (x * s).sum(), [1, 2, 4]),
    "ufunc": (lambda x, s, b: np.multiply(s, x).sum() + np.multiply(x, s).sum(), [2, 4, 8]),
    "number": (lambda x, s, b: (x[0] * s).mean(), [7 / 3, 0, 0]),
    "power": (lambda x, s, b: (x[1] ** s).sum() + np.exp(0 * s * x).sum(), [0, 1 + 4 + 32, 0]),
    "residuals": (lambda x, s, b: ((s - x[0] * np.arange(3.0)) ** 2).sum(), [-10, 0, 0]),
    "aligned": (lambda x, s, b: ((x * s) * b).sum(), [0, 10, 28]),
    "by label": (lambda x, s, b: (x * s).loc[20], [0, 2, 0]),
    "by place": (lambda x, s, b: (x * s).iloc[:2].sum(), [1, 2, 0]),
    "mask": (lambda x, s, b: (x * s)[s > 1].sum(), [0, 2, 4]),
    "traced mask": (lambda x, s, b: (x * s)[x * s > 3].sum(), [0, 2, 4]),
    "where": (lambda x, s, b: (x * s).where(s > 1, 0.0).sum(), [0, 2, 4]),
    "differences": (lambda x, s, b: ((x * s).diff() ** 2).sum(), [-6, -20, 64]),
    "shifted": (lambda x, s, b: (x * s).shift(1).sum(), [1, 2, 0]),
    "sums": (lambda x, s, b: (x * s).cumsum().iloc[1], [1, 2, 0]),
    "filled": (lambda x, s, b: (x * b.where(b > 6)).fillna(x[0]).sum(), [1, 7, 11]),
    "clipped": (lambda x, s, b: (x * s).clip(0, 5).sum(), [1, 2, 0]),
    "extremes": (lambda x, s, b: (x * s).max() - (x * s).min() + (x * s).median(), [-1, 2, 4]),
    "dot": (lambda x, s, b: (x * s).dot(s) + s.dot(x) + x @ s, [3, 8, 24]),
    "numbers": (lambda x, s, b: np.sum((x * s).to_numpy() * np.asarray(s)), [1, 4, 16]),
    "missing": (lambda x, s, b: (s.where(s != 2) * x).sum(), [1, 0, 4]),
    "nullable": (lambda x, s, b: (s.astype("Float64") * x).sum() + (x * s.astype("Int64")).sum(), [2, 4, 8]),
    "spread": (lambda x, s, b: (x * s).var(), [-14 / 3, -10 / 3, 76 / 3]),
    "frame": (lambda x, s, b: (s.to_frame("a") * x[0]).assign(b=s * x)["b"].sum(), [1, 2, 4]),
    "frames": (lambda x, s, b: (s.to_frame().T * x + np.outer([1], x)).sum(axis=1).iloc[0], [2, 3, 5]),
    "groups": (lambda x, s, b: (x * s).groupby([0, 0, 1]).sum().iloc[0], [1, 2, 0]),
}


@pytest.mark.parametrize("name", IN_PANDAS)
def test_series_with_traced_values(name: str) -> None:
    pandas = pytest.importorskip("pandas")
    s = pandas.Series(VALUES, index=[10, 20, 30], name="s")
    b = pandas.Series([5.0, 7.0, 11.0], index=[20, 30, 40] if name == "aligned" else [10, 20, 30])
    f, expected = IN_PANDAS[name]
    # Compiled, pandas cannot join labels: it collects warnings meanwhile, and XLA gives none.
    for compiled in (False, name != "aligned"):
        gradient = ft.grad(lambda x: f(x, s, b))
        np.testing.assert_allclose((ft.jit(gradient) if compiled else gradient)(X), expected, rtol=1e-12)
    np.testing.assert_allclose(ft.grad(f)(X, s, b), expected, rtol=1e-12)


def test_series_are_containers() -> None:
    pandas = pytest.importorskip("pandas")
    s = pandas.Series({"a": 2.0, "b": 3.0}, name="parameters")
    for transformed in (ft.grad, lambda f: ft.jit(ft.grad(f))):
        found = transformed(lambda p: p["a"] ** 2 * p["b"] + p.b)(s)
        assert found.equals(pandas.Series({"a": 12.0, "b": 5.0}))
        assert found.name == "parameters"
    assert ft.grad(lambda p: (p * p).sum())(s.astype("float32")).dtype == np.float32
    assert str(ft.grad(lambda p: (p * p).sum())(s.astype("Float64")).dtype) == "Float64"
    assert ft.hessian(lambda p: (p * p).sum())(s).tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert ft.jvp(lambda p: p * p, (s,), (s,))[1].equals(2 * s * s)
    doubled = ft.jit(lambda p: 2 * p)
    assert doubled(s).equals(2 * s)
    assert doubled(s.rename(index={"a": "c"})).index.tolist() == ["c", "b"]
    categories = pandas.Series(["u", "v"]).astype("category")
    _, aux = ft.grad(lambda p: ((p * s).sum(), (categories, p * s)), has_aux=True)(np.ones(2))
    assert aux[0].dtype == categories.dtype
    assert aux[1].equals(s.rename("parameters"))


def test_mistakes_with_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    s, text = pandas.Series(VALUES), pandas.Series(["a", "b", "c"])
    frame = pandas.DataFrame({"a": VALUES, "b": VALUES})
    for call, message in (
        (lambda: ft.grad(lambda p: 1.0)(text), "array of dtype object"),
        (lambda: ft.grad(lambda p: 1.0)(frame), "a DataFrame, which has labels"),
        (lambda: ft.vmap(lambda p: 2 * p)(s), r"cannot be mapped along an axis.*\.to_numpy\(\)"),
        (lambda: ft.grad(lambda x: (x * s).skew())(X), r"skew of a Series.*x\.to_numpy\(\)"),
        (lambda: ft.grad(lambda x: np.sum(np.where(s > 1, x, 0)))(X), r"labels.*\.to_numpy\(\)"),
        (lambda: ft.grad(lambda x: (s * np.outer(x, x)).sum())(X), r"is no column.*\.to_numpy\(\)"),
        (lambda: ft.grad(lambda x: (frame * x).sum().sum())(X), "does not fit.*columns one by one"),
        (lambda: ft.grad(lambda x: pandas.Series(x, index=s.index).mean())(X), "from numbers.*its operators"),
    ):
        with pytest.raises((TypeError, ValueError), match=f"(?s){message}.*test_holders.py"):
            call()


IN_XARRAY: dict[str, tuple[Callable[..., Any], list[float]]] = {
    "left": (lambda x, a, b: np.sum(a * x), [1, 2, 4]),
    "right": (lambda x, a, b: (x * a).sum(), [1, 2, 4]),
    "ufunc": (lambda x, a, b: np.multiply(x, a).sum() + np.multiply(a, x).sum(), [2, 4, 8]),
    "number": (lambda x, a, b: (x[0] * a).mean("t"), [7 / 3, 0, 0]),
    "aligned": (lambda x, a, b: ((x * a) * b).sum(), [0, 10, 28]),
    "by label": (lambda x, a, b: (x * a).sel(t=20), [0, 2, 0]),
    "differences": (lambda x, a, b: ((x * a).diff("t") ** 2).sum(), [-6, -20, 64]),
    "where": (lambda x, a, b: (x * a).where(a > 1, 0).sum(), [0, 2, 4]),
    "rolling": (lambda x, a, b: (x * a).rolling(t=2).mean()[2], [0, 1, 2]),
    "weighted": (lambda x, a, b: (x * a).weighted(a).mean(), [1 / 7, 4 / 7, 16 / 7]),
    "numbers": (lambda x, a, b: np.sum((x * a).values) + (x * a).sum().item(), [2, 4, 8]),
}


@pytest.mark.parametrize("name", IN_XARRAY)
def test_data_arrays_with_traced_values(name: str) -> None:
    xarray = pytest.importorskip("xarray")
    a = xarray.DataArray(VALUES, dims="t", coords={"t": [10, 20, 30]})
    b = xarray.DataArray([5.0, 7.0, 11.0], dims="t", coords={"t": [20, 30, 40]})
    f, expected = IN_XARRAY[name]
    for transformed in (ft.grad(lambda x: f(x, a, b)), ft.jit(ft.grad(lambda x: f(x, a, b)))):
        np.testing.assert_allclose(transformed(X), expected, rtol=1e-12)


def test_data_arrays_are_containers() -> None:
    xarray = pytest.importorskip("xarray")
    a = xarray.DataArray(VALUES, dims="t", coords={"t": [10, 20, 30]}, name="a")
    for transformed in (ft.grad, lambda f: ft.jit(ft.grad(f))):
        assert transformed(lambda p: (p * p).sum())(a).identical(2 * a)
    value, slope = ft.value_and_grad(lambda p: (p * p).sum())(a)
    assert (float(value), slope.name) == (21.0, "a")
    assert ft.jit(lambda p: 2 * p)(a).identical(2 * a)
    assert ft.jacobian(lambda p: p * p)(a).tolist() == np.diag(2 * np.array(VALUES)).tolist()
    with pytest.raises(TypeError, match="cannot be mapped along an axis"):
        ft.vmap(lambda p: 2 * p)(a)


def test_quantities_are_refused() -> None:
    units = pytest.importorskip("astropy.units")
    q = VALUES * units.m
    for call, message in (
        (lambda: ft.grad(lambda x: np.sum(x * q))(X), r"a Quantity has a unit.*q\.to_value\(unit\)"),
        (lambda: ft.grad(lambda x: np.sum(q * x))(X), r"a Quantity has a unit.*q\.to_value\(unit\)"),
        (lambda: ft.grad(np.sum)(q), r"a Quantity, which has a unit.*q\.to_value\(unit\)"),
        (lambda: ft.grad(lambda x: (x * units.m).value.sum())(X), r"a Quantity holds numbers.*one system of units"),
        (lambda: ft.grad(lambda x: (x << units.m).value.sum())(X), r"a Quantity holds numbers.*one system of units"),
    ):
        with pytest.raises(TypeError, match=f"(?s){message}.*test_holders.py"):
            call()
    assert ft.grad(lambda x: units.km.to(units.m, x * x))(2.0) == 4000.0
    assert ft.grad(lambda x: np.sum(q.to_value(units.cm) * x))(X).tolist() == [100.0, 200.0, 400.0]


class DataArray:
    """What a DataArray is to this library, where xarray is not installed: elements with the name of an axis."""

    __module__ = "xarray.core.dataarray"
    __array_ufunc__ = None

    def __init__(self, data: Any, dims: tuple[str, ...] = ("t",), name: str = "a") -> None:
        self.data, self.dims, self.name = data, dims, name
        self.shape, self.ndim, self.coords = np.shape(data), np.ndim(data), self

    def copy(self, data: Any) -> DataArray:
        return DataArray(data, self.dims, self.name)

    def to_dataset(self) -> DataArray:
        return self

    def identical(self, other: DataArray) -> bool:
        return (self.dims, self.name) == (other.dims, other.name)

    def __mul__(self, other: Any) -> DataArray:
        return self.copy(self.data * (other.data if isinstance(other, DataArray) else other))

    __rmul__ = __mul__

    def sum(self) -> DataArray:
        return DataArray(self.data.sum(), (), self.name)


def test_holders_by_the_names_of_their_classes() -> None:
    a = DataArray(np.array(VALUES))
    for transformed in (ft.grad(lambda x: (x * a * x).sum()), ft.jit(ft.grad(lambda x: (a * x * x).sum()))):
        assert transformed(X).tolist() == [2.0, 8.0, 24.0]
    for function in (ft.grad(lambda p: (p * p).sum()), ft.jit(ft.grad(lambda p: (p * p).sum()))):
        slope = function(a)
        assert slope.data.tolist() == [2.0, 4.0, 8.0]
        assert slope.dims == a.dims
    doubled = ft.jit(lambda p: 2 * p)
    assert [doubled(x).name for x in (a, a, DataArray(np.array(VALUES), name="b"))] == ["a", "a", "b"]
    assert ft.jacobian(lambda p: p * p)(a).shape == (3, 3)
    with pytest.raises(TypeError, match="cannot be mapped along an axis"):
        ft.vmap(lambda p: 2 * p)(a)
