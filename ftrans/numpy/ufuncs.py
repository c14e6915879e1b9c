"""The table of NumPy's ufuncs: a row for each, with the primitive that it is, or the rule that makes it of a few.

`ftrans.numpy` exports each name below; traced values and tensors have it as a method.
"""

import math as _math

import numpy as _np

from ..ops import elementwise as _e
from ..ops.elementwise import representation as _representation
from . import ufunc_rules as _rules
from .dispatch import implements as _implements
from .promotion import same_value as _same_value
from .ufunc_entry import binary as _binary
from .ufunc_entry import composed as _composed
from .ufunc_entry import logical as _logical
from .ufunc_entry import unary as _unary

# A ufunc and its primitive; perhaps kinds of dtypes for which another rule replaces the primitive, and that rule.

exp = _unary(_np.exp, _e.exp)
exp2 = _unary(_np.exp2, _e.exp2)
expm1 = _unary(_np.expm1, _e.expm1)
log = _unary(_np.log, _e.log)
log2 = _unary(_np.log2, _e.log2)
log10 = _unary(_np.log10, _e.log10)
log1p = _unary(_np.log1p, _e.log1p)
sqrt = _unary(_np.sqrt, _e.sqrt)
cbrt = _unary(_np.cbrt, _e.cbrt)
square = _unary(_np.square, _e.square)
reciprocal = _unary(_np.reciprocal, _e.reciprocal, "iu", _rules.integer_reciprocal)
negative = _unary(_np.negative, _e.neg)
sin = _unary(_np.sin, _e.sin)
cos = _unary(_np.cos, _e.cos)
tan = _unary(_np.tan, _e.tan)
arcsin = asin = _unary(_np.arcsin, _e.arcsin)
arccos = acos = _unary(_np.arccos, _e.arccos)
arctan = atan = _unary(_np.arctan, _e.arctan)
sinh = _unary(_np.sinh, _e.sinh)
cosh = _unary(_np.cosh, _e.cosh)
tanh = _unary(_np.tanh, _e.tanh)
arcsinh = asinh = _unary(_np.arcsinh, _e.arcsinh)
arccosh = acosh = _unary(_np.arccosh, _e.arccosh)
arctanh = atanh = _unary(_np.arctanh, _e.arctanh)
sign = _unary(_np.sign, _e.sign)
isfinite = _unary(_np.isfinite, _e.isfinite)
isnan = _unary(_np.isnan, _e.isnan)
isinf = _unary(_np.isinf, _e.isinf)
signbit = _unary(_np.signbit, _e.signbit)
invert = bitwise_not = bitwise_invert = _unary(_np.invert, _e.bitwise_not)
rint = _unary(_np.rint, _e.rint)
spacing = _unary(_np.spacing, _representation.spacing)
bitwise_count = _unary(_np.bitwise_count, _representation.bitwise_count)
absolute = abs = _unary(_np.absolute, _e.abs_, "bu", _same_value)
fabs = _unary(_np.fabs, _e.abs_)
floor = _unary(_np.floor, _e.floor, "biu", _same_value)
ceil = _unary(_np.ceil, _e.ceil, "biu", _same_value)
trunc = _unary(_np.trunc, _e.trunc, "biu", _same_value)

add = _binary(_np.add, _e.add, "b", _e.bitwise_or)
subtract = _binary(_np.subtract, _e.sub)
multiply = _binary(_np.multiply, _e.mul, "b", _e.bitwise_and)
divide = true_divide = _binary(_np.divide, _e.div)
maximum = _binary(_np.maximum, _e.maximum)
minimum = _binary(_np.minimum, _e.minimum)
arctan2 = atan2 = _binary(_np.arctan2, _e.arctan2)
hypot = _binary(_np.hypot, _e.hypot)
logaddexp = _binary(_np.logaddexp, _e.logaddexp)
logaddexp2 = _binary(_np.logaddexp2, _e.logaddexp2)
copysign = _binary(_np.copysign, _e.copysign)
nextafter = _binary(_np.nextafter, _e.nextafter)
floor_divide = _binary(_np.floor_divide, _e.floor_divide)
remainder = mod = _binary(_np.remainder, _e.remainder)
fmod = _binary(_np.fmod, _e.fmod)
equal = _binary(_np.equal, _e.eq, "iu", _rules.comparison(_np.equal, _e.eq))
not_equal = _binary(_np.not_equal, _e.ne, "iu", _rules.comparison(_np.not_equal, _e.ne))
less = _binary(_np.less, _e.lt, "iu", _rules.comparison(_np.less, _e.lt))
less_equal = _binary(_np.less_equal, _e.le, "iu", _rules.comparison(_np.less_equal, _e.le))
greater = _binary(_np.greater, _e.gt, "iu", _rules.comparison(_np.greater, _e.gt))
greater_equal = _binary(_np.greater_equal, _e.ge, "iu", _rules.comparison(_np.greater_equal, _e.ge))
bitwise_and = _binary(_np.bitwise_and, _e.bitwise_and)
bitwise_or = _binary(_np.bitwise_or, _e.bitwise_or)
bitwise_xor = _binary(_np.bitwise_xor, _e.bitwise_xor)
left_shift = bitwise_left_shift = _binary(_np.left_shift, _e.left_shift)
right_shift = bitwise_right_shift = _binary(_np.right_shift, _e.right_shift)
gcd = _binary(_np.gcd, _representation.gcd)
lcm = _binary(_np.lcm, _representation.lcm)

# Operands are taken for booleans.

logical_and = _logical(_np.logical_and, _e.bitwise_and)
logical_or = _logical(_np.logical_or, _e.bitwise_or)
logical_xor = _logical(_np.logical_xor, _e.bitwise_xor)
logical_not = _logical(_np.logical_not, _e.bitwise_not)

# What is more than one primitive.

power = pow = _implements(_np.power, keeps_order=True)(_rules.power)
positive = _composed(_np.positive, _same_value)
conjugate = conj = _composed(_np.conjugate, _rules.conjugate)
float_power = _composed(_np.float_power, _e.power)
deg2rad = _composed(_np.deg2rad, _rules.scaled(_math.pi / 180))
rad2deg = _composed(_np.rad2deg, _rules.scaled(180 / _math.pi))
radians = _composed(_np.radians, _rules.scaled(_math.pi / 180))
degrees = _composed(_np.degrees, _rules.scaled(180 / _math.pi))
fmax = _composed(_np.fmax, _rules.ignoring_nan(_e.maximum))
fmin = _composed(_np.fmin, _rules.ignoring_nan(_e.minimum))
heaviside = _composed(_np.heaviside, _rules.heaviside)
ldexp = _implements(_np.ldexp)(_rules.ldexp)
modf = _implements(_np.modf, keeps_order=True)(_rules.modf)
frexp = _implements(_np.frexp)(_rules.frexp)
divmod = _implements(_np.divmod, keeps_order=True)(_rules.divmod)
