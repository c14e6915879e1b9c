"""The functions, dtypes and constants of `ftrans.autograd` that tables give to it, for type checkers.

Functions of tensors return tensors; those of arrays and traced values return what these are.  What a function takes is
checked when it is called.
"""

# fmt: off
import builtins
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from .. import autograd as autograd
from .declarations import ValuesAndIndices
from .tensor import Tensor

__all__: list[str] = [
    "Size", "abs", "absolute", "acos", "acosh", "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr",
    "adjoint", "all", "allclose", "amax", "amin", "aminmax", "angle", "any", "arccos", "arccosh", "arcsin",
    "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin", "argsort", "argwhere", "asin", "asinh", "atan",
    "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "autograd", "baddbmm", "bfloat16", "bincount",
    "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "bmm", "bool", "broadcast_tensors", "broadcast_to", "bucketize",
    "cartesian_prod", "cat", "cbrt", "cdist", "cdouble", "ceil", "cfloat", "cholesky", "chunk", "clamp",
    "clamp_max", "clamp_min", "clip", "clone", "column_stack", "complex64", "complex128", "concat", "concatenate",
    "conj", "conjugate", "copysign", "corrcoef", "cos", "cosh", "count_nonzero", "cov", "cross", "cummax", "cummin",
    "cumprod", "cumsum", "deg2rad", "degrees", "det", "detach", "diag", "diag_embed", "diagflat", "diagonal",
    "diff", "digamma", "dist", "distributions", "div", "divide", "divmod", "dot", "double", "dsplit", "dstack", "e",
    "einsum", "eq", "equal", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "fabs", "finfo", "fix", "flatten",
    "flip", "fliplr", "flipud", "float", "float16", "float32", "float64", "float_power", "floor", "floor_divide",
    "fmax", "fmin", "fmod", "frac", "frexp", "gather", "gcd", "ge", "ger", "greater", "greater_equal", "gt", "half",
    "hardshrink", "heaviside", "histc", "hsplit", "hstack", "hypot", "i0", "igamma", "igammac", "iinfo", "imag",
    "index_add", "index_copy", "index_fill", "index_put", "index_select", "inf", "inner", "int", "int8", "int16",
    "int32", "int64", "inverse", "invert", "is_complex", "is_floating_point", "is_signed", "isclose", "isfinite",
    "isinf", "isnan", "kron", "kthvalue", "lcm", "ldexp", "le", "left_shift", "lerp", "less", "less_equal",
    "lgamma", "log", "log1p", "log2", "log10", "log_softmax", "logaddexp", "logaddexp2", "logcumsumexp", "logdet",
    "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "logsumexp", "long", "lt", "masked_fill",
    "masked_scatter", "masked_select", "matmul", "matrix_power", "max", "maximum", "mean", "median", "meshgrid",
    "min", "minimum", "mm", "mod", "mode", "modf", "moveaxis", "movedim", "msort", "mul", "multiply", "mv",
    "mvlgamma", "nan", "nan_to_num", "nanmean", "nanmedian", "nanquantile", "nansum", "narrow", "ne", "neg",
    "negative", "newaxis", "nextafter", "nn", "nonzero", "norm", "not_equal", "numel", "optim", "outer", "permute",
    "pi", "pinverse", "polygamma", "positive", "pow", "power", "prod", "put", "qr", "quantile", "rad2deg",
    "radians", "ravel", "real", "reciprocal", "relu", "remainder", "renorm", "repeat_interleave", "reshape",
    "right_shift", "rint", "roll", "rot90", "round", "rsqrt", "scatter", "scatter_add", "scatter_reduce",
    "searchsorted", "select", "select_scatter", "sgn", "short", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh",
    "slice_scatter", "slogdet", "softmax", "sort", "spacing", "split", "split_with_sizes", "sqrt", "square",
    "squeeze", "stack", "std", "sub", "subtract", "sum", "svd", "swapaxes", "swapdims", "t", "take",
    "take_along_dim", "tan", "tanh", "tensor_split", "tensordot", "tile", "topk", "trace", "transpose", "tril",
    "triu", "true_divide", "trunc", "uint8", "uint16", "uint32", "uint64", "unbind", "unflatten", "unique",
    "unique_consecutive", "unsqueeze", "utils", "var", "vdot", "view_as_complex", "view_as_real", "vsplit",
    "vstack", "where", "xlogy",
]

# Modules that `ftrans.nn` provides, a layer above this one.
nn: Any
optim: Any
utils: Any
distributions: Any

@overload
def _function(input: Tensor, /, *args: Any, **kwargs: Any) -> Tensor: ...
@overload
def _function(*args: Any, **kwargs: Any) -> Any: ...
@overload
def _of_several(tensors: Sequence[Tensor], /, *args: Any, **kwargs: Any) -> Tensor: ...
@overload
def _of_several(*args: Any, **kwargs: Any) -> Any: ...
@overload
def _parts(*tensors: Tensor) -> tuple[Tensor, ...]: ...
@overload
def _parts(input: Tensor, /, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]: ...
@overload
def _parts(*args: Any, **kwargs: Any) -> Any: ...
@overload
def _pair(input: Tensor, /, *args: Any, **kwargs: Any) -> ValuesAndIndices: ...
@overload
def _pair(*args: Any, **kwargs: Any) -> Any: ...
@overload
def _extreme(input: Tensor, /) -> Tensor: ...
@overload
def _extreme(input: Tensor, other: Tensor, /) -> Tensor: ...
@overload
def _extreme(input: Tensor, /, dim: builtins.int, keepdim: builtins.bool = False) -> ValuesAndIndices: ...
@overload
def _extreme(*args: Any, **kwargs: Any) -> Any: ...
@overload
def einsum(equation: builtins.str, *operands: Tensor) -> Tensor: ...
@overload
def einsum(*args: Any, **kwargs: Any) -> Any: ...
def _whole(*args: Any, **kwargs: Any) -> builtins.int: ...
def _answer(*args: Any, **kwargs: Any) -> builtins.bool: ...
def _mixed(*args: Any, **kwargs: Any) -> Any: ...

numel = _whole
allclose = equal = is_complex = is_floating_point = is_signed = _answer
broadcast_tensors = chunk = dsplit = hsplit = meshgrid = split = split_with_sizes = tensor_split = unbind = _parts
vsplit = _parts
cummax = cummin = kthvalue = mode = sort = topk = _pair
max = median = min = nanmedian = _extreme
cat = column_stack = concat = concatenate = dstack = hstack = stack = vstack = _of_several
aminmax = atleast_1d = atleast_2d = atleast_3d = divmod = frexp = modf = nonzero = qr = slogdet = svd = unique = _mixed
unique_consecutive = _mixed
abs = absolute = acos = acosh = add = addbmm = addcdiv = addcmul = addmm = addmv = addr = adjoint = all = _function
amax = amin = angle = any = arccos = arccosh = arcsin = arcsinh = arctan = arctan2 = arctanh = argmax = _function
argmin = argsort = argwhere = asin = asinh = atan = atan2 = atanh = baddbmm = bincount = bitwise_and = _function
bitwise_count = bitwise_invert = bitwise_left_shift = bitwise_not = bitwise_or = bitwise_right_shift = _function
bitwise_xor = bmm = broadcast_to = bucketize = cartesian_prod = cbrt = cdist = ceil = cholesky = clamp = _function
clamp_max = clamp_min = clip = clone = conj = conjugate = copysign = corrcoef = cos = cosh = count_nonzero = _function
cov = cross = cumprod = cumsum = deg2rad = degrees = det = detach = diag = diag_embed = diagflat = _function
diagonal = diff = digamma = dist = div = divide = dot = eq = erf = erfc = erfinv = exp = exp2 = expm1 = _function
fabs = fix = flatten = flip = fliplr = flipud = float_power = floor = floor_divide = fmax = fmin = fmod = _function
frac = gather = gcd = ge = ger = greater = greater_equal = gt = hardshrink = heaviside = histc = hypot = i0 = _function
igamma = igammac = imag = index_add = index_copy = index_fill = index_put = index_select = inner = _function
inverse = invert = isclose = isfinite = isinf = isnan = kron = lcm = ldexp = le = left_shift = lerp = less = _function
less_equal = lgamma = log = log10 = log1p = log2 = log_softmax = logaddexp = logaddexp2 = logcumsumexp = _function
logdet = logical_and = logical_not = logical_or = logical_xor = logit = logsumexp = lt = masked_fill = _function
masked_scatter = masked_select = matmul = matrix_power = maximum = mean = minimum = mm = mod = moveaxis = _function
movedim = msort = mul = multiply = mv = mvlgamma = nan_to_num = nanmean = nanquantile = nansum = narrow = _function
ne = neg = negative = nextafter = norm = not_equal = outer = permute = pinverse = polygamma = positive = _function
pow = power = prod = put = quantile = rad2deg = radians = ravel = real = reciprocal = relu = remainder = _function
renorm = repeat_interleave = reshape = right_shift = rint = roll = rot90 = round = rsqrt = scatter = _function
scatter_add = scatter_reduce = searchsorted = select = select_scatter = sgn = sigmoid = sign = signbit = _function
sin = sinc = sinh = slice_scatter = softmax = spacing = sqrt = square = squeeze = std = sub = subtract = _function
sum = swapaxes = swapdims = t = take = take_along_dim = tan = tanh = tensordot = tile = trace = transpose = _function
tril = triu = true_divide = trunc = unflatten = unsqueeze = var = vdot = view_as_complex = view_as_real = _function
where = xlogy = _function

bfloat16: np.dtype[Any]
bool: np.dtype[Any]
cdouble: np.dtype[Any]
cfloat: np.dtype[Any]
complex128: np.dtype[Any]
complex64: np.dtype[Any]
double: np.dtype[Any]
float: np.dtype[Any]
float16: np.dtype[Any]
float32: np.dtype[Any]
float64: np.dtype[Any]
half: np.dtype[Any]
int: np.dtype[Any]
int16: np.dtype[Any]
int32: np.dtype[Any]
int64: np.dtype[Any]
int8: np.dtype[Any]
long: np.dtype[Any]
short: np.dtype[Any]
uint16: np.dtype[Any]
uint32: np.dtype[Any]
uint64: np.dtype[Any]
uint8: np.dtype[Any]
e: builtins.float
inf: builtins.float
nan: builtins.float
newaxis: None
pi: builtins.float
Size = tuple
finfo = np.finfo
iinfo = np.iinfo
