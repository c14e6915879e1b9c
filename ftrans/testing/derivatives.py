"""The derivative programs that are checked, and their values as vectors of real numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ..control.subprograms import chosen, cut, spread
from ..core.interpret import inline
from ..core.program import Program
from ..core.trace import Builder, building
from ..core.types import ArrayType, is_complex, is_inexact
from ..ops.literals import full
from ..run.places import NUMPY
from ..transforms.differentiate import pullback
from ..transforms.jvp import jvp

Mode = Literal["forward", "reverse"]
Flags = tuple[bool, ...]
Arrays = Sequence[Any]
Vector = np.ndarray[Any, np.dtype[np.float64]]


def differentiable(types: Sequence[ArrayType]) -> Flags:
    """Which of some types have derivatives."""
    return tuple(is_inexact(t.dtype) for t in types)


def derivative(program: Program, active: Flags, mode: Mode) -> Program:
    """Inputs of `program`, then vectors -> its outputs, then the derivative times the vectors.

    In forward mode the vectors are tangents of the active inputs, and the derivative is that of the outputs that have
    one; in reverse mode they are cotangents of those outputs, and the derivative is cotangents of the active inputs.
    Zeros are arrays here.
    """
    if mode == "forward":
        return jvp(program, active, differentiable(program.out_types)).program
    return program.derive(("checked in reverse", active), lambda: _pulled(program, active))


def _pulled(program: Program, active: Flags) -> Program:
    parts = pullback(program, active)
    flags = differentiable(program.out_types)
    builder = Builder([*program.in_types, *chosen(program.out_types, flags)])
    with building(builder):
        inputs, cotangents = cut(builder.inputs(), len(program.inputs))
        outs, residuals = cut(inline(parts.values, inputs), len(program.outputs))
        pulled = inline(parts.linear, [*residuals, *chosen(spread(cotangents, flags), parts.out_active)])
        types = chosen(program.in_types, active)
        filled = [
            full(t.shape, 0, t.dtype) if ct is None else ct
            for ct, t in zip(spread(pulled, parts.in_active), types, strict=True)
        ]
        return builder.finish([*outs, *filled], f"pullback({program.name})")


def derivative_alone(program: Program, active: Flags, mode: Mode) -> Program:
    """The same without the outputs of `program`: what derivatives of higher order are derivatives of."""
    whole = derivative(program, active, mode)
    count = len(program.outputs)
    return whole.derive(
        ("alone", count), lambda: Program(whole.name, whole.inputs, whole.eqns, whole.outputs[count:])
    )  # fmt: skip


def run(program: Program, args: Arrays) -> list[Any]:
    """Values of a program on the NumPy evaluator, without warnings."""
    with np.errstate(all="ignore"):
        return NUMPY.run(program, args)


def coordinates(values: Arrays) -> Vector:
    """The floating-point values as one vector of real numbers; a complex one is two."""
    parts = [np.zeros(0)]
    for x in map(np.asarray, values):
        if is_complex(x.dtype):
            parts.append(np.ascontiguousarray(x, np.complex128).reshape(-1).view(np.float64))
        elif is_inexact(x.dtype):
            parts.append(x.astype(np.float64).reshape(-1))
    return np.concatenate(parts)


def weights(values: Arrays) -> Vector:
    """`weights(u) @ coordinates(y)` is the real part of the sum of u * y, by which reverse mode is defined."""
    return coordinates([np.conj(x) for x in values])


def place(component: int, types: Sequence[ArrayType], names: Sequence[str]) -> str:
    """The name of a component of `coordinates` of arrays of these types."""
    for type, name in zip(types, names, strict=True):
        if not is_inexact(type.dtype):
            continue
        width = 2 if is_complex(type.dtype) else 1
        if component < width * type.size:
            index = np.unravel_index(component // width, type.shape) if type.shape else ()
            part = (" (real part)", " (imaginary part)")[component % 2] if width == 2 else ""
            return f"{name}[{', '.join(map(str, index))}]{part}" if index else f"{name}{part}"
        component -= width * type.size
    raise IndexError(component)


def random_like(rng: np.random.Generator, x: Any, size: Any = 1.0) -> Any:
    """Normal numbers of the type of `x`, times `size`."""
    x = np.asarray(x)
    noise = rng.standard_normal(x.shape)
    if is_complex(x.dtype):
        noise = noise + 1j * rng.standard_normal(x.shape)
    return (noise * size).astype(x.dtype)[()]


def typical_size(x: Any) -> float:
    """The root mean square of an array, or 1 where that is 0."""
    x = np.asarray(x)
    wide = np.abs(x).astype(np.float64)
    size = float(np.sqrt(np.mean(wide * wide))) if x.size else 0.0
    return size if np.isfinite(size) and size > 0 else 1.0
