"""Sums and lists of second derivatives along directions: Laplacians, diagonals of Hessians, divergences.

The second derivative along a direction is forward mode applied twice.  The Laplacian is its sum over the unit vectors;
taking that sum as early as possible (`directions.py`) makes it a forward pass that carries values, gradients of values
and Laplacians of values, known as the forward Laplacian (Li et al., A computational framework for neural network-based
variational Monte Carlo with Forward Laplacian, Nature Machine Intelligence 6, 2024).  No primitive has a rule for it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from ...control.call import call
from ...core.interpret import inline
from ...core.program import Atom, Program, literal
from ...core.trace import Builder, Tracer, building
from ...core.types import ArrayType
from ...ops.broadcast import reduce_sum
from ...ops.elementwise import add, bitwise_and, convert, mul, sub
from ...ops.literals import full, full_like
from ...ops.parts import concatenate, slice_
from ...ops.random_bits import random_bits
from ...ops.shapes import reshape, transpose
from ...transforms.differentiate import gradient
from ...transforms.jvp import jvp
from ...transforms.simplify import Sharing, condense
from ..choice import Known, key_of
from .directions import FIRST, SECOND, Directions, Value, prepared, repeated
from .rows import Rows, columns, unit_rows

Flags = tuple[bool, ...]

_KEY = ArrayType((2,), np.uint32)


def laplacian(program: Program, active: Flags, wanted: int, known: Known, samples: int | None = None) -> Program:
    """The program for all outputs, then for the Laplacians of the first `wanted` of them.

    Args:
        program: the program.
        active: which inputs to differentiate with respect to.
        wanted: how many leading outputs get a Laplacian.
        known: values of inputs that are known beforehand, by position: integers, which say which elements are used.
        samples: if given, it is estimated: the mean over as many random directions of elements 1 and -1, for which
            the program takes a key u32[2] as its last input.
    """

    def make() -> Program:
        derive = functools.partial(_second, active=active, wanted=wanted)
        return _along("laplacian", program, active, known, samples, derive, _sums, total=True)

    return program.derive(("laplacian", active, wanted, samples, key_of(known)), make)


def hessian_diagonal(program: Program, active: Flags, wanted: int, known: Known) -> Program:
    """The program for all outputs, then for the second derivatives of the first `wanted` by each element of the inputs.

    For each of these outputs, it gives an array for each active input, of the shape of the output followed by that of
    the input.

    Args:
        program: the program.
        active: which inputs to differentiate with respect to.
        wanted: how many leading outputs get a diagonal.
        known: as for `laplacian`.
    """

    def make() -> Program:
        derive = functools.partial(_second, active=active, wanted=wanted)
        return _along("hessian_diagonal", program, active, known, None, derive, _all_blocks)

    return program.derive(("hessian_diagonal", active, wanted, key_of(known)), make)


def divergence(program: Program, active: Flags, known: Known, samples: int | None = None) -> Program:
    """The program for all outputs, then for the sum of the derivatives of each element by its element of the inputs.

    Args:
        program: the program; its first outputs have the types of its active inputs.
        active: which inputs to differentiate with respect to.
        known: as for `laplacian`.
        samples: as for `laplacian`; the mean is that of the products of each direction with the derivative along it.
    """

    def make() -> Program:
        derive = functools.partial(_first, active=active)
        return _along("divergence", program, active, known, samples, derive, _trace)

    return program.derive(("divergence", active, samples, key_of(known)), make)


def sampled_diagonal(program: Program, active: Flags, samples: int) -> Program:
    """The program for all outputs, then for estimates of the diagonal blocks of the Hessian of the first, a scalar.

    Args:
        program: the program.
        active: which inputs to differentiate with respect to.
        samples: as for `laplacian`; the mean is that of each direction times the derivative of the gradient along it.
    """

    def make() -> Program:
        derive = functools.partial(_first_of_gradient, active=active)
        return _along("hessian_diagonal", program, active, {}, samples, derive, _own_products)

    return program.derive(("sampled_diagonal", active, samples), make)


def curl(program: Program, active: Flags) -> Program:
    """The program for all outputs, then for the curl of the first, a vector of 2 or 3 numbers like its active input."""

    def make() -> Program:
        derive = functools.partial(_first, active=active)
        return _along("curl", program, active, {}, None, derive, _rotation)

    return program.derive(("curl", active), make)


def _first(program: Program, active: Flags) -> tuple[Program, list[int]]:
    """The derivatives along one direction of as many outputs as there are active inputs."""
    width = active.count(True)
    derived = jvp(program, active)
    at = _positions(derived.out_active)
    outputs = [_output(derived.program, at[j], program.out_types[j]) for j in range(width)]
    return _with_outputs(derived.program, outputs), [0] * len(program.inputs) + [FIRST] * width


def _first_of_gradient(program: Program, active: Flags) -> tuple[Program, list[int]]:
    """The derivatives along one direction of the gradient of the first output."""
    gradients = gradient(program, active, with_value=True)
    count = len(program.outputs)
    outputs = [*gradients.outputs[count:], *gradients.outputs[:count]]
    return _first(Program(gradients.name, gradients.inputs, gradients.eqns, outputs), active)


def _second(program: Program, active: Flags, wanted: int) -> tuple[Program, list[int]]:
    """The second derivatives of the first outputs, along one direction and then along another."""
    width = active.count(True)
    first = jvp(program, active)
    second = jvp(first.program, active + (False,) * width)
    inner, outer = _positions(first.out_active), _positions(second.out_active)
    outputs = []
    for j in range(wanted):
        place = inner[j]
        outputs.append(_output(second.program, None if place is None else outer[place], program.out_types[j]))
    return _with_outputs(second.program, outputs), [0] * len(program.inputs) + [FIRST] * width + [SECOND] * width


def _positions(out_active: Flags) -> list[int | None]:
    """Where the tangent of each output is among the outputs of a program that `jvp` has made."""
    return [len(out_active) + out_active[:j].count(True) if a else None for j, a in enumerate(out_active)]


def _output(program: Program, place: int | None, type: ArrayType) -> Atom:
    return literal(0, type) if place is None else program.outputs[place]


def _with_outputs(program: Program, outputs: Sequence[Atom]) -> Program:
    return condense(Program(program.name, program.inputs, program.eqns, outputs))


# A derivative along one direction or two, as a program of inputs and directions, and what each of its inputs is.
Derive = Callable[[Program], tuple[Program, list[int]]]
Finish = Callable[[Sequence[Value], list[Rows]], list[Tracer]]


def _along(
    what: str,
    program: Program,
    active: Flags,
    known: Known,
    samples: int | None,
    derive: Derive,
    finish: Finish,
    total: bool = False,
) -> Program:
    """The outputs of `program`, then what `finish` makes of the derivative along all directions, or of its sum."""
    whole = prepared(program, known)
    derived, depends = derive(whole)
    types = [t for t, a in zip(program.in_types, active, strict=True) if a]
    builder = Sharing([*program.in_types, *([] if samples is None else [_KEY])])
    with building(builder):
        inputs = builder.inputs()
        inputs, key = inputs[: len(active)], inputs[len(active) :]
        directions = _unit_directions(types) if samples is None else _random_directions(types, samples, *key)
        copies = (len(depends) - len(active)) // len(types)
        walk = Directions(derived, [*inputs, *directions * copies], depends, total, directions[0].count)
        outs = inline(whole, inputs)
        found = finish(walk.run(), directions)
        if samples is not None:
            found = [mul(full_like(x, 1 / samples), x) for x in found]
        made = builder.finish([*outs, *found], f"{what}({program.name})")
    builder.known.clear()
    made = condense(made)
    return _called(made) if program.eqns and all([eqn.primitive is call for eqn in program.eqns]) else made


def _called(program: Program) -> Program:
    """A program that calls `program`, so that XLA compiles it, as it compiles a jitted function."""
    builder = Builder(program.in_types)
    with building(builder):
        return builder.finish(call(*builder.inputs(), program=program), program.name)


def _unit_directions(types: Sequence[ArrayType]) -> list[Rows]:
    count, start, found = sum([t.size for t in types]), 0, []
    for t in types:
        found.append(unit_rows(t, start, count))
        start += t.size
    return found


def _random_directions(types: Sequence[ArrayType], samples: int, key: Tracer) -> list[Rows]:
    """Directions of elements 1 and -1."""
    sizes = [t.size for t in types]
    counter = full((2,), 0, key.dtype)
    bits = random_bits(key, counter, shape=(samples, sum(sizes)))
    bits = bitwise_and(bits, full_like(bits, 1))
    found, start = [], 0
    for t, size in zip(types, sizes, strict=True):
        own = slice_(bits, start=(0, start), limit=(samples, start + size), strides=(1, 1))
        own = convert(reshape(own, shape=(samples, *t.shape)), dtype=t.dtype)
        signs = sub(full_like(own, 1), mul(full_like(own, 2), own))
        found.append(Rows(t, samples, signs))
        start += size
    return found


def _sums(walked: Sequence[Value], directions: list[Rows]) -> list[Tracer]:
    """The sums over the directions, which the walk gives here."""
    return [x for x in walked if isinstance(x, Tracer)]


def _all_blocks(walked: Sequence[Value], directions: list[Rows]) -> list[Tracer]:
    """The derivatives of each output by the elements of each input."""
    types = [x.type for x in directions]
    return [block for x in walked for block in _blocks(repeated(x, directions[0].count), types)]


def _blocks(stacked: Tracer, types: Sequence[ArrayType]) -> list[Tracer]:
    """Derivatives along the elements of several arrays, stacked along axis 0, as one array for each of them."""
    found, start = [], 0
    shape = stacked.shape[1:]
    for t in types:
        block = _piece(stacked, start, t.size)
        found.append(reshape(transpose(block, axes=(*range(1, block.ndim), 0)), shape=(*shape, *t.shape)))
        start += t.size
    return found


def _piece(x: Tracer, start: int, size: int) -> Tracer:
    """`size` rows of an array from `start` on."""
    rest = x.shape[1:]
    limit = (start + size, *rest)
    return slice_(x, start=(start, *(0 for _ in rest)), limit=limit, strides=(1,) * x.ndim)


def _own_products(walked: Sequence[Value], directions: list[Rows]) -> list[Tracer]:
    """The sum over the directions of each one times the derivative along it, element by element."""
    found, start = [], 0
    for x, direction in zip(walked, directions, strict=True):
        if direction.array is None:
            found.append(columns(x, start) if isinstance(x, Rows) else x)
        else:
            along = repeated(x, direction.count)
            found.append(reduce_sum(mul(convert(direction.array, dtype=along.dtype), along), axes=(0,)))
        start += direction.type.size
    return found


def _rotation(walked: Sequence[Value], directions: list[Rows]) -> list[Tracer]:
    """The curl of a field, from the derivatives of all elements along each unit vector."""
    rows = repeated(walked[0], directions[0].count)

    def turning(i: int, j: int) -> Tracer:
        """The derivative of element `j` along `i`, less that of element `i` along `j`."""
        along_i, along_j = [
            slice_(rows, start=(a, b), limit=(a + 1, b + 1), strides=(1, 1)) for a, b in ((i, j), (j, i))
        ]
        return reshape(sub(along_i, along_j), shape=(1,))

    if rows.shape[0] == 2:
        return [reshape(turning(0, 1), shape=())]
    return [concatenate(turning(1, 2), turning(2, 0), turning(0, 1), axis=0)]


def _trace(walked: Sequence[Value], directions: list[Rows]) -> list[Tracer]:
    """The sum of all elements of `_own_products`."""
    products = _own_products(walked, directions)
    dtype = np.result_type(*[x.dtype for x in products])
    total = full((), 0, dtype)
    for x in products:
        total = add(total, convert(reduce_sum(x, axes=tuple(range(x.ndim))), dtype=dtype))
    return [total]
