"""Second names of functions, as NumPy has them."""

from .creation import asarray
from .joining import concatenate
from .manipulation import may_share_memory, transpose
from .pointwise import round
from .reductions import max, min
from .ufuncs import (
    absolute,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    conjugate,
    divide,
    invert,
    left_shift,
    power,
    remainder,
    right_shift,
)

abs = absolute
acos = arccos
acosh = arccosh
amax = max
amin = min
around = round
asanyarray = asarray
asin = arcsin
asinh = arcsinh
atan = arctan
atan2 = arctan2
atanh = arctanh
bitwise_invert = invert
bitwise_left_shift = left_shift
bitwise_not = invert
bitwise_right_shift = right_shift
concat = concatenate
conj = conjugate
mod = remainder
permute_dims = transpose
pow = power
shares_memory = may_share_memory
true_divide = divide
