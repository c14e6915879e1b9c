"""Rows of `numpy`: shapes, order of elements, joining and splitting, creation."""

from __future__ import annotations

import functools
from typing import Any

import function_rows
import numpy as np
from function_rows import of_list
from sampling import c128, distinct, f32, f64, normal, uniform

# Shapes have nothing to do with dtypes, so that complex numbers are tried everywhere.
row = functools.partial(function_rows.row, dtypes=(f32, c128))

# Shapes

row("numpy.reshape", normal((2, 3)), call=lambda f, x: f(x, (3, -1)))
row("numpy.reshape", normal((2, 3)), call=lambda f, x: f(x, (3, 2), order="F"), note="order=")
row("numpy.ravel", normal((2, 3)), call=lambda f, x: f(x, "F"), note="order=")
row("numpy.transpose", normal((2, 3, 1)), axes=(1, 2, 0))
row("numpy.transpose", normal((2, 3)))
row("numpy.matrix_transpose", normal((2, 3, 1)))
row("numpy.linalg.matrix_transpose", normal((2, 3)))
row("numpy.swapaxes", normal((2, 3, 1)), axis1=0, axis2=1)
row("numpy.moveaxis", normal((2, 3, 1)), source=(0, 1), destination=(-1, 0))
row("numpy.moveaxis", normal((2, 3, 1)), source=range(2), destination=range(-2, 0), note="ranges")
row("numpy.rollaxis", normal((2, 3, 1)), axis=2, start=1)
row("numpy.squeeze", normal((2, 1, 1)), axis=1)
row("numpy.expand_dims", normal((2, 3)), axis=(0, -1))
row("numpy.atleast_1d", normal(()), normal((2,)))
row("numpy.atleast_2d", normal((3,)))
row("numpy.atleast_3d", normal((2, 3)))
row("numpy.broadcast_to", normal((3,)), shape=(2, 3))
row("numpy.broadcast_arrays", normal((3,)), normal((2, 1)))
row("numpy.flip", normal((2, 3)), axis=1)
row("numpy.flip", normal((2, 3)))
row("numpy.fliplr", normal((2, 3)))
row("numpy.flipud", normal((2, 3)))
for k in (1, 2, 3):
    row("numpy.rot90", normal((2, 3)), k=k)
row("numpy.rot90", normal((2, 3, 2)), axes=(2, 0))
row("numpy.roll", normal((2, 3)), shift=2)
row("numpy.roll", normal((2, 3)), shift=(1, -1), axis=(0, 1))
row("numpy.tril", normal((3, 3)), k=1)
row("numpy.triu", normal((2, 3, 3)), k=-1)
row("numpy.diag", normal((3,)), k=1)
row("numpy.diag", normal((3, 4)), k=-1)
row("numpy.diagflat", normal((2, 2)), k=1)
row("numpy.diagonal", normal((2, 3, 3)), offset=1, axis1=2, axis2=1)
row("numpy.linalg.diagonal", normal((2, 3, 3)), offset=-1)
row("numpy.astype", normal((2, 3)), call=lambda f, x: f(x, c128), note="to complex128", dtypes=())
row("numpy.astype", normal((2, 3), f32), call=lambda f, x: f(x, f64), note="to float64", dtypes=())

# Joining and splitting

row("numpy.concatenate", normal((2, 3)), normal((1, 3)), call=of_list)
row("numpy.concatenate", normal((2, 3)), normal((3,), f32), call=lambda f, *xs: f(xs, axis=None), dtypes=())
row("numpy.concatenate", normal((2,)), normal((2,)), call=lambda f, *xs: f(xs, dtype=np.complex128), dtypes=())
row("numpy.stack", normal((2, 3)), normal((2, 3)), call=of_list, axis=-1)
row("numpy.vstack", normal((3,)), normal((2, 3)), call=of_list)
row("numpy.hstack", normal((2, 3)), normal((2, 1)), call=of_list)
row("numpy.dstack", normal((2, 3)), normal((2, 3, 2)), call=of_list)
row("numpy.column_stack", normal((2,)), normal((2, 2)), call=of_list)
row("numpy.append", normal((2, 3)), normal((2, 1)), axis=1)
row("numpy.append", normal((2, 2)), normal((3,)))
row("numpy.block", normal((2, 2)), normal((2, 1)), normal((1, 3)), call=lambda f, a, b, c: f([[a, b], [c]]))
row("numpy.r_", normal((2,)), normal(()), call=lambda f, x, y: f[x, 0:3, y, x])
row("numpy.c_", normal((2,)), normal((2,)), call=lambda f, x, y: f[x, y])
row("numpy.split", normal((4, 2)), indices_or_sections=2)
row("numpy.split", normal((2, 5)), indices_or_sections=[1, 3], axis=1)
row("numpy.array_split", normal((5,)), indices_or_sections=3)
row("numpy.hsplit", normal((2, 4)), indices_or_sections=2)
row("numpy.vsplit", normal((4, 2)), indices_or_sections=[1])
row("numpy.dsplit", normal((1, 2, 4)), indices_or_sections=2)
row("numpy.unstack", normal((2, 3)), call=lambda f, x: f(x, axis=1))
row("numpy.tile", normal((2, 2)), reps=(2, 1, 2))
row("numpy.repeat", normal((2, 2)), repeats=[1, 3], axis=1)
row("numpy.repeat", normal((2, 2)), repeats=2)
row("numpy.resize", normal((2, 2)), new_shape=(3, 3))
row("numpy.insert", normal((4,)), normal((2,)), call=lambda f, x, v: f(x, [1, 3], v))
row("numpy.insert", normal((2, 3)), normal((2,)), call=lambda f, x, v: f(x, 1, v, axis=1), note="axis=")
row("numpy.delete", normal((2, 3)), obj=1, axis=1)
row("numpy.delete", normal((5,)), obj=[0, 3])
row("numpy.trim_zeros", normal((2,)), call=lambda f, x: f(np.concatenate([[0.0], x, [0.0, 0.0]])), asks=True)
row("numpy.meshgrid", normal((2,)), normal((3,)))
row("numpy.meshgrid", normal((2,)), normal((3,)), indexing="ij", sparse=True)
row("numpy.ix_", normal((2,)), call=lambda f, x: x[f([0, 1, 0])] * 2, note="an index")

PAD = {
    "mean": {"stat_length": 2},
    "maximum": {},
    "minimum": {"stat_length": ((1, 2),)},
    "linear_ramp": {"end_values": 3},
}
row("numpy.pad", normal((2, 3)), pad_width=((1, 0), (2, 1)), constant_values=2.0)
for mode in ("constant", "edge", "reflect", "symmetric", "wrap", *PAD):
    row("numpy.pad", uniform(1, 2, (4,)), pad_width=(2, 3), mode=mode, **PAD.get(mode, {}))
row("numpy.pad", normal((3,)), pad_width=2, mode="reflect", reflect_type="odd")
row("numpy.pad", normal((3,)), pad_width=2, mode="symmetric", reflect_type="odd")
row("numpy.pad", normal((3,)), pad_width=2, mode="empty", call=lambda f, x: f(x)[2:-2])
row("numpy.pad", distinct((5,)), pad_width=2, mode="median")
row(
    "numpy.pad", normal((2, 3)), normal((2,)), call=lambda f, x, v: f(x, 1, "linear_ramp", end_values=v), note="in ends"
)
row("numpy.pad", normal((2, 3)), normal((2,)), call=lambda f, x, v: f(x, 1, constant_values=v), note="in constants")

# Creation

row("numpy.array", normal((2,)), call=lambda f, x: f([[np.cos(x[0]), 1.0], [x[1], -x[0]]]), note="of traced scalars")
row("numpy.asarray", normal((2,)), call=lambda f, x: f([x[0], 2.0, x[1]]), note="of traced scalars")
for name in ("asanyarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite", "require", "copy"):
    row(f"numpy.{name}", normal((2, 3)))
row("numpy.full", normal(()), call=lambda f, x: f((2, 3), x))
row("ftrans.numpy.full", normal((3,)), call=lambda f, x: f((2, 3), x), note="through ftrans.numpy")
row("numpy.full_like", normal((2, 3)), normal(()))
for name in ("zeros", "ones", "empty"):
    row(f"ftrans.numpy.{name}", normal((3,)), call=lambda f, x: _filled(f, x), note="and assigned to")
row("numpy.linspace", normal(()), normal(()), num=5)
row("numpy.linspace", normal((2,)), normal((2,)), num=4, endpoint=False, retstep=True, axis=1)
row("numpy.logspace", normal(()), normal(()), num=4, base=2.0)
row("numpy.geomspace", uniform(1, 2, ()), uniform(5, 6, ()), num=4)
row("numpy.geomspace", uniform(-2, -1, (2,)), uniform(-6, -5, (2,)), num=3, axis=-1, endpoint=False)
row("numpy.geomspace", uniform(-2, -1, ()), uniform(1, 2, ()), num=4, dtype=np.complex128, dtypes=())
row("numpy.fromfunction", normal(()), call=lambda f, x: f(lambda i, j: i * x + j, (2, 3)))
row("numpy.vectorize", normal((3,)), normal(()), call=lambda f, x, y: f(lambda a, b: np.sin(a) * b)(x, y))
row("numpy.apply_along_axis", normal((2, 3)), call=lambda f, x: f(lambda v: v * np.sum(v), 1, x))
row("numpy.apply_along_axis", normal((3, 2)), call=lambda f, x: f(lambda v: np.sum(v**2), 0, x), note="to numbers")


def _filled(f: Any, x: Any) -> Any:
    y = f((2, 3), x.dtype)
    y[1] = x
    y[0] = 2 * x
    return y
