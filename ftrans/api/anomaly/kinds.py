"""Kinds of operations that produce NaN or infinity, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.primitive import Primitive
from ...ops import elementwise as e
from ...ops.broadcast import Reduction
from ...ops.contractions import DotGeneral, dot_general
from ...ops.indexing import ScatterAdd
from ...ops.reductions import Cumulative, LinearRecurrence
from .equations import NAN, badness, is_array, is_bad, is_derivative_of
from .search import Step

# Where the derivatives of functions are infinite.
_POLES = {
    e.sqrt: "0", e.cbrt: "0", e.log: "0", e.log2: "0", e.log10: "0", e.reciprocal: "0", e.log1p: "-1", e.arcsin: "±1",
    e.arccos: "±1", e.arccosh: "1", e.arctanh: "±1",
}  # fmt: skip

_OVERFLOW = "overflow"
_MASKED = (
    "np.where computes both branches, and the derivative of the one not taken is 0 times infinity, since something "
    "between them mixes elements. Choose the operand first, then the result: safe = np.where(ok, x, 1.0); "
    "y = np.where(ok, f(safe), other)"
)
_ADVICE = {
    "sqrt": "Keep 0 out of sqrt: np.hypot(x, y) has a derivative at 0 for the length of (x, y), and np.linalg.norm for "
    "that of a vector; add a small number inside; or choose at once: np.where(x > 0, np.sqrt(x), 0.0)",
    "negative": "For real numbers sqrt ends at 0: np.sqrt(np.maximum(x, 0.0)) where only rounding makes x negative, or "
    "complex numbers where it is meant",
    "logarithm": "Keep the argument above 0: np.log1p(x) for log(1 + x), np.logaddexp(a, b) for log(exp(a) + exp(b)), "
    "log(x + small number), or choose first: safe = np.where(x > 0, x, 1.0)",
    "power": "An exponent that is a Python integer is right for every base; for others, and for the derivative by the "
    "exponent, keep the base above 0, for instance by safe = np.where(x > 0, x, 1.0)",
    "exponential": "Subtract the largest exponent first (np.logaddexp does), or work with logarithms throughout",
    "domain": "The argument is at an end of the domain or outside of it, perhaps by rounding only: np.clip it, a "
    "little inside of the ends where the derivative is infinite there",
    "division": "Keep the divisor off 0: add a small number, or choose first: safe = np.where(d != 0, d, 1.0); "
    "y = np.where(d != 0, n / safe, 0.0)",
    "difference": "Both operands are infinite: they overflowed, or all entries are masked by infinities. Use a large "
    "finite number for the mask, or leave out what has no entry",
    "constant": "The function holds a NaN itself; solvers such as odeint and root give one where they find no solution",
    "size": "The result is larger than the dtype can hold: scale the numbers, work with logarithms, or use a wider "
    "dtype",
}

_Numbers = Sequence[Any]


def _logarithm(shift: float) -> Callable[[_Numbers], str]:
    def kind(xs: _Numbers) -> str:
        return "logarithm of zero" if xs[0] + shift == 0 else "logarithm of a negative number"

    return kind


def _product(xs: _Numbers) -> str:
    return "0 * inf" if any(x == 0 for x in xs) else _OVERFLOW


def _quotient(xs: _Numbers) -> str:
    x, y = xs
    if y == 0:
        return "0 / 0" if x == 0 else "division by zero"
    return "inf / inf" if np.isinf(x) and np.isinf(y) else _OVERFLOW


def _sum(xs: _Numbers) -> str:
    return "inf - inf" if all(np.isinf(x) for x in xs) else _OVERFLOW


def _power(xs: _Numbers) -> str:
    x, y = xs
    if x == 0:
        return "zero to a negative power"
    return "negative number to a fractional power" if x < 0 and y != np.rint(y) else _OVERFLOW


def _outside(name: str, limit: float) -> Callable[[_Numbers], str]:
    def kind(xs: _Numbers) -> str:
        return f"{name} of ±1" if abs(xs[0]) == limit else f"{name} outside of its domain"

    return kind


# Kinds of elementwise primitives, from the numbers that they took.
_KINDS: dict[Primitive, Callable[[_Numbers], str]] = {
    e.log: _logarithm(0),
    e.log2: _logarithm(0),
    e.log10: _logarithm(0),
    e.log1p: _logarithm(1),
    e.sqrt: lambda xs: "square root of a negative number",
    e.mul: _product,
    e.div: _quotient,
    e.add: _sum,
    e.sub: _sum,
    e.power: _power,
    e.integer_pow: lambda xs: "zero to a negative power" if xs[0] == 0 else _OVERFLOW,
    e.reciprocal: lambda xs: "division by zero" if xs[0] == 0 else _OVERFLOW,
    e.arcsin: _outside("arcsin", np.inf),
    e.arccos: _outside("arccos", np.inf),
    e.arccosh: _outside("arccosh", np.inf),
    e.arctanh: _outside("arctanh", 1.0),
    e.remainder: lambda xs: "remainder of a division by zero" if xs[1] == 0 else "remainder of infinity",
    e.fmod: lambda xs: "remainder of a division by zero" if xs[1] == 0 else "remainder of infinity",
    e.floor_divide: _quotient,
    e.sin: lambda xs: "sin of infinity",
    e.cos: lambda xs: "cos of infinity",
    e.tan: lambda xs: "tan of infinity",
}


def kind_of(step: Step) -> str:
    """What made the bad number of an equation, in a few words."""
    if step.error is not None:
        return f"{type(step.error).__name__}: {re.split('[:.]', str(step.error), maxsplit=1)[0]}"
    plain = _plain_kind(step)
    line = step.eqn.line
    if line is None or line.derivative_of is None:
        return plain
    if plain.startswith("square root") and is_derivative_of(line, e.arcsin, e.arccos, e.arccosh):
        return f"{line.derivative_of} outside of its domain"
    pole = next((at for of, at in _POLES.items() if is_derivative_of(line, of)), None)
    if pole is None or plain not in ("division by zero", "0 / 0"):
        return plain
    primes = "'" * line.order
    return f"{line.derivative_of}{primes}({pole})"


def _plain_kind(step: Step) -> str:
    primitive, xs = step.eqn.primitive, step.operands
    if isinstance(primitive, e.Elementwise):
        if any(badness(x) == NAN for x in xs):
            return "NaN"
        if any(map(np.iscomplexobj, xs)) and not any(x == 0 for x in xs):
            return "complex arithmetic"
        if primitive in _KINDS:
            return _KINDS[primitive](xs)
        return _OVERFLOW if np.isinf(step.result) else f"{primitive.name} is not defined there"
    if any(map(is_bad, xs)):
        # A sum, perhaps of products, of what is infinite.
        return "inf - inf, or 0 * inf" if primitive is dot_general else "inf - inf"
    return _OVERFLOW if isinstance(primitive, _SUMS) else f"{primitive.name} is not defined there"


# What adds up or multiplies many numbers: of finite ones it can only make too large ones.
_SUMS = (Reduction, Cumulative, LinearRecurrence, DotGeneral, ScatterAdd)


def advice_on(kind: str, first: Step, is_masked: bool) -> str:
    """What to write instead."""
    line = first.eqn.line
    if is_masked:
        return _MASKED
    if kind == "NaN constant":
        return _ADVICE["constant"]
    if kind.startswith("square root"):
        return _ADVICE["negative"]
    if is_derivative_of(line, e.sqrt, e.cbrt):
        return _ADVICE["sqrt"]
    if "power" in kind or is_derivative_of(line, e.power):
        return _ADVICE["power"]
    if kind.startswith("log"):
        return _ADVICE["logarithm"]
    if "domain" in kind or kind.startswith("arc"):
        return _ADVICE["domain"]
    if kind == _OVERFLOW:
        exponential = first.eqn.primitive in (e.exp, e.exp2, e.expm1, e.sinh, e.cosh)
        return _ADVICE["exponential" if exponential else "size"]
    if kind == "inf - inf":
        return _ADVICE["difference"]
    return _ADVICE["division"] if "0 / 0" in kind or "division" in kind or "reciprocal" in kind else ""


def arithmetic(step: Step) -> str:
    """What an equation computed, with its numbers: `0.5 / 0.0 = inf`."""
    eqn = step.eqn
    if step.error is not None:
        return f"{eqn.primitive.name} of {', '.join(map(_summary, step.operands))}, which fails"
    if isinstance(eqn.primitive, e.Elementwise):
        texts = [_number(x) for x in step.operands]
        text = eqn.primitive.python(texts, eqn.params)
        if text is not None and not text.startswith("np."):
            text = eqn.primitive.python([f"({t})" if t.startswith("-") else t for t in texts], eqn.params)
        if text is not None:
            return f"{text} = {_number(step.result)}"
    return f"{eqn.primitive.name}({', '.join(map(_summary, step.operands))}) = {_number(step.result)}"


def _number(x: Any) -> str:
    return str(np.asarray(x)[()])


def _summary(x: Any) -> str:
    """A short text for an operand: its numbers, or its least and largest ones."""
    if not is_array(x):
        return "..."
    if np.ndim(x) == 0:
        return _number(x)
    if np.size(x) <= 6:
        return np.array2string(np.asarray(x), separator=", ").replace("\n", "")
    kind = f"{x.dtype.name}{list(x.shape)}"
    if np.iscomplexobj(x) or x.dtype.kind not in "fiu":
        return f"<{kind}>"
    return f"<{kind} from {_number(np.min(x))} to {_number(np.max(x))}>"
