"""Random well-typed programs over smooth primitives, for testing transformations and their compositions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ftrans.control.call import call
from ftrans.control.cond import cond
from ftrans.control.loops.scan import scan
from ftrans.core.program import Program, literal
from ftrans.core.trace import Builder, Tracer, building
from ftrans.core.types import ArrayType, type_of
from ftrans.ops import contractions, indexing, literals, parts, reductions, shapes
from ftrans.ops import elementwise as e
from ftrans.ops.broadcast import broadcast, reduce_sum

TYPES = (ArrayType((3,), "float64"), ArrayType((2, 3), "float64"))
STEPS = 9
# Calls are compiled by XLA also on the NumPy evaluator, so only some programs have them.
CALLING = 6

Rule = Callable[["Writer"], Tracer]


class Writer:
    """Writes a random program: each step applies a rule to values that are there already.

    Attributes:
        rng: where chance comes from.
        values: the values so far.
    """

    def __init__(self, seed: int, values: list[Tracer]) -> None:
        self.rng = np.random.default_rng(seed)
        self.values = values

    def some(self, ndim: int | None = None) -> Tracer:
        """One of the values, preferably a recent one; made from a reshaped one if none has so many axes."""
        fitting = [v for v in self.values if ndim is None or v.ndim == ndim]
        if not fitting:
            x = self.some()
            return shapes.reshape(x, shape={0: (), 1: (x.size,), 2: (1, x.size)}[ndim]) if ndim else self.total(x)
        place = len(fitting) - 1 - int(self.rng.geometric(0.3) - 1) % len(fitting)
        return fitting[place]

    def like(self, x: Tracer) -> Tracer:
        """A value of the type of `x`: one that is there, a constant, or one stretched to its shape."""
        fitting = [v for v in self.values if v.type is x.type]
        choice = self.rng.integers(4)
        if choice == 0:
            return literals.full_like(x, float(self.rng.uniform(0.5, 1.5)))
        if choice == 1:
            return broadcast(self.some(0), shape=x.shape, dims=())
        if choice == 2:
            return constant(x, self.rng.uniform(-1, 1, x.shape))
        return fitting[int(self.rng.integers(len(fitting)))]

    def axis(self, x: Tracer) -> int:
        """One of the axes of `x`."""
        return int(self.rng.integers(x.ndim))

    def total(self, x: Tracer) -> Tracer:
        """The sum of all elements."""
        return reduce_sum(x, axes=tuple(range(x.ndim)))

    def write(self, rules: list[Rule], count: int) -> None:
        """Apply `count` random rules."""
        for _ in range(count):
            value = rules[int(self.rng.integers(len(rules)))](self)
            if value.size <= 64:
                self.values.append(value)


def constant(x: Tracer, value: Any) -> Tracer:
    """A constant array in the program of `x`."""
    return Tracer(x.builder, literal(value, type_of(value)))


def elementwise(w: Writer) -> Tracer:
    """A function of each element, bounded so that programs stay tame."""
    return (e.sin, e.cos, e.tanh, e.arctan, e.neg)[int(w.rng.integers(5))](w.some())


def bounded_exponential(w: Writer) -> Tracer:
    return e.exp(e.sin(w.some()))


def logarithm(w: Writer) -> Tracer:
    x = w.some()
    return e.log(e.add(literals.full_like(x, 1.5), e.square(x)))


def pair(w: Writer) -> Tracer:
    x = w.some()
    return (e.add, e.sub, e.mul)[int(w.rng.integers(3))](x, w.like(x))


def quotient(w: Writer) -> Tracer:
    x = w.some()
    return e.div(x, e.add(literals.full_like(x, 2.0), e.cos(w.like(x))))


def power(w: Writer) -> Tracer:
    return e.integer_pow(e.sin(w.some()), exponent=int(w.rng.integers(2, 5)))


def chosen(w: Writer) -> Tracer:
    x = w.some()
    return e.select(constant(x, w.rng.uniform(size=x.shape) < 0.5), x, w.like(x))


def flattened(w: Writer) -> Tracer:
    x = w.some()
    return shapes.reshape(x, shape=(x.size,))


def turned(w: Writer) -> Tracer:
    return shapes.transpose(w.some(2), axes=(1, 0))


def reversed_(w: Writer) -> Tracer:
    x = w.some(2)
    return shapes.reverse(x, axes=(w.axis(x),))


def part(w: Writer) -> Tracer:
    x = w.some(1)
    return parts.slice_(x, start=(0,), limit=(math.ceil(x.size / 2),), strides=(1,))


def joined(w: Writer) -> Tracer:
    return parts.concatenate(w.some(1), w.some(1), axis=0)


def padded(w: Writer) -> Tracer:
    return parts.pad(w.some(1), w.some(0), before=(1,), after=(0,), interior=(1,))


def stretched(w: Writer) -> Tracer:
    x = w.some(1)
    return broadcast(x, shape=(2, x.size), dims=(1,))


def summed(w: Writer) -> Tracer:
    x = w.some(2)
    return reduce_sum(x, axes=(w.axis(x),))


def multiplied(w: Writer) -> Tracer:
    x = w.some(2)
    return reductions.reduce_prod(e.cos(x), axes=(w.axis(x),))


def accumulated(w: Writer) -> Tracer:
    return reductions.cumsum(e.tanh(w.some(1)), axis=0, reverse=bool(w.rng.integers(2)))


def matrix_product(w: Writer) -> Tracer:
    x = e.tanh(w.some(2))
    return contractions.dot_general(x, w.like(x), contract=((1,), (1,)), batch=((), ()))


def inner_product(w: Writer) -> Tracer:
    x = e.tanh(w.some(1))
    return contractions.dot_general(x, w.like(x), contract=((0,), (0,)), batch=((), ()))


def picked(w: Writer) -> Tracer:
    x = w.some(1)
    return indexing.gather(x, constant(x, w.rng.integers(0, x.size, 3)), axis=0)


def called(w: Writer) -> Tracer:
    x = w.some()
    return call(x, w.like(x), program=_program(lambda a, b: [e.sin(e.mul(a, b))], x.type, x.type))[0]


def branched(w: Writer) -> Tracer:
    x = w.some()
    which = e.convert(e.gt(w.total(e.cos(x)), literals.full((), 0.1, x.dtype)), dtype=np.dtype(np.int64))
    branches = (_program(lambda a: [e.sin(a)], x.type), _program(lambda a: [e.mul(a, a), a][:1], x.type))
    return cond(which, x, branches=branches)[0]


def looped(w: Writer) -> Tracer:
    x, start = e.tanh(w.some(2)), e.tanh(w.some(0))
    row = x.type.with_shape(x.shape[1:])
    body = _program(lambda y, r: [e.sin(e.add(y, reduce_sum(r, axes=(0,)))), e.mul(r, r)], start.type, row)
    params: dict[str, Any] = {"length": x.shape[0], "reverse": False, "unroll": 1, "consts": 0, "carries": 1}
    return scan(start, x, program=body, **params)[int(w.rng.integers(2))]


def _program(f: Callable[..., list[Tracer]], *types: ArrayType) -> Program:
    builder = Builder(types)
    with building(builder):
        return builder.finish(f(*builder.inputs()), "inner")


RULES: list[Rule] = [
    elementwise, elementwise, bounded_exponential, logarithm, pair, pair, pair, quotient, power, chosen, flattened,
    turned, reversed_, part, joined, padded, stretched, summed, multiplied, accumulated, matrix_product, inner_product,
    picked, branched, looped,
]  # fmt: skip


def random_program(seed: int) -> Program:
    """A program of two inputs whose results are a scalar that depends on much of it, and an array."""
    builder = Builder(TYPES)
    with building(builder):
        writer = Writer(seed, builder.inputs())
        writer.write(RULES if seed % CALLING else [*RULES, called, called, called], STEPS)
        recent = [writer.total(e.sin(x)) for x in writer.values[-4:]]
        total = recent[0]
        for x in recent[1:]:
            total = e.add(total, x)
        return builder.finish([total, e.tanh(writer.some(1))], f"random{seed}").check()


def random_arguments(seed: int) -> list[Any]:
    """Arguments of a random program."""
    rng = np.random.default_rng(1000 + seed)
    return [rng.uniform(-1, 1, t.shape) for t in TYPES]
