"""The operators and methods of tensors, for type checkers: `methods` gives them to the class when it is imported.

Results are tensors, of the class of the first one.  What a method takes is checked when it is called.
"""

# fmt: off
import builtins
from collections.abc import Iterator
from typing import Any, NamedTuple, Self, overload

from ..base.cell import Eager
from ..numpy.array_api import Device
from .tensor import Tensor
from .torch_methods.shared import ElementCount

class ValuesAndIndices(NamedTuple):
    """What `topk`, `sort` and `max(dim=...)` give."""

    values: Tensor
    indices: Tensor

class Declared(Eager):
    """A tensor with all that it can do."""

    def _operation(self, other: Any) -> Self: ...
    def _negation(self) -> Self: ...
    def _method(self, *args: Any, **kwargs: Any) -> Self: ...
    def _whole(self) -> builtins.int: ...
    def _answer(self, *args: Any, **kwargs: Any) -> builtins.bool: ...
    def _parts(self, *args: Any, **kwargs: Any) -> tuple[Self, ...]: ...
    def _mixed(self, *args: Any, **kwargs: Any) -> Any: ...
    def _pair(self, *args: Any, **kwargs: Any) -> ValuesAndIndices: ...
    @overload
    def _extreme(self) -> Self: ...
    @overload
    def _extreme(self, *, axis: Any, keepdims: builtins.bool = False) -> Self: ...
    @overload
    def _extreme(self, *, dim: builtins.int, keepdim: builtins.bool = False) -> ValuesAndIndices: ...
    @overload
    def _extreme(self, *args: Any, **kwargs: Any) -> Any: ...

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _operation
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _operation
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = _operation
    __rrshift__ = _operation
    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = __imatmul__ = _operation
    __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = _operation
    __lt__ = __le__ = __gt__ = __ge__ = _operation
    __neg__ = __pos__ = __abs__ = __invert__ = _negation
    __divmod__ = __rdivmod__ = _mixed

    def __eq__(self, other: object) -> Self: ...  # type: ignore[override]
    def __ne__(self, other: object) -> Self: ...  # type: ignore[override]
    def __hash__(self) -> builtins.int: ...
    def __getitem__(self, index: Any) -> Self: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...
    def __len__(self) -> builtins.int: ...
    def __iter__(self) -> Iterator[Self]: ...
    def __contains__(self, value: object) -> builtins.bool: ...
    def __bool__(self) -> builtins.bool: ...
    def __int__(self) -> builtins.int: ...
    def __index__(self) -> builtins.int: ...
    def __float__(self) -> builtins.float: ...
    def __complex__(self) -> complex: ...
    def __round__(self, digits: builtins.int | None = None) -> Self: ...

    T: Self
    mT: Self
    real: Self
    imag: Self
    flat: Any
    device: Device
    itemsize: builtins.int
    nbytes: builtins.int

    @property
    def size(self) -> ElementCount: ...
    def backward(
        self,
        gradient: Any = None,
        retain_graph: builtins.bool | None = None,
        create_graph: builtins.bool = False,
        inputs: Any = None,
    ) -> None: ...
    def fill(self, value: Any) -> None: ...
    def put(self, *args: Any, **kwargs: Any) -> Any: ...

    dim = element_size = ndimension = nelement = numel = _whole
    allclose = equal = is_complex = is_contiguous = is_floating_point = is_signed = _answer
    chunk = dsplit = hsplit = split = split_with_sizes = tensor_split = unbind = vsplit = _parts
    cummax = cummin = kthvalue = mode = sort = topk = _pair
    max = median = min = nanmedian = _extreme
    aminmax = divmod = frexp = modf = nonzero = qr = slogdet = svd = type = unique = unique_consecutive = _mixed
    abs = abs_ = absolute = absolute_ = acos = acos_ = acosh = acosh_ = add = add_ = addbmm = addbmm_ = _method
    addcdiv = addcdiv_ = addcmul = addcmul_ = addmm = addmm_ = addmv = addmv_ = addr = addr_ = adjoint = _method
    all = amax = amin = angle = any = arccos = arccos_ = arccosh = arccosh_ = arcsin = arcsin_ = arcsinh = _method
    arcsinh_ = arctan = arctan2 = arctan2_ = arctan_ = arctanh = arctanh_ = argmax = argmin = _method
    argpartition = argsort = argwhere = asin = asin_ = asinh = asinh_ = astype = atan = atan2 = atan2_ = _method
    atan_ = atanh = atanh_ = baddbmm = baddbmm_ = bernoulli = bernoulli_ = bfloat16 = bincount = _method
    bitwise_and = bitwise_count = bitwise_invert = bitwise_left_shift = bitwise_not = bitwise_or = _method
    bitwise_right_shift = bitwise_xor = bmm = bool = broadcast_to = byte = cauchy_ = cbrt = cbrt_ = _method
    cdouble = ceil = ceil_ = cfloat = char = cholesky = choose = clamp = clamp_ = clamp_max = clamp_max_ = _method
    clamp_min = clamp_min_ = clip = clip_ = clone = compress = conj = conj_ = conjugate = conjugate_ = _method
    contiguous = copy = copy_ = copysign = copysign_ = corrcoef = cos = cos_ = cosh = cosh_ = _method
    count_nonzero = cov = cpu = cross = cumprod = cumprod_ = cumsum = cumsum_ = deg2rad = deg2rad_ = _method
    degrees = degrees_ = det = diag = diag_embed = diagflat = diagonal = diff = digamma = digamma_ = dist = _method
    div = div_ = divide = divide_ = dot = double = eq = erf = erf_ = erfc = erfc_ = erfinv = erfinv_ = _method
    exp = exp2 = exp2_ = exp_ = expand = expand_as = expm1 = expm1_ = exponential_ = fabs = fabs_ = fill_ = _method
    fill_diagonal_ = fix = fix_ = flatten = flip = fliplr = flipud = float = float_power = float_power_ = _method
    floor = floor_ = floor_divide = floor_divide_ = fmax = fmax_ = fmin = fmin_ = fmod = fmod_ = frac = _method
    frac_ = gather = gcd = ge = geometric_ = ger = greater = greater_equal = gt = half = hardshrink = _method
    heaviside = heaviside_ = histc = hypot = hypot_ = i0 = igamma = igammac = index_add = index_add_ = _method
    index_copy = _method
    index_copy_ = index_fill = index_fill_ = index_put = index_put_ = index_select = inner = int = _method
    inverse = invert = isclose = isfinite = isinf = isnan = kron = lcm = ldexp = le = left_shift = lerp = _method
    lerp_ = less = less_equal = lgamma = lgamma_ = log = log10 = log10_ = log1p = log1p_ = log2 = log2_ = _method
    log_ = log_normal_ = log_softmax = logaddexp = logaddexp2 = logaddexp2_ = logaddexp_ = logcumsumexp = _method
    logdet = logical_and = logical_not = logical_or = logical_xor = logit = logit_ = logsumexp = long = _method
    lt = masked_fill = masked_fill_ = masked_scatter = masked_scatter_ = masked_select = matmul = _method
    matrix_power = maximum = maximum_ = mean = minimum = minimum_ = mm = mod = mod_ = moveaxis = movedim = _method
    msort = mul = mul_ = multinomial = multiply = multiply_ = mv = mvlgamma = nan_to_num = nan_to_num_ = _method
    nanmean = nanquantile = nansum = narrow = ne = neg = neg_ = negative = negative_ = new_empty = _method
    new_full = new_ones = new_tensor = new_zeros = nextafter = nextafter_ = norm = normal_ = not_equal = _method
    outer = permute = pinverse = positive = positive_ = pow = pow_ = power = power_ = prod = put_ = _method
    quantile = rad2deg = rad2deg_ = radians = radians_ = random_ = ravel = reciprocal = reciprocal_ = _method
    relu = relu_ = remainder = remainder_ = renorm = renorm_ = repeat = repeat_interleave = reshape = _method
    reshape_as = right_shift = rint = rint_ = roll = rot90 = round = round_ = rsqrt = rsqrt_ = scatter = _method
    scatter_ = scatter_add = scatter_add_ = scatter_reduce = scatter_reduce_ = searchsorted = select = _method
    select_scatter = sgn = short = sigmoid = sigmoid_ = sign = sign_ = signbit = sin = sin_ = sinc = sinh = _method
    sinh_ = slice_scatter = softmax = spacing = spacing_ = sqrt = sqrt_ = square = square_ = squeeze = _method
    std = sub = sub_ = subtract = subtract_ = sum = sum_to_size = swapaxes = swapdims = t = take = _method
    take_along_dim = tan = tan_ = tanh = tanh_ = tile = to = to_device = trace = transpose = tril = tril_ = _method
    triu = triu_ = true_divide = true_divide_ = trunc = trunc_ = type_as = unflatten = unfold = uniform_ = _method
    unsqueeze = var = vdot = view = view_as = where = xlogy = zero_ = _method
