"""Primitives that act on each element by itself.

An elementwise primitive states its NumPy function, its XLA function and its partial derivatives; types, batching
and absent tangents belong to the family.  Linear ones state their transpose as well.
"""

# ruff: noqa: F401 - what is imported here is what the package holds

from .activations import relu, softplus, softsign
from .conversions import complex_, conj, convert, imag, placeholder, real, stop_gradient, with_value
from .family import Elementwise, add, div, mul, neg, singular_slope, sub
from .functions import (
    abs_,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    cbrt,
    copysign,
    cos,
    cosh,
    cosine,
    exp,
    exp2,
    expm1,
    hypot,
    lerp,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    logistic,
    maximum,
    minimum,
    nextafter,
    one_minus_square,
    root,
    sech_square,
    sign,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)
from .logic import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    eq,
    ge,
    gt,
    isfinite,
    isinf,
    isnan,
    le,
    left_shift,
    lt,
    ne,
    right_shift,
    select,
    signbit,
)
from .powers import integer_pow, power, reciprocal, square
from .rounding import ceil, floor, floor_divide, fmod, remainder, rint, trunc
