"""Names and arguments of torch's tensors that arrays do not have, and what to write instead.

Code written for torch meets arrays of NumPy, traced values, tensors and cells of modules.  What one of them lacks is an
error anywhere; here is the part of the message that says how NumPy, or `nn.functional`, spells it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Set
from typing import Any

import numpy as np

from ..base.foreign import Said
from ..base.source import at_line, line_of_error, user_line

_F = "from ftrans.nn import functional as F"
INSTEAD = {
    # Axes and shapes
    "at": "x = x.copy(); x[i] = value, which is recorded",  # of JAX
    "permute": "np.transpose(x, axes)",
    "unsqueeze": "np.expand_dims(x, axis), or x[:, None]",
    "unsqueeze_": "x = np.expand_dims(x, axis)",
    "squeeze_": "x = x.squeeze(axis)",
    "transpose_": "x = np.swapaxes(x, axis1, axis2)",
    "t": "x.T",
    "t_": "x = x.T",
    "adjoint": "np.conj(x.mT)",
    "movedim": "np.moveaxis(x, source, destination)",
    "moveaxis": "np.moveaxis(x, source, destination)",
    "swapdims": "np.swapaxes(x, axis1, axis2)",
    "contiguous": "x as it is: memory layout does not matter here",
    "is_contiguous": "not needed: memory layout does not matter here",
    "stride": "not needed: memory layout does not matter here",
    "as_strided": "an index, or np.lib.stride_tricks.sliding_window_view(x, shape)",
    "broadcast_to": "np.broadcast_to(x, shape)",
    "sum_to_size": "np.sum(x, axes, keepdims=True)",
    "expand": "np.broadcast_to(x, shape)",
    "expand_as": "np.broadcast_to(x, other.shape)",
    "view_as": "x.reshape(other.shape)",
    "reshape_as": "x.reshape(other.shape)",
    "unflatten": "x.reshape(shape)",
    "unfold": "np.lib.stride_tricks.sliding_window_view(x, size, axis), or F.unfold for images",
    "tile": "np.tile(x, reps)",
    "repeat_interleave": "np.repeat(x, repeats, axis)",
    "roll": "np.roll(x, shifts, axis)",
    "flip": "np.flip(x, axis)",
    "fliplr": "np.fliplr(x)",
    "flipud": "np.flipud(x)",
    "resize_": "x = x.reshape(shape), or np.resize(x, shape) for another number of elements",
    "rot90": "np.rot90(x, k, axes)",
    "dim": "x.ndim",
    "ndimension": "x.ndim",
    "numel": "x.size",
    "nelement": "x.size",
    # Parts, and putting together
    "split": "np.split(x, range(size, x.shape[axis], size), axis)",
    "split_with_sizes": "np.split(x, np.cumsum(sizes)[:-1], axis)",
    "chunk": "np.array_split(x, chunks, axis), whose parts differ by one at most where torch's last one is shorter",
    "tensor_split": "np.array_split(x, sections, axis)",
    "hsplit": "np.hsplit(x, sections)",
    "vsplit": "np.vsplit(x, sections)",
    "dsplit": "np.dsplit(x, sections)",
    "unbind": "[*np.moveaxis(x, axis, 0)]",
    "select": "np.take(x, index, axis), or x[:, index]",
    "narrow": "a slice, x[:, start:start + length]",
    "index_select": "np.take(x, index, axis)",
    "masked_select": "x[mask]",
    "gather": "np.take_along_axis(x, index, axis)",
    "take_along_dim": "np.take_along_axis(x, index, axis)",
    "cat": "np.concatenate([x, y], axis)",
    "diag": "np.diag(x)",
    "diagflat": "np.diagflat(x)",
    "diag_embed": "x[..., None] * np.eye(x.shape[-1])",
    "tril": "np.tril(x)",
    "triu": "np.triu(x)",
    # Choices and changes
    "masked_fill": "np.where(mask, value, x)",
    "masked_fill_": "x = np.where(mask, value, x), or x[mask] = value",
    "masked_scatter": "y = x.copy(); y[mask] = source",
    "where": "np.where(condition, x, other)",
    "clamp": "np.clip(x, min, max)",
    "clamp_": "x = np.clip(x, min, max)",
    "clip_": "x = np.clip(x, min, max)",
    "clamp_min": "np.maximum(x, min)",
    "clamp_max": "np.minimum(x, max)",
    "scatter": "y = x.copy(); np.put_along_axis(y, index, values, axis)",
    "scatter_": "np.put_along_axis(x, index, values, axis)",
    "scatter_reduce": "y = x.copy(); np.add.at(y, indices, values), or the same of np.multiply, np.maximum, np.minimum",
    "select_scatter": "y = x.copy(); y[index] = source",
    "slice_scatter": "y = x.copy(); y[start:end] = source",
    "fill_diagonal": "y = x.copy(); np.fill_diagonal(y, value)",
    "fill_diagonal_": "np.fill_diagonal(x, value)",
    "scatter_add": "y = x.copy(); np.add.at(y, indices, values)",
    "scatter_add_": "np.add.at(x, indices, values)",
    "index_add": "y = x.copy(); np.add.at(y, index, values)",
    "index_add_": "np.add.at(x, index, values)",
    "index_copy": "y = x.copy(); y[index] = values",
    "index_copy_": "x[index] = values",
    "index_fill": "y = x.copy(); y[index] = value",
    "index_fill_": "x[index] = value",
    "index_put": "y = x.copy(); y[indices] = values",
    "index_put_": "x[indices] = values",
    "put_": "np.put(x, indices, values)",
    "zero_": "x[...] = 0",
    "fill_": "x[...] = value",
    "copy_": "x[...] = source",
    "nan_to_num": "np.nan_to_num(x)",
    # Order
    "topk": "i = np.flip(np.argsort(x, axis), axis)[..., :k] for the last axis, and np.take_along_axis(x, i, axis)",
    "kthvalue": "np.sort(x, axis), and the element k - 1 of it",
    "msort": "np.sort(x, axis=0)",
    "median": "np.median(x, axis), the mean of the two in the middle where torch takes the lower one",
    "nanmedian": "np.nanmedian(x, axis), the mean of the two in the middle where torch takes the lower one",
    "quantile": "np.quantile(x, q, axis)",
    "nanquantile": "np.nanquantile(x, q, axis)",
    "cummax": "np.maximum.accumulate(x, axis)",
    "cummin": "np.minimum.accumulate(x, axis)",
    "unique": "np.unique(x)",
    "unique_consecutive": "x[np.append(True, x[1:] != x[:-1])]",
    "argwhere": "np.argwhere(x)",
    "amax": "np.max(x, axis)",
    "amin": "np.min(x, axis)",
    "aminmax": "np.min(x, axis) and np.max(x, axis)",
    "mode": "np.unique(x, return_counts=True), and the value with the largest count",
    "bincount": "np.bincount(x)",
    "histc": "np.histogram(x, bins, (min, max))[0]",
    "count_nonzero": "np.count_nonzero(x, axis)",
    # Sums and norms
    "norm": "np.linalg.norm(x, ord, axis), or np.linalg.vector_norm(x, ord=p)",
    "dist": "np.linalg.vector_norm(x - y, ord=p)",
    "renorm": "x / np.maximum(1, np.linalg.vector_norm(x, axis=axes, ord=p, keepdims=True) / largest)",
    "logsumexp": "scipy.special.logsumexp(x, axis), or np.logaddexp.reduce(x, axis)",
    "logcumsumexp": "np.logaddexp.accumulate(x, axis)",
    "nansum": "np.nansum(x, axis)",
    "nanmean": "np.nanmean(x, axis)",
    "diff": "np.diff(x, n, axis)",
    "cov": "np.cov(x)",
    "corrcoef": "np.corrcoef(x)",
    # Products and matrices
    "mm": "x @ y",
    "bmm": "x @ y",
    "mv": "x @ v",
    "matmul": "x @ y",
    "addmm": "x + a @ b",
    "addmv": "x + a @ v",
    "addbmm": "x + np.sum(a @ b, 0)",
    "addr": "x + np.outer(a, b)",
    "vdot": "np.vdot(x, y)",
    "baddbmm": "x + a @ b",
    "addcmul": "x + value * a * b",
    "addcdiv": "x + value * a / b",
    "outer": "np.outer(x, y)",
    "ger": "np.outer(x, y)",
    "inner": "np.inner(x, y)",
    "cross": "np.cross(x, y, axis=axis)",
    "kron": "np.kron(x, y)",
    "det": "np.linalg.det(x)",
    "logdet": "np.linalg.slogdet(x).logabsdet",
    "slogdet": "np.linalg.slogdet(x)",
    "inverse": "np.linalg.inv(x)",
    "pinverse": "np.linalg.pinv(x)",
    "cholesky": "np.linalg.cholesky(x)",
    "qr": "np.linalg.qr(x)",
    "svd": "np.linalg.svd(x, full_matrices=False), whose third result is V transposed",
    "matrix_power": "np.linalg.matrix_power(x, n)",
    # Functions of each element
    "softmax": f"F.softmax(x, dim) ({_F})",
    "log_softmax": f"F.log_softmax(x, dim) ({_F})",
    "sigmoid": f"F.sigmoid(x) ({_F})",
    "relu": f"F.relu(x) ({_F})",
    "hardshrink": f"F.hardshrink(x) ({_F})",
    "fix": "np.trunc(x)",
    "sgn": "np.sign(x)",
    "angle": "np.angle(x)",
    "i0": "scipy.special.i0(x)",
    "igamma": "scipy.special.gammainc(x, y)",
    "igammac": "scipy.special.gammaincc(x, y)",
    "round": "np.round(x)",
    "cumsum": "np.cumsum(x, axis)",
    "cumprod": "np.cumprod(x, axis)",
    "rsqrt": "1 / np.sqrt(x)",
    "reciprocal": "1 / x",
    "frac": "x - np.trunc(x)",
    "lerp": "x + weight * (end - x)",
    "true_divide": "x / y",
    "floor_divide": "x // y",
    "logit": "np.log(x / (1 - x))",
    "erf": "scipy.special.erf(x)",
    "erfc": "scipy.special.erfc(x)",
    "erfinv": "scipy.special.erfinv(x)",
    "lgamma": "scipy.special.gammaln(x)",
    "digamma": "scipy.special.digamma(x)",
    "mvlgamma": "scipy.special.multigammaln(x, p)",
    "xlogy": "scipy.special.xlogy(x, y)",
    "sinc": "np.sinc(x)",
    "isclose": "np.isclose(x, y)",
    "allclose": "np.allclose(x, y)",
    "equal": "np.array_equal(x, y)",
    "eq": "x == y",
    "ne": "x != y",
    "lt": "x < y",
    "le": "x <= y",
    "gt": "x > y",
    "ge": "x >= y",
    "add": "x + y",
    "sub": "x - y",
    "mul": "x * y",
    "div": "x / y",
    "neg": "-x",
    "pow": "x ** y",
    "abs": "np.abs(x)",
    "exp": "np.exp(x)",
    "log": "np.log(x)",
    "sqrt": "np.sqrt(x)",
    "square": "np.square(x)",
    "sin": "np.sin(x)",
    "cos": "np.cos(x)",
    "tanh": "np.tanh(x)",
    "sign": "np.sign(x)",
    "floor": "np.floor(x)",
    "ceil": "np.ceil(x)",
    "bitwise_and": "x & y",
    "bitwise_or": "x | y",
    "bitwise_xor": "x ^ y",
    "bitwise_not": "~x",
    # Dtypes, memory and places
    "float": "x.astype(np.float32)",
    "double": "x.astype(np.float64)",
    "cfloat": "x.astype(np.complex64)",
    "cdouble": "x.astype(np.complex128)",
    "is_signed": "not np.issubdtype(x.dtype, np.unsignedinteger)",
    "half": "x.astype(np.float16)",
    "bfloat16": 'x.astype("bfloat16")',
    "byte": "x.astype(np.uint8)",
    "char": "x.astype(np.int8)",
    "short": "x.astype(np.int16)",
    "long": "x.astype(np.int64)",
    "int": "x.astype(np.int32)",
    "bool": "x.astype(bool)",
    "to": "x.astype(dtype); where arrays are is up to JAX",
    "type": "x.dtype, or x.astype(dtype)",
    "type_as": "x.astype(other.dtype)",
    "is_floating_point": "np.issubdtype(x.dtype, np.floating)",
    "is_complex": "np.iscomplexobj(x)",
    "element_size": "x.itemsize",
    "clone": "x.copy()",
    "numpy": "x as it is where it is an array; a traced value has no array to give",
    "detach": "ft.stop_gradient(x)",
    "cpu": "x as it is",
    "cuda": "x as it is: compiled code (ft.jit, nn.jit) runs on JAX's default device, and model.cuda() moves a model",
    "pin_memory": "x as it is",
    "is_cuda": "x.device",
    "layout": "not needed: arrays are dense",
    "storage": "x.numpy()",
    "data_ptr": "not needed: memory layout does not matter here",
    "requires_grad": "not needed: ft.grad and nn.grad say what is differentiated; ft.autograd.tensor makes what has it",
    "requires_grad_": "ft.autograd.tensor(x, requires_grad=True)",
    "backward": "ft.grad or nn.value_and_grad around the function, or start from ft.autograd.tensor(x)",
    "new_zeros": "np.zeros(shape, x.dtype)",
    "new_ones": "np.ones(shape, x.dtype)",
    "new_full": "np.full(shape, value, x.dtype)",
    "new_empty": "np.empty(shape, x.dtype)",
    "new_tensor": "np.asarray(data, x.dtype)",
    "normal_": "nn.init.normal_ for parameters, or np.random.default_rng(seed).normal(size=x.shape)",
    "uniform_": "nn.init.uniform_ for parameters, or np.random.default_rng(seed).uniform(size=x.shape)",
    "bernoulli": "nn.random.bernoulli(key, p)",
    "bernoulli_": "nn.random.bernoulli(key, p)",
    "multinomial": "nn.random.categorical(key, logits)",
}  # fmt: skip


def instead(name: str) -> str | None:
    """What to write in place of a name of torch that arrays do not have; None for other names."""
    if name in INSTEAD:
        return INSTEAD[name]
    if name.endswith("_") and not name.startswith("_"):
        found = instead(name[:-1])
        return None if found is None else f"x = {found}"
    ufunc = getattr(np, name, None)
    if not isinstance(ufunc, np.ufunc):
        return None
    return f"np.{name}(x)" if ufunc.nin == 1 else f"np.{name}(x, y)"


def missing(x: str, name: str) -> AttributeError:
    """The error for an attribute that a value, described as `x`, does not have."""
    found = instead(name)
    end = "" if found is None else f". Instead: {found}{at_line(user_line())}"
    return AttributeError(f"{x} has no attribute {name!r}{end}", name=name)


class Absent:
    """A name that a class does not have, whose error says what to write instead.

    A `__getattr__` could say it for all names, but would make each access to an attribute five times as slow.

    Args:
        name: the name.
        described: what an object of the class is called in messages.
    """

    __slots__ = ("_described", "_name")

    def __init__(self, name: str, described: Callable[[Any], str]) -> None:
        self._name = name
        self._described = described

    def __get__(self, x: Any, cls: type) -> Any:
        raise missing(cls.__name__ if x is None else self._described(x), self._name)


def advise(cls: type, described: Callable[[Any], str], internal: Set[str] = frozenset()) -> None:
    """Let a class say what to write in place of names of torch that it does not have.

    Args:
        cls: the class.
        described: what an object of the class is called in messages.
        internal: names that it has, but not for users: `dir` lists neither them nor those that it does not have.
    """
    names = {*INSTEAD, *(name for name in dir(np) if isinstance(getattr(np, name), np.ufunc))}
    absent = {name for name in names | {f"{name}_" for name in names} if not hasattr(cls, name)}
    for name in absent:
        setattr(cls, name, Absent(name, described))
    unlisted = absent | internal
    setattr(cls, "__dir__", lambda self: sorted({*object.__dir__(self)} - unlisted))  # noqa: B010 - of any class


_KEYWORDS = {
    "dim": "NumPy calls dim= axis=",
    "keepdim": "NumPy calls keepdim= keepdims=",
    "descending": "NumPy sorts upwards; np.flip turns the order round",
    "unbiased": "NumPy writes unbiased=True as ddof=1",
    "correction": "older NumPy calls correction= ddof=",
    "start_dim": "write x.reshape(*x.shape[:start], -1)",
    "as_tuple": "NumPy's nonzero() is a tuple of indices; np.argwhere(x) is what torch gives without as_tuple",
    "alpha": "write x + alpha * y",
    "rounding_mode": 'write x // y for "floor", and np.trunc(x / y) for "trunc"',
}


_SIZE = "x.size is the number of elements; write x.shape for size(), and x.shape[i] for size(i)"


def add_hint(error: BaseException) -> None:
    """Note on an error what to write instead, where it is that of torch's way to call an array."""
    found = hint(error)
    said = "\n".join([str(error), *getattr(error, "__notes__", ())])
    if found is None or found in said:
        return
    line = None if "  at " in said else line_of_error(error)
    error.add_note(f"  {found}{at_line(line)}")


def hint(error: BaseException) -> str | None:
    """What to write instead, where an error is that of torch's way to call an array; None where it is another one."""
    text = str(error)
    if isinstance(error, AttributeError):
        found = instead(error.name or "")
        is_said = found is None or found in text
        return None if is_said or not _is_array(error.obj) else f"instead of {error.name}: {found}"
    if not isinstance(error, TypeError | ValueError):
        return None
    if Said.UNEXPECTED_KEYWORD in text or Said.INVALID_KEYWORD in text:
        function, _, said = text.partition("() ")
        if said and not _is_of_numpy(function.lstrip("_")):
            return None
        return next((words for name, words in _KEYWORDS.items() if f"'{name}'" in text), None)
    if "'int'" in text and Said.NOT_CALLABLE in text and ".size(" in _last_line(error):
        return _SIZE
    if "'tuple'" in text and Said.NOT_CALLABLE in text and ".shape(" in _last_line(error):
        return "x.shape is a tuple; write x.shape[i]"
    if Said.AXES_DIFFER in text and ".transpose(" in _last_line(error):
        return "x.transpose takes all axes in their new order; write np.swapaxes(x, i, j) to exchange two of them"
    if Said.NO_DTYPE in text:
        return "the second argument of NumPy's reductions is a dtype; write keepdims=True"
    if Said.NO_ORDER in text and ".flatten(" in _last_line(error):
        return "x.flatten(order) is a vector; write x.reshape(*x.shape[:start], -1)"
    if Said.NO_BYTES in text and text.endswith(("'Tensor'", "'Parameter'", "'Buffer'")):
        return "arrays have bytes: x.detach().numpy() is that of a tensor, p.value that of a parameter or a buffer"
    if ".view(" in _last_line(error) and "astype" not in text and "reshape" not in text:
        return "x.view reads the bytes of x as another type; write x.reshape(shape)"
    return None


def _is_of_numpy(name: str) -> bool:
    """Whether there is a function or method of this name whose arguments have the names that NumPy gives them."""
    homes = [np.ndarray, np, np.linalg, np.fft, sys.modules.get("scipy.special")]
    return any(hasattr(home, name) for home in homes)


def _is_array(x: Any) -> bool:
    return hasattr(x, "dtype") and hasattr(x, "shape")


def _last_line(error: BaseException) -> str:
    """The line of the user's code that raised an error."""
    line = line_of_error(error)
    return "" if line is None else line.text
