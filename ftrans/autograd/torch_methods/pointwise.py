"""Functions of each element: methods of torch's tensors as functions of any value.

Those that NumPy has as ufuncs are these, under all names that either has for them.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...api.elementwise import apply_elementwise
from ...base.source import at_line, user_line
from ...core.types import is_inexact
from ...numpy.methods import ufuncs_by_name
from ...ops.elementwise import logistic
from ...ops.elementwise import relu as relu_primitive
from .arguments import in_dtype_of

# The ufuncs by all names that NumPy and torch have for them.
UFUNCS = ufuncs_by_name() | {
    "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "eq": np.equal, "ne": np.not_equal,
    "not_equal": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "acos": np.arccos, "asin": np.arcsin, "atan": np.arctan, "acosh": np.arccosh, "asinh": np.arcsinh,
    "atanh": np.arctanh, "atan2": np.arctan2, "pow": np.power, "bitwise_not": np.bitwise_not, "fix": np.trunc,
    "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift,
}  # fmt: skip


def relu(x: Any) -> Any:
    """`x` where it is positive, else 0; at 0 the derivative is 0.  NaN stays NaN."""
    return np.maximum(x, x.dtype.type(0)) if x.dtype.kind in "iu" else apply_elementwise(relu_primitive, x)


def sigmoid(x: Any) -> Any:
    """`1 / (1 + exp(-x))`."""
    return apply_elementwise(logistic, x)


def add(x: Any, other: Any, *, alpha: Any = 1) -> Any:
    """`x + alpha * other`."""
    return np.add(x, other if _is_one(alpha) else alpha * other)


def sub(x: Any, other: Any, *, alpha: Any = 1) -> Any:
    """`x - alpha * other`."""
    return np.subtract(x, other if _is_one(alpha) else alpha * other)


def _is_one(alpha: Any) -> bool:
    return isinstance(alpha, int) and alpha == 1


def div(x: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """`x / other`, rounded down by "floor", or towards zero by "trunc"."""
    if rounding_mode is None:
        return np.divide(x, other)
    if rounding_mode == "floor":
        return np.floor_divide(x, other)
    if rounding_mode != "trunc":
        raise ValueError(f'rounding_mode is "floor", "trunc" or None, not {rounding_mode!r}{at_line(user_line())}')
    # For integers, a quotient of floating-point numbers would not be exact.
    return np.floor_divide(x - np.fmod(x, other), other) if x.dtype.kind in "iu" else np.trunc(x / other)


def reciprocal(x: Any) -> Any:
    """One divided by each element; of integers too, where `numpy.reciprocal` gives zeros."""
    return 1 / x


def rsqrt(x: Any) -> Any:
    """One divided by the square root."""
    return 1 / np.sqrt(x)


def frac(x: Any) -> Any:
    """What is behind the point."""
    return x - np.trunc(x)


def sgn(x: Any) -> Any:
    """The sign; of a complex number, it divided by its absolute value."""
    return np.sign(x)


def round_(x: Any, *, decimals: int = 0) -> Any:
    """Rounded to a number of decimals, halves to even numbers."""
    return np.round(x, decimals)


def lerp(x: Any, end: Any, weight: Any) -> Any:
    """`x + weight * (end - x)`."""
    return x + weight * (end - x)


def addcmul(x: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """`x + value * tensor1 * tensor2`."""
    return x + value * (tensor1 * tensor2)


def addcdiv(x: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """`x + value * tensor1 / tensor2`."""
    return x + value * (tensor1 / tensor2)


def logit(x: Any, eps: float | None = None) -> Any:
    """`log(x / (1 - x))`, of `x` clipped to the interval from `eps` to `1 - eps`, if it is given."""
    x = x if eps is None else np.clip(x, eps, 1 - eps)
    return np.log(x) - np.log1p(-x)


def hardshrink(x: Any, lambd: float = 0.5) -> Any:
    """`x` where it is larger than `lambd` or smaller than `-lambd`, else 0."""
    return np.where((x >= -lambd) & (x <= lambd), x.dtype.type(0), x)


def sinc(x: Any) -> Any:
    """`sin(pi x) / (pi x)`."""
    return np.sinc(x)


def isclose(x: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Whether elements are equal up to tolerances."""
    return np.isclose(x, other, rtol, atol, equal_nan)


def allclose(x: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Whether all elements are equal up to tolerances."""
    return np.allclose(x, other, rtol, atol, equal_nan)


def equal(x: Any, other: Any) -> bool:
    """Whether shape and all elements are equal."""
    return bool(np.array_equal(x, other))


def angle(x: Any) -> Any:
    """The angle of complex numbers."""
    return np.angle(x)


def real(x: Any) -> Any:
    """The real part."""
    return np.real(x)


def imag(x: Any) -> Any:
    """The imaginary part."""
    return np.imag(x)


def view_as_real(x: Any) -> Any:
    """The real and the imaginary parts along a new last axis."""
    return np.stack([np.real(x), np.imag(x)], -1)


def view_as_complex(x: Any) -> Any:
    """Complex numbers of which the last axis has the real and the imaginary parts."""
    return x[..., 0] + 1j * x[..., 1]


def _special(name: str) -> Callable[..., Any]:
    """A ufunc of `scipy.special`, which is imported when it is first called."""

    def call(x: Any, *others: Any) -> Any:
        from scipy import special

        return _in_single(getattr(special, name), x, *others)

    call.__doc__ = f"`scipy.special.{name}`."
    return call


def _in_single(function: Callable[..., Any], *xs: Any) -> Any:
    """A function of SciPy, which has none for numbers of two bytes: these are computed in single precision."""
    dtypes = [x.dtype for x in xs if hasattr(x, "dtype")]
    if any(dtype.itemsize != 2 or not is_inexact(dtype) for dtype in dtypes):
        return function(*xs)
    return function(*[x.astype(np.float32) if hasattr(x, "dtype") else x for x in xs]).astype(dtypes[0])


def polygamma(n: int, x: Any) -> Any:
    """The n-th derivative of `digamma`."""
    from ...scipy.special import polygamma as function

    return in_dtype_of(x, _in_single(lambda x: function(n, x), x))


def mvlgamma(x: Any, p: int) -> Any:
    """The logarithm of the multivariate gamma function."""
    return p * (p - 1) / 4 * math.log(math.pi) + sum(METHODS["lgamma"](x - i / 2) for i in range(p))


_SPECIAL = {
    "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "lgamma": "gammaln", "digamma": "psi", "xlogy": "xlogy",
    "i0": "i0", "igamma": "gammainc", "igammac": "gammaincc",
}  # fmt: skip


# What torch calls the second argument of a function.
SECOND = ("other", "exponent")


def _signature(*operands: str) -> inspect.Signature:
    """The parameters of torch's function of each element."""
    kind = inspect.Parameter
    named = [kind(name, kind.POSITIONAL_OR_KEYWORD) for name in operands]
    return inspect.Signature([*named, kind("out", kind.KEYWORD_ONLY, default=None)])


_SIGNATURES = {1: _signature("input"), 2: _signature("input", "other")}
_OF_POWERS = _signature("input", "exponent")


def _named(ufunc: np.ufunc) -> Callable[..., Any]:
    def method(x: Any, *others: Any, **options: Any) -> Any:
        for name in SECOND:
            if name in options:
                others = (*others, options.pop(name))
        return ufunc(x, *others, **options)

    method.__doc__ = f"`numpy.{ufunc.__name__}`."
    is_power = ufunc in (np.power, np.float_power)
    vars(method)["__signature__"] = _OF_POWERS if is_power else _SIGNATURES[ufunc.nin]
    return method


# Those that are more than a function of NumPy or SciPy.
OWN: dict[str, Callable[..., Any]] = {
    "relu": relu, "sigmoid": sigmoid, "add": add, "sub": sub, "subtract": sub, "div": div, "divide": div,
    "true_divide": div, "reciprocal": reciprocal, "rsqrt": rsqrt, "frac": frac, "sgn": sgn, "round": round_,
    "lerp": lerp, "addcmul": addcmul, "addcdiv": addcdiv, "logit": logit, "hardshrink": hardshrink, "sinc": sinc,
    "isclose": isclose, "allclose": allclose, "equal": equal, "angle": angle, "mvlgamma": mvlgamma,
}  # fmt: skip
METHODS: dict[str, Callable[..., Any]] = {
    **{name: _named(ufunc) for name, ufunc in UFUNCS.items()},
    **{name: _special(of_scipy) for name, of_scipy in _SPECIAL.items()},
    "conj": np.conjugate,
    **OWN,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "real": real, "imag": imag, "view_as_real": view_as_real, "view_as_complex": view_as_complex,
    "polygamma": polygamma,
}  # fmt: skip
