"""What the tests of tensors share: gradients by tensors, held against those of the same code by `ftrans.grad`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from checks import assert_close

import ftrans as ft
from ftrans.autograd import Tensor
from ftrans.core.types import is_complex, is_inexact, type_of
from ftrans.numpy.promotion import asarray

a = ft.autograd

Function = Callable[..., Any]


def leaf(x: Any) -> Tensor:
    """A tensor that asks for a gradient where its dtype can have one."""
    return a.tensor(x, requires_grad=is_inexact(np.asarray(x).dtype))


def value(x: Any) -> Any:
    """What a tensor holds, as NumPy gives it; anything else as it is."""
    return np.asarray(x.array)[()] if isinstance(x, Tensor) else x


def copied(x: Any) -> Any:
    """A copy of an array, or the number itself."""
    return np.array(x) if isinstance(x, np.ndarray) else x


def like(rng: np.random.Generator, x: Any) -> Any:
    """Random numbers in the shape and dtype of `x`."""
    x = np.asarray(x)
    found = rng.normal(size=x.shape)
    return np.asarray(found + 1j * rng.normal(size=x.shape) if is_complex(x.dtype) else found, x.dtype)[()]


def flat(result: Any) -> list[Any]:
    """The arrays in a nested result."""
    if isinstance(result, list | tuple):
        return [leaf for item in result for leaf in flat(item)]
    return [result]


def check_gradients(
    f: Function,
    *args: Any,
    order: int = 1,
    tolerance: float | None = None,
    plain: Sequence[int] = (),
    retraced: Function | None = None,
) -> None:
    """Assert that a function gives the same values and derivatives on tensors as on arrays.

    Args:
        f: a function of arrays, of which it may change its arguments.
        args: the arrays.
        order: 2 compares second derivatives as well.
        tolerance: how far both may differ, as for `assert_close`.
        plain: which of the arrays become tensors that ask for no gradient.
        retraced: the function for the reference, where that is written differently.
    """
    rng = np.random.default_rng(0)
    expected = [np.asarray(value(x))[()] for x in flat(f(*map(copied, args)))]
    leaves = [a.tensor(x) if i in plain else leaf(x) for i, x in enumerate(args)]
    outs = flat(f(*(x.clone() for x in leaves)))
    assert len(outs) == len(expected)
    for y, e in zip(outs, expected, strict=True):
        assert_close(np.asarray(value(y))[()], e, tolerance)
    active = [i for i, x in enumerate(leaves) if x.requires_grad]
    chosen = [j for j, e in enumerate(expected) if is_inexact(e.dtype)]
    cotangents = [like(rng, expected[j]) for j in chosen]
    vectors = [like(rng, args[i]) for i in active]

    def traced(values: Sequence[Any]) -> list[Any]:
        given = [asarray(np.array(x)) for x in args]
        for i, x in zip(active, values, strict=True):
            given[i] = x * 1
        results = flat((retraced or f)(*given))
        return [asarray(results[j]) for j in chosen]

    def pulled(values: Sequence[Any], cts: Sequence[Any]) -> Any:
        return ft.vjp(traced, values)[1](cts)[0]

    point = [np.array(args[i]) for i in active]
    if order == 1:
        found = _pull([outs[j] for j in chosen], cotangents, [leaves[i] for i in active], False)
        assert_gradients(found, pulled(point, cotangents), tolerance)
        return
    firsts, pull = ft.vjp(pulled, point, cotangents)
    seconds = [x for part in pull(vectors) for x in part]
    given = [a.tensor(ct, requires_grad=True) for ct in cotangents]
    found = _pull([outs[j] for j in chosen], given, [leaves[i] for i in active], True)
    assert_gradients(found, firsts, tolerance)
    inputs = [*(leaves[i] for i in active), *given]
    assert_gradients(_pull(found, vectors, inputs, False), seconds, tolerance)


def _pull(outs: Sequence[Any], cotangents: Sequence[Any], inputs: Sequence[Tensor], create_graph: bool) -> list[Any]:
    roots = [(y, ct) for y, ct in zip(outs, cotangents, strict=True) if isinstance(y, Tensor) and y.requires_grad]
    if not roots:
        return [a.zeros_like(x) for x in inputs]
    return list(
        a.grad(
            [y for y, _ in roots],
            inputs,
            [ct for _, ct in roots],
            create_graph=create_graph,
            materialize_grads=True,
        )
    )


def assert_gradients(found: Sequence[Any], expected: Sequence[Any], tolerance: float | None = None) -> None:
    """Assert that tensors hold the expected arrays, types included."""
    assert len(found) == len(expected)
    for x, e in zip(found, expected, strict=True):
        assert isinstance(x, Tensor)
        assert x.array_type is type_of(e)
        assert_close(value(x), np.asarray(e)[()], tolerance)
