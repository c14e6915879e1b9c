"""Arrays of libraries that share memory by DLPack are arguments of transformations, which give the same kind back."""

from __future__ import annotations

from typing import Any

import array_api_strict as xp
import numpy as np
import pytest

import ftrans as ft

X = np.array([1.0, 2.0, 3.0])
A = xp.asarray(X.copy())


class Block:
    """An array of another library, without operators, on the host or a GPU: what cupy's are to this library."""

    def __init__(self, memory: np.ndarray[Any, Any], device: int = 1) -> None:
        self.memory, self.device = memory, device

    shape = property(lambda self: self.memory.shape)
    dtype = property(lambda self: self.memory.dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self.memory.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


def from_dlpack(x: Any) -> Block:
    """What the library of blocks, which is this module, calls it."""
    return Block(np.from_dlpack(x))


def cubes(x: Any) -> Any:
    return np.sum(x**3)


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="NumPy cannot hand on what came by DLPack")
@pytest.mark.parametrize("name", ["strict", "block"])
def test_arrays_of_other_libraries(name: str) -> None:
    make: Any = xp.asarray if name == "strict" else Block
    kind = type(make(X.copy()))

    def numbers(x: Any) -> Any:
        assert type(x) is kind
        return np.from_dlpack(x).tolist()

    x = make(X.copy())
    assert numbers(ft.grad(cubes)(x)) == (3 * X**2).tolist()
    value, slope = ft.value_and_grad(cubes)(x)
    assert (numbers(value), numbers(slope)) == (36.0, (3 * X**2).tolist())
    assert numbers(ft.hessian(cubes)(x)) == np.diag(6 * X).tolist()
    assert numbers(ft.jit(cubes)(x)) == 36.0
    assert numbers(ft.vmap(lambda x: x if x > 2 else 2 * x)(x)) == [2.0, 4.0, 3.0]
    assert numbers(ft.vjp(lambda x: x**2, x)[1](x)[0]) == (2 * X**2).tolist()
    assert numbers(ft.grad(lambda p, y: np.sum(p["a"] * y))({"a": X}, x)["a"]) == X.tolist()
    single = make(X.astype(np.float32))
    assert np.from_dlpack(ft.grad(cubes)(single)).dtype == np.float32


def test_mistakes_with_arrays_of_other_libraries() -> None:
    for call, message in (
        (lambda: ft.grad(cubes)(Block(X, device=2)), "a Block on the device 2 cannot become an array of JAX.* on cpu"),
        (
            lambda: ft.grad(lambda x, y: np.sum(x * y))(A, Block(X)),
            "of array_api_strict and test_foreign_arrays",
        ),
        (lambda: ft.grad(lambda x: Block(X))(X), "returned Block.*a Block is an array of.*np.from_dlpack"),
        (lambda: ft.root(lambda y, a: y - a, Block(X), X), "a Block, which is an array of.*np.from_dlpack"),
        (lambda: ft.sparse_jacobian(np.sin)(A), "a Array is an array of array_api_strict.*np.from_dlpack"),
    ):
        with pytest.raises(TypeError, match=f"(?s){message}.*test_foreign_arrays.py"):
            call()
