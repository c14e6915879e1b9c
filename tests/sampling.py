"""What the rows of the sample table are made of: operands that a primitive takes, and those that it must refuse.

A row names its operands by *sources*: functions from a random generator to an array, so that the same row can be
drawn several times (a batch needs different elements).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from ftrans.core.primitive import Primitive
from ftrans.core.program import Program
from ftrans.core.trace import Builder, building
from ftrans.core.types import ArrayType, is_inexact, type_of
from ftrans.ops.special.family import Special, Specials

f64, f32, f16, bf16 = np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.float16), np.dtype(bfloat16)
c128, c64 = np.dtype(np.complex128), np.dtype(np.complex64)
i64, i32, i8, u8 = np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.int8), np.dtype(np.uint8)
u32 = np.dtype(np.uint32)
boolean = np.dtype(np.bool_)

Source = Callable[[np.random.Generator], Any]
Shape = tuple[int, ...]


# Rows


@dataclass(frozen=True, eq=False)
class Sample:
    """Operands that a primitive takes.

    Attributes:
        primitive: the primitive.
        sources: one source per operand.
        params: parameters of the equation.
        smooth: whether the primitive is differentiable at the operands, so that derivatives are tested.
        differentiated: the operands with respect to which it is; all inexact ones by default.
        hermitian: the operands that are Hermitian matrices, so that their tangents are.
        reversible: whether reverse mode is defined.
        canonical: makes results comparable that are defined up to a choice, such as the sign of an eigenvector.
        looseness: how many times more than usual the evaluators may differ.
        note: what is special about the row.
    """

    primitive: Primitive
    sources: tuple[Source, ...]
    params: dict[str, Any]
    smooth: bool = True
    differentiated: tuple[int, ...] | None = None
    hermitian: tuple[int, ...] = ()
    reversible: bool = True
    canonical: Callable[[list[Any]], list[Any]] = list
    looseness: float = 1.0
    note: str = ""

    def draw(self, seed: int = 0) -> list[Any]:
        """The operands; other seeds give other operands of the same types."""
        rng = np.random.default_rng(seed)
        return [source(rng) for source in self.sources]

    @cached_property
    def types(self) -> tuple[ArrayType, ...]:
        """Types of the operands."""
        return tuple(type_of(x) for x in self.draw())

    @cached_property
    def out_types(self) -> tuple[ArrayType, ...]:
        """Types of the results, as the primitive infers them."""
        return self.primitive.output_types(self.types, self.params)

    @cached_property
    def active(self) -> tuple[bool, ...]:
        """Which operands derivatives are taken with respect to."""
        chosen = range(len(self.sources)) if self.differentiated is None else self.differentiated
        return tuple(i in chosen and is_inexact(t.dtype) for i, t in enumerate(self.types))

    def tangents(self, active: Sequence[bool], seed: int) -> list[Any]:
        """Random tangents of the operands flagged in `active`."""
        found = []
        for i, t in enumerate(directions(self.draw(), seed)):
            t = (t + np.conj(np.swapaxes(t, -1, -2))) / 2 if i in self.hermitian else t
            found += [t] if active[i] else []
        return found

    def program(self) -> Program:
        """The program of this one equation."""
        return program_of(self.primitive, self.types, self.params)

    def __str__(self) -> str:
        words = [self.primitive.name, *map(str, self.types), *_described(self.params), self.note]
        return "-".join(word for word in words if word)


@dataclass(frozen=True, eq=False)
class Kink:
    """The tangent that is chosen where a primitive has a kink, a tie or a removable singularity."""

    primitive: Primitive
    operands: tuple[Any, ...]
    tangents: tuple[Any, ...]
    expected: Any
    params: dict[str, Any]

    def __str__(self) -> str:
        return "-".join([self.primitive.name, *(str(np.asarray(x).tolist()).replace(" ", "") for x in self.operands)])


@dataclass(frozen=True, eq=False)
class Misfit:
    """Operand types that a primitive must refuse, and the error."""

    primitive: Primitive
    types: tuple[ArrayType, ...]
    params: dict[str, Any]
    error: type[Exception]

    def __str__(self) -> str:
        return "-".join([self.primitive.name, *map(str, self.types), *_described(self.params)])


@dataclass(frozen=True, eq=False)
class Failure:
    """Operands that a primitive cannot compute with, and the error of the NumPy evaluator."""

    primitive: Primitive
    operands: tuple[Any, ...]
    error: type[Exception]
    params: dict[str, Any]

    def __str__(self) -> str:
        return "-".join([self.primitive.name, *(str(type_of(x)) for x in self.operands), self.error.__name__])


def _described(params: dict[str, Any]) -> list[str]:
    simple = (int, str, bool, tuple, np.dtype)
    return [
        f"{name}={value}".replace(" ", "")
        for name, value in params.items()
        if isinstance(value, simple) and not (isinstance(value, tuple) and any(isinstance(v, Program) for v in value))
    ]


def dependence(sample: Sample) -> str:
    """The name of a row's primitive, but for all special functions of as many operands the same.

    They all act on each element, and tests of their partial derivatives are elsewhere: a row of one of them stands for
    the others where it is tested how elements depend on each other.
    """
    primitive = sample.primitive
    if isinstance(primitive, Special | Specials):
        return f"{type(primitive).__name__} {sample.active} {len(sample.out_types)}"
    return primitive.name


def program_of(primitive: Primitive, types: Sequence[ArrayType], params: dict[str, Any]) -> Program:
    """The program of one equation."""
    builder = Builder(types)
    with building(builder):
        return builder.finish(primitive.bind_all(builder.inputs(), params), f"one_{primitive.name}").check()


SAMPLES: list[Sample] = []
KINKS: list[Kink] = []
MISFITS: list[Misfit] = []
FAILURES: list[Failure] = []


def sample(primitive: Primitive, *sources: Source, **options: Any) -> None:
    """Add a row to the table.  Options are attributes of `Sample`, all others parameters of the equation."""
    names = {f.name for f in fields(Sample)}
    params = {k: v for k, v in options.items() if k not in names}
    SAMPLES.append(Sample(primitive, sources, params, **{k: v for k, v in options.items() if k in names}))


def kink(primitive: Primitive, *operands: Any, along: Sequence[Any], gives: Any, **params: Any) -> None:
    """Add a derivative that is a convention; None stands for no tangent."""
    arrays = tuple(np.asarray(x)[()] for x in operands)
    tangents = tuple(None if t is None else np.asarray(t, x.dtype)[()] for t, x in zip(along, arrays, strict=True))
    KINKS.append(Kink(primitive, arrays, tangents, gives, params))


def misfit(primitive: Primitive, *types: ArrayType, error: type[Exception], **params: Any) -> None:
    """Add operands that must be refused."""
    MISFITS.append(Misfit(primitive, types, params, error))


def failure(primitive: Primitive, *operands: Any, error: type[Exception], **params: Any) -> None:
    """Add operands with which computing fails."""
    FAILURES.append(Failure(primitive, tuple(np.asarray(x)[()] for x in operands), error, params))


# Sources


def uniform(low: float, high: float, shape: Shape = (2, 3), dtype: Any = f64) -> Source:
    """Numbers between two bounds; complex ones have both parts between them."""
    dtype = np.dtype(dtype)

    def draw(rng: np.random.Generator) -> Any:
        x = rng.uniform(low, high, shape)
        if dtype.kind == "c":
            x = x + 1j * rng.uniform(low, high, shape)
        return np.asarray(x).astype(dtype)[()]

    return draw


def normal(shape: Shape = (2, 3), dtype: Any = f64) -> Source:
    """Standard normal numbers (integers of small size where the dtype is one)."""
    dtype = np.dtype(dtype)

    def draw(rng: np.random.Generator) -> Any:
        if dtype.kind == "b":
            return np.asarray(rng.integers(0, 2, shape)).astype(dtype)[()]
        if dtype.kind in "iu":
            return np.asarray(rng.integers(0 if dtype.kind == "u" else -9, 10, shape)).astype(dtype)[()]
        x = rng.standard_normal(shape)
        if dtype.kind == "c":
            x = x + 1j * rng.standard_normal(shape)
        return np.asarray(x).astype(dtype)[()]

    return draw


def integers(low: int, high: int, shape: Shape = (2, 3), dtype: Any = i64) -> Source:
    """Integers from `low` up to and without `high`."""
    return lambda rng: np.asarray(rng.integers(low, high, shape)).astype(dtype)[()]


def distinct(shape: Shape = (2, 3), dtype: Any = f64) -> Source:
    """Numbers in random order that are apart from each other, from zero and from halves."""
    size = math.prod(shape)

    def draw(rng: np.random.Generator) -> Any:
        steps = rng.permutation(size) - size // 2 + rng.uniform(0.1, 0.3, size)
        return (0.5 * steps).reshape(shape).astype(dtype)[()]

    return draw


def increasing(shape: Shape, dtype: Any = f64) -> Source:
    """Numbers that increase along the last axis."""
    return lambda rng: np.sort(distinct(shape, dtype)(rng), -1)


def given(values: Any, dtype: Any = f64) -> Source:
    """The same values at each draw."""
    return lambda rng: np.array(values, dtype)[()]


def apart(source: Source, size: float) -> Source:
    """The numbers of a source, each moved away from zero by `size`."""

    def draw(rng: np.random.Generator) -> Any:
        x = source(rng)
        return (x + np.where(x < 0, -size, size)).astype(x.dtype)[()]

    return draw


def positive_definite(*shape: int, dtype: Any = f64) -> Source:
    """Matrices (in the last two axes) that are symmetric or Hermitian, and well conditioned."""

    def draw(rng: np.random.Generator) -> Any:
        a = normal(shape, dtype)(rng)
        return (a @ np.conj(np.swapaxes(a, -1, -2)) + 2 * np.eye(shape[-1])).astype(dtype)

    return draw


def separated(*shape: int, dtype: Any = f64) -> Source:
    """Hermitian matrices with eigenvalues near 1, 2, ... whose eigenvectors, near the axes, keep their signs."""

    def draw(rng: np.random.Generator) -> Any:
        a = uniform(-0.2, 0.2, shape, dtype)(rng)
        return (a + np.conj(np.swapaxes(a, -1, -2)) + np.diag(np.arange(1.0, shape[-1] + 1))).astype(dtype)

    return draw


def invertible(*shape: int, dtype: Any = f64) -> Source:
    """Matrices (in the last two axes) that are well conditioned, and need pivoting."""

    def draw(rng: np.random.Generator) -> Any:
        a = uniform(-0.5, 0.5, shape, dtype)(rng)
        return (a + 2 * np.eye(shape[-1])[::-1]).astype(dtype)

    return draw


def triangular(*shape: int, dtype: Any = f64) -> Source:
    """Matrices (in the last two axes) both of whose triangles are well conditioned."""

    def draw(rng: np.random.Generator) -> Any:
        a = uniform(-0.5, 0.5, shape, dtype)(rng)
        return (a + 2 * np.eye(shape[-1])).astype(dtype)

    return draw


def directions(values: Sequence[Any], seed: int) -> list[Any]:
    """Random vectors like the given arrays."""
    rng = np.random.default_rng(seed)
    return [uniform(-1, 1, np.shape(x), x.dtype)(rng) if is_inexact(x.dtype) else None for x in values]
