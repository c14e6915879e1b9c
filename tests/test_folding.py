"""Reductions by ufuncs as NumPy means them, also where NumPy's own loops are wrong on the CPU at hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from folding import Loop, of_method, wrong_by_numpy

import ftrans as ft
from ftrans import autograd as a

UFUNCS = (
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "fmax", "fmin", "logaddexp", "logaddexp2", "hypot",
    "arctan2", "power", "float_power", "copysign", "fmod", "remainder", "floor_divide", "heaviside", "nextafter",
)  # fmt: skip
X = np.array([2.0, 3.0, 2.0])
LONG = np.linspace(1.5, 0.5, 21)


@pytest.mark.parametrize("name", UFUNCS)
def test_numpy_reduces_as_a_loop_does(name: str) -> None:
    ufunc = getattr(np, name)
    for array in (X, LONG, X.astype(np.float32)):
        wrong = wrong_by_numpy(ufunc, array)
        if wrong is not None:
            pytest.skip(wrong)


class Forgetful:
    """A ufunc whose reductions are wrong in the way that those of NumPy are on some CPUs: the last operation counts."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self.__name__, self.identity, self._ufunc = ufunc.__name__, ufunc.identity, ufunc

    def __call__(self, x: Any, y: Any) -> Any:
        return self._ufunc(x, y)

    def reduce(self, array: Any, *args: Any, **options: Any) -> Any:
        return self._ufunc(array[0], array[-1])

    def reduceat(self, array: Any, indices: Any, axis: int = 0) -> Any:
        return self._ufunc(array[indices], array[-1])

    def accumulate(self, array: Any, axis: int = 0) -> Any:
        return self._ufunc.accumulate(array, axis)


def test_a_wrong_numpy_is_found_out_and_not_believed() -> None:
    for ufunc, expected in ((np.power, 64.0), (np.arctan2, np.arctan2(np.arctan2(2.0, 3.0), 2.0))):
        wrong = Forgetful(ufunc)
        assert wrong.reduce(X) != pytest.approx(expected)
        for method, args in (("reduce", ()), ("reduceat", ([0],))):
            np.testing.assert_allclose(of_method(wrong, method)(X, *args), np.reshape(expected, (1,) * len(args)))
        said = wrong_by_numpy(wrong, X)
        assert said is not None
        assert f"wrong on this CPU: {ufunc.__name__}.reduce gives" in said
        np.testing.assert_allclose(ft.trace(ufunc.reduce)(X)(X)[0], expected)
        np.testing.assert_allclose(ft.jit(lambda x, f=ufunc: f.reduceat(x, [0]))(X), [expected])


@pytest.mark.parametrize("method", ["reduce", "reduceat"])
def test_tensors_do_not_ask_numpy_where_it_may_be_wrong(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from ftrans.autograd import recording

    def run_numpy(function: Any, *rest: Any) -> Any:
        assert getattr(function, "__name__", None) != method, "NumPy was asked"
        return asked(function, *rest)

    asked = recording.run_numpy
    monkeypatch.setattr(recording, "run_numpy", run_numpy)
    for ufunc in (np.power, np.arctan2):
        args = ([0, 1],) if method == "reduceat" else ()
        for needs in (True, False):
            x = a.tensor(X, requires_grad=needs)
            y = getattr(ufunc, method)(x, *args)
            expected = of_method(ufunc, method)(X, *args)
            np.testing.assert_allclose(y.detach().numpy(), expected)
            out = a.zeros(*np.shape(expected))
            getattr(ufunc, method)(x.detach(), *args, out=out)
            np.testing.assert_allclose(out.numpy(), expected)
        x = a.tensor(X, requires_grad=True)
        getattr(ufunc, method)(x, *args).sum().backward()
        gradient = ft.grad(lambda x, f=ufunc, r=args: np.sum(getattr(f, method)(x, *r)))(X)
        np.testing.assert_allclose(x.grad.numpy(), gradient)


# Starts

ARRAYS = {
    "several": np.array([[-3.0, 2.0, -1.0], [0.0, 5.0, -2.0]]),
    "one": np.array([[-3.0, 2.0, -0.0]]),
    "none": np.zeros((0, 3)),
    "zeros": np.full((2, 3), -0.0),
}
MASK = np.array([[True, False, True]])
OPTIONS: list[dict[str, Any]] = [
    {}, {"axis": 1}, {"axis": None}, {"axis": ()}, {"axis": 0, "keepdims": True}, {"initial": None}, {"initial": 2},
    {"initial": -0.0}, {"axis": (), "initial": 2.5}, {"where": MASK}, {"where": MASK, "initial": 3},
    {"where": False, "initial": -1.5}, {"where": MASK, "axis": ()}, {"initial": None, "where": MASK},
]  # fmt: skip


def bits(x: Any) -> list[Any]:
    """Numbers to compare: NaN is NaN, and zeros have signs."""
    return [None if np.isnan(v) else (round(float(v), 12), bool(np.signbit(v))) for v in np.ravel(x)]


@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("name", UFUNCS)
def test_reductions_start_as_those_of_numpy(name: str, kind: str) -> None:
    ufunc, x = getattr(np, name), ARRAYS[kind]
    # Which of two zeros is larger is up to the CPU.
    options = [o for o in OPTIONS if ("max" not in name and "min" not in name) or str(o.get("initial")) != "-0.0"]
    with np.errstate(all="ignore"):
        for given in options:
            try:
                expected = Loop(ufunc).reduce(x, **given)
            except ValueError:
                with pytest.raises(ValueError, match="reduction operation"):
                    ft.trace(lambda x, o=given: ufunc.reduce(x, **o))(x)
                continue
            (found,) = ft.trace(lambda x, o=given: ufunc.reduce(x, **o))(x)(x)
            assert np.shape(found) == np.shape(expected), given
            assert bits(found) == bits(expected), given
        if len(x):
            for indices in ([0], [len(x) - 1, 0, 0]):
                (found,) = ft.trace(lambda x, i=indices: ufunc.reduceat(x, i))(x)(x)
                assert bits(found) == bits(Loop(ufunc).reduceat(x, indices))


def test_integers_start_as_those_of_numpy() -> None:
    for dtype in (np.int64, np.int8, np.uint8):
        for x in (np.array([[-3, 2, 7]]).astype(dtype), np.zeros((0, 3), dtype), np.array([[12, 8], [18, 6]], dtype)):
            for name in ("gcd", "bitwise_and", "bitwise_or", "bitwise_xor", "add", "multiply", "logical_xor", "hypot"):
                f = getattr(np, name).reduce
                (found,) = ft.trace(f)(x)(x)
                assert found.dtype == f(x).dtype
                np.testing.assert_allclose(found, f(x))


def test_the_derivative_of_a_length_is_the_sign() -> None:
    x = np.array([[-3.0, 2.0, 5.0]])
    for transformation in (lambda f: f, ft.jit):
        slope = transformation(ft.grad(lambda x: np.sum(np.hypot.reduce(x, axis=0))))
        np.testing.assert_array_equal(slope(x), np.sign(x))
    np.testing.assert_array_equal(ft.grad(lambda x: np.sum(np.hypot.reduce(x, initial=None)))(x), np.ones((1, 3)))
    np.testing.assert_allclose(
        ft.grad(lambda x: np.sum(np.hypot.reduce(x, axis=(), initial=4.0)))(x), x / np.hypot(x, 4)
    )


def test_differences_of_infinite_complex_numbers_are_not_lost() -> None:
    x = np.array([complex(np.inf, 1.0), complex(1.0, -0.0), 2j])
    (found,) = ft.trace(np.subtract.accumulate)(x)(x)
    np.testing.assert_array_equal(found, [complex(np.inf, 1.0), complex(np.inf, 1.0), complex(np.inf, -1.0)])
