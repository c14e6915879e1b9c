"""Taylor series of programs: a program -> the program of the coefficients of its results along a line.

The series of most equations follows from the tangent of the equation.  With `y = f(x)` and the tangent
`dy = F(x, dx)`, the derivative of the series of `y` is `F` applied to the series of `x` and its derivative, so
`k * y[k]` is coefficient `k - 1` of that.  `F` is a program, made of the jvp rule of the primitive: its own equations
have series in the same way, which are made on demand, and once for the same primitive and operands.  So
`exp' = x' * exp` needs no more than products.  Only products, quotients and equations that hold programs have rules
here (Griewank and Walther, Evaluating Derivatives, 2nd ed. 2008, chapter 13).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from ...base.source import attributed_to
from ...control.subprograms import spread
from ...core.interpret import interpret
from ...core.primitive import Primitive
from ...core.program import Const, Eqn, Program, Var, literal
from ...core.trace import Builder, Tracer, building
from ...core.types import ArrayType, is_inexact
from ...ops.contractions import dot_general
from ...ops.elementwise import Elementwise, div, integer_pow, mul, sech_square, singular_slope, square, tanh
from ...transforms.simplify import condense
from .nested import needs_nesting, nested_coefficients
from .products import minus_square, product, quotient, with_zeros
from .series import UNBOUNDED, Coefficient, Series, scaled, series_of, union
from .supports import of_linear
from .tangents import TangentProgram, tangent_program
from .taylor_holders import holder_rows, holds_programs

Orders = tuple[int, ...]


class Taylor(NamedTuple):
    """A program of Taylor coefficients.

    Attributes:
        program: takes the inputs of the original, then the given coefficients of each input, then masks of inputs;
            returns the outputs of the original, then the coefficients of each output that are not zero, then masks of
            outputs.
        orders: for each output, the orders, from 1, of these.
        masks: which outputs have a mask.
    """

    program: Program
    orders: tuple[Orders, ...]
    masks: tuple[bool, ...]


def taylor(
    program: Program,
    given: tuple[Orders, ...],
    order: int,
    wanted: tuple[bool, ...] = (),
    masked: tuple[bool, ...] = (),
    derivatives: bool = False,
) -> Taylor:
    """The Taylor coefficients of the outputs of a program whose inputs are polynomials of a parameter.

    Args:
        program: the program.
        given: for each input, the orders, from 1, of its coefficients that are given; the others are zero.
        order: up to which order coefficients are wanted.
        wanted: which outputs get all coefficients, also where they are zero; none by default.
        masked: which inputs have a mask that says where their coefficients from 1 may be nonzero.  By default none
            has, and no output gets one.
        derivatives: whether the program takes and returns derivatives instead: coefficient k times the factorial of k.
    """
    key = ("taylor", given, order, wanted, masked, derivatives)
    return program.derive(key, lambda: _taylor(program, given, order, wanted, masked, derivatives))


def _taylor(
    program: Program,
    given: tuple[Orders, ...],
    order: int,
    wanted: tuple[bool, ...],
    masked: tuple[bool, ...],
    derivatives: bool,
) -> Taylor:
    factors = [float(math.factorial(k)) if derivatives else 1.0 for k in range(order + 1)]
    program, count, types = condense(program), len(program.inputs), program.in_types
    coefficient_types = [t for t, g in zip(types, given, strict=True) for _ in g]
    mask_types = [t.with_dtype(np.bool_) for t, m in zip(types, masked, strict=False) if m]
    builder = Builder([*types, *coefficient_types, *mask_types])
    with building(builder):
        values, rest = builder.inputs()[:count], iter(builder.inputs()[count:])
        rows = [
            [x, *(scaled(next(rest), 1 / factors[k]) if k in g else None for k in range(1, order + 1))]
            for x, g in zip(values, given, strict=True)
        ]
        masks = spread(list(rest), masked) if masked else [None] * count
        if needs_nesting(program):
            found = [series_of(row) for row in nested_coefficients(program, rows, order)]
        else:
            found = _Expansion(builder, order).run(program, list(map(series_of, rows, masks)))
        flags = wanted or (False,) * len(found)
        orders = tuple([_orders(y, order, w) for y, w in zip(found, flags, strict=True)])
        coefficients = [scaled(y.at(k), factors[k]) for y, ks in zip(found, orders, strict=True) for k in ks]
        supports = [y.support(1).whole() if masked else None for y in found]
        results = [*(y.at(0) for y in found), *coefficients, *(m for m in supports if m is not None)]
        derived = builder.finish(results, f"taylor({program.name})")
    return Taylor(derived, orders, tuple([m is not None for m in supports]))


def _orders(y: Series, order: int, is_wanted: bool) -> Orders:
    return tuple([k for k in range(1, order + 1) if is_wanted or y[k] is not None])


class _Expansion:
    """Expands the equations of one program, and those of the tangents that this takes.

    Args:
        builder: records the coefficients.
        order: up to which order coefficients are wanted.
    """

    def __init__(self, builder: Builder, order: int) -> None:
        self.builder = builder
        self.order = order
        # Operands are kept with the results, since the key has their addresses.
        self.known: dict[Hashable, tuple[Sequence[Series], list[Series]]] = {}
        self.constants: dict[Const, Series] = {}
        # Euclidean lengths, by the series of the length.
        self.lengths: dict[Series, tuple[Eqn, Sequence[Series]]] = {}

    def run(self, program: Program, inputs: list[Series]) -> list[Series]:
        """The series of the outputs of a program."""
        return interpret(program, inputs, self.outer, self.constant)

    def constant(self, const: Const) -> Series:
        """The series of a constant operand."""
        if const not in self.constants:
            self.constants[const] = Series(const.type, lambda k: self.tracer(const), 0)
        return self.constants[const]

    def tracer(self, const: Const) -> Tracer:
        """The value of a constant operand."""
        return Tracer(self.builder, const)

    def outer(self, eqn: Eqn, operands: list[Series]) -> list[Series]:
        """The results of an equation of the program, with all of their coefficients.

        They are found at once and in order: the depth of what is on demand does not grow with the program.
        """
        with attributed_to(eqn.line):
            results = self.apply(eqn, operands, is_outer=True)
            for y in results:
                y.at(0)
        with attributed_to(eqn.line and eqn.line.differentiated(eqn.primitive.name)):
            for k in range(1, self.order + 1):
                for y in results:
                    _ = y[k], y.support(k)
        return results

    def apply(self, eqn: Eqn, operands: list[Series], is_outer: bool = False) -> list[Series]:
        """The series of the results of an equation.

        Args:
            eqn: the equation.
            operands: the series of its operands.
            is_outer: whether these have all of their coefficients; otherwise some may depend on the results.
        """
        key = (eqn.primitive, *map(id, operands), *eqn.params.items())
        if key not in self.known:
            self.known[key] = operands, self.expand(eqn, operands, is_outer)
        return self.known[key][1]

    def single(self, primitive: Primitive, *operands: Series, **params: Any) -> Series:
        """The series of the result of a primitive."""
        atoms = {x: Var(x.type) for x in operands}
        types = primitive.output_types([x.type for x in operands], params)
        eqn = Eqn(primitive, tuple([atoms[x] for x in operands]), params, tuple(map(Var, types)), None)
        return self.apply(eqn, list(operands))[0]

    def expand(self, eqn: Eqn, operands: list[Series], is_outer: bool) -> list[Series]:
        """The same, for an equation that has not been met before."""
        primitive = eqn.primitive
        is_slope = any([x.is_slope for x in operands])
        if all([x.is_constant for x in operands]) and not (is_slope and primitive in (mul, div, singular_slope)):
            return self.unmoved(eqn, operands, is_slope)
        length = self.length_squared(eqn, operands)
        if length is not None:
            of_length, at = length
            rule = tangent_program(of_length, [not x.is_constant for x in at], of_square=True)
            return self.by_tangent(eqn, operands, rule, of_length, at)
        if holds_programs(primitive):
            return self.holder(eqn, operands, is_outer)
        found = self.by_rule(eqn, operands)
        if found is not None:
            return [found]
        rule = tangent_program(eqn, [not x.is_constant for x in operands])
        results = self.by_tangent(eqn, operands, rule, eqn, operands)
        if isinstance(primitive, Elementwise) and primitive.square is not None:
            self.lengths[results[0]] = eqn, operands
        return results

    def by_rule(self, eqn: Eqn, operands: list[Series]) -> Series | None:
        """The result of a primitive that has a rule of its own; None for all others."""
        primitive, params = eqn.primitive, eqn.params
        x = operands[0]
        if primitive is mul:
            return product(mul, params, x, operands[1])
        if primitive is square:
            return product(mul, params, x, x)
        if primitive is dot_general and not any([y.is_constant for y in operands]):
            return product(dot_general, params, x, operands[1])
        if primitive is div:
            return quotient(x, operands[1])
        if primitive is singular_slope:
            return with_zeros(x)
        if primitive is sech_square:
            return self.value_and_rest(eqn, operands, minus_square(self.single(tanh, x)))
        if primitive is integer_pow and (params["exponent"] > 1 or params["exponent"] == -1):
            return self.value_and_rest(eqn, operands, self.power(x, params["exponent"]))
        return None

    def length_squared(self, eqn: Eqn, operands: list[Series]) -> tuple[Eqn, Sequence[Series]] | None:
        """The length whose square the result is: smooth even at 0, where the length is not."""
        is_square = eqn.primitive is square or (
            operands[0] is operands[-1] if eqn.primitive is mul else eqn.params.get("exponent") == 2
        )
        return self.lengths.get(operands[0]) if is_square else None

    def value_and_rest(self, eqn: Eqn, operands: list[Series], rest: Series) -> Series:
        """The value of an equation, with other coefficients of the same function written in another way."""
        values = self.values(eqn, operands)
        return Series(
            rest.type,
            lambda k: rest[k] if k else values()[0],
            rest.degree,
            moving=lambda: rest.support(1),
        )

    def power(self, x: Series, exponent: int) -> Series:
        """A power, by repeated squaring, or a reciprocal."""
        if exponent == -1:
            return self.single(div, self.constant(literal(1, x.type)), x)
        if exponent == 1:
            return x
        half = self.single(square, self.power(x, exponent // 2))
        return self.single(mul, half, x) if exponent % 2 else half

    def holder(self, eqn: Eqn, operands: list[Series], is_outer: bool) -> list[Series]:
        """The results of an equation that holds programs."""
        values = self.values(eqn, operands)

        @cache
        def results(order: int) -> list[Series]:
            rows = [[x.at(0), *(x[k] for k in range(1, order + 1))] for x in operands]
            masks = [x.support(1).whole() for x in operands]
            return [series_of(*found) for found in holder_rows(eqn.primitive, eqn.params, rows, masks, order, taylor)]

        if is_outer:
            return results(self.order)

        def coefficient(i: int, k: int) -> Coefficient:
            # The operands may depend on the results: they have no more than the coefficients before.
            return results(k)[i][k] if k else values()[i]

        return [
            Series(v.type, partial(coefficient, i), UNBOUNDED if is_inexact(v.type.dtype) else 0)
            for i, v in enumerate(eqn.outputs)
        ]

    # Equations of which the tangent says all

    def unmoved(self, eqn: Eqn, operands: list[Series], is_slope: bool) -> list[Series]:
        """Results that are constant."""
        values = self.values(eqn, operands)
        support = partial(of_linear, eqn.primitive, operands, eqn.params, 0)
        return [
            Series(v.type, _only(partial(_item, values, i)), 0, is_slope, support) for i, v in enumerate(eqn.outputs)
        ]

    def values(self, eqn: Eqn, operands: list[Series]) -> Callable[[], list[Tracer]]:
        """The results at the point itself."""
        return cache(lambda: eqn.primitive.bind_all([x.at(0) for x in operands], eqn.params))

    def by_tangent(
        self, eqn: Eqn, operands: list[Series], rule: TangentProgram, of: Eqn, at: Sequence[Series]
    ) -> list[Series]:
        """The results of `eqn`, given their tangents, those of the equation `of` at the operands `at`."""
        values = self.values(eqn, operands)
        slopes = cache(lambda: self.slopes(rule, at))
        results = []
        for i, var in enumerate(eqn.outputs):
            value, place = partial(_item, values, i), rule.out_active[:i].count(True)
            if not rule.out_active[i]:
                results.append(Series(var.type, _only(value), 0))
            elif rule.is_linear:
                results.append(self.linear(eqn, operands, var.type, i, value, of, at))
            else:
                results.append(_integrated(var.type, value, partial(_item, slopes, place)))
        return results

    def slopes(self, rule: TangentProgram, operands: Sequence[Series]) -> list[Series]:
        """The derivatives of the results with respect to the parameter."""
        moving = [x.derivative for x in operands if not x.is_constant]
        return interpret(rule.program, [*operands, *moving], self.apply, self.constant)

    def linear(
        self,
        eqn: Eqn,
        operands: list[Series],
        type: ArrayType,
        index: int,
        value: Callable[[], Tracer],
        of: Eqn,
        at: Sequence[Series],
    ) -> Series:
        """A result that is linear in the operands that vary, all of them together."""

        def make(k: int) -> Coefficient:
            if k == 0:
                return value()
            active = [x[k] is not None for x in at]
            if not any(active):
                return None
            rule = tangent_program(of, active, of is not eqn)
            if not rule.out_active[index]:
                return None
            moving = [x.at(k) for x, a in zip(at, active, strict=True) if a]
            outs = interpret(rule.program, [*(x.at(0) for x in at), *moving], _record, self.tracer)
            return outs[rule.out_active[:index].count(True)]

        degree = max([x.degree for x in at])
        if of is not eqn:
            varying = [x for x in at if not x.is_constant]
            return Series(type, make, degree, moving=lambda: union([x.support(1) for x in varying]))
        primitive, params = eqn.primitive, eqn.params
        return Series(
            type,
            make,
            degree,
            any([x.is_slope for x in operands]),
            lambda: of_linear(primitive, operands, params, 0),
            lambda: of_linear(primitive, operands, params, 1),
        )


def _record(eqn: Eqn, operands: list[Tracer]) -> list[Tracer]:
    """Record an equation of a tangent, which has no line of its own."""
    results: list[Tracer] = eqn.primitive.bind_all(operands, eqn.params)
    return results


def _item(items: Callable[[], Sequence[Any]], index: int) -> Any:
    return items()[index]


def _only(value: Callable[[], Tracer]) -> Callable[[int], Coefficient]:
    """The coefficients of a constant."""
    return lambda k: None if k else value()


def _integrated(type: ArrayType, value: Callable[[], Tracer], slope: Callable[[], Series]) -> Series:
    """A series with a known derivative."""

    def make(k: int) -> Coefficient:
        return scaled(slope()[k - 1], 1 / k) if k else value()

    return Series(type, make, moving=lambda: slope().support(0))
