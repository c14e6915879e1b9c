"""Rows of `numpy`: products of arrays, einsum in all its forms, convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
from function_rows import row
from sampling import c128, f32, normal

BOTH: dict[str, Any] = {"dtypes": (f32, c128)}

# Matrix products

row("numpy.matmul", normal((2, 3)), normal((3, 2)), **BOTH)
row("numpy.matmul", normal((2, 1, 2, 3)), normal((2, 3, 1)))
row("numpy.matmul", normal((3,)), normal((2, 3, 2)))
row("numpy.matmul", normal((2, 3)), normal((3,)), call=lambda f, x, y: f(x, y, out=np.zeros_like(y[:2])), note="out=")
row("numpy.linalg.matmul", normal((2, 3)), normal((3, 2)), **BOTH)
row("numpy.dot", normal((3,)), normal((3,)), **BOTH)
row("numpy.dot", normal((2, 2, 3)), normal((2, 3, 1)))
row("numpy.dot", normal((2, 3)), normal(()))
row("numpy.vdot", normal((2, 2)), normal((2, 2)), **BOTH)
row("numpy.inner", normal((2, 3)), normal((2, 3)), **BOTH)
row("numpy.outer", normal((2, 2)), normal((3,)), **BOTH)
row("numpy.linalg.outer", normal((2,)), normal((3,)), **BOTH)
row("numpy.tensordot", normal((2, 3, 2)), normal((2, 3)), axes=([1, 0], [1, 0]), **BOTH)
row("numpy.tensordot", normal((2, 3)), normal((3, 2)), axes=1)
row("numpy.tensordot", normal((2,)), normal((3,)), axes=0)
row("numpy.linalg.tensordot", normal((2, 3)), normal((2, 3)), axes=2, **BOTH)
row("numpy.vecdot", normal((2, 3)), normal((3,)), **BOTH)
row("numpy.vecdot", normal((3, 2)), normal((3, 2)), axis=0)
row("numpy.vecdot", normal((3, 2)), normal((2, 3)), axes=[0, -1])
row("numpy.vecdot", normal((3, 2, 2)), normal((2, 2, 3)), axes=[0, -1, 1], keepdims=True)
row("numpy.linalg.vecdot", normal((2, 3)), normal((2, 3)), axis=0, **BOTH)
row("numpy.matvec", normal((2, 3, 2)), normal((2,)), **BOTH)
row("numpy.vecmat", normal((2, 3)), normal((2, 3, 2)), **BOTH)
row("numpy.matvec", normal((2, 3, 2)), normal((3, 2)), axes=[(2, 1), 0, 0])
row("numpy.vecmat", normal((3, 2)), normal((2, 3, 2)), axes=[0, (1, 0), 0])
row("numpy.kron", normal((2, 2)), normal((1, 3)), **BOTH)
row("numpy.kron", normal((2,)), normal((2, 2)))
row("numpy.cross", normal((2, 3)), normal((3,)), **BOTH)
row("numpy.cross", normal((3, 2)), normal((3, 2)), axis=0)
row("numpy.linalg.cross", normal((2, 3)), normal((2, 3)), **BOTH)
row("numpy.trace", normal((2, 3, 3)), offset=1, axis1=1, axis2=2, **BOTH)
row("numpy.trace", normal((2, 3)))
row("numpy.linalg.trace", normal((2, 3, 3)), offset=-1, **BOTH)
row("numpy.vander", normal((3,)), N=4, **BOTH)
row("numpy.vander", normal((3,)), increasing=True)

# einsum


def einsum(subscripts: str) -> Any:
    """How einsum is called with subscripts."""
    return lambda f, *operands: f(subscripts, *operands)


row("numpy.einsum", normal((2, 3)), normal((3, 2)), call=einsum("ij,jk->ik"), note="ij,jk->ik", **BOTH)
row("numpy.einsum", normal((2, 3)), normal((3, 2)), call=einsum("ij,jk"), note="implicit result")
row("numpy.einsum", normal((2, 3)), call=einsum("ba"), note="implicit transpose")
row("numpy.einsum", normal((3, 3)), call=einsum("ii"), note="trace")
row("numpy.einsum", normal((3, 3)), call=einsum("ii->i"), note="diagonal", **BOTH)
row("numpy.einsum", normal((2, 3)), call=einsum("ij->j"), note="a sum")
row("numpy.einsum", normal((2, 3)), call=einsum("ij->"), note="the sum")
row("numpy.einsum", normal((2, 2, 2)), normal((2,)), call=einsum("iij,j->ij"), note="a repeated index")
row("numpy.einsum", normal((2, 3, 2)), normal((2, 3)), call=einsum("...ij,ji->..."), note="ellipsis")
row("numpy.einsum", normal((2, 1, 3)), normal((2, 3)), call=einsum("...j,...j"), note="ellipsis, implicit")
row("numpy.einsum", normal((2,)), normal((3,)), call=einsum("i, j -> i j"), note="spaces")
row("numpy.einsum", normal((2, 2)), normal((2, 2)), normal((2, 2)), call=einsum("ij,jk,kl->il"), optimize=True)
row("numpy.einsum", normal((2, 2)), normal((2, 2)), normal((2, 2)), call=einsum("ij,jk,kl"), optimize="greedy")
row("numpy.einsum", normal((2, 2)), normal((2, 2)), call=einsum("ij,jk"), optimize=["einsum_path", (0, 1)], note="path")
row("numpy.einsum", normal((2, 3)), normal((3, 2)), call=lambda f, x, y: f(x, [0, 1], y, [1, 2], [2, 0]), note="lists")
row("numpy.einsum", normal((2, 3)), normal((3,)), call=lambda f, x, y: f(x, [0, 1], y, [1]), note="lists, implicit")
row(
    "numpy.einsum",
    normal((2, 3)),
    normal((3,)),
    call=lambda f, x, y: f(x, [..., 1], y, [1], [...]),
    note="lists, ellipsis",
)
row("numpy.einsum", normal((2, 3)), call=lambda f, x: f("ij->ji", x, out=np.zeros_like(x.T)), note="out=")
row("numpy.einsum", normal((2, 3), f32), call=lambda f, x: f("ij->j", x, dtype=np.float64), note="dtype=", dtypes=())

# Convolutions

for mode in ("full", "same", "valid"):
    row("numpy.convolve", normal((5,)), normal((3,)), mode=mode, **BOTH)
    row("numpy.convolve", normal((2,)), normal((4,)), mode=mode)
    row("numpy.correlate", normal((5,)), normal((3,)), mode=mode, **BOTH)
    row("numpy.correlate", normal((2,)), normal((4,)), mode=mode)
