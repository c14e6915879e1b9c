"""Functions that create tensors, also of random numbers.

A shape is one tuple or several integers.  The default dtype is float64, as in NumPy, until `set_default_dtype` is
called.  In forward code of a module they make what its other values are: arrays where it was called with arrays, traced
values in a trace.  `device` is "cpu", where tensors are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.cell import Holder
from ..base.forward_code import ForwardArray, in_forward, reading, speaking
from ..base.lookalikes import refuse_lookalike
from ..base.source import at_line, user_line
from ..core.trace import Tracer, current_builder
from ..core.types import is_complex, is_inexact, type_of
from ..numpy.promotion import asarray, same_value
from .modes import current_mode
from .tensor import Tensor, held
from .torch_methods.kinds import require_host

_default: list[np.random.Generator] = [np.random.default_rng()]
_default_dtype: list[Any] = [np.dtype(np.float64)]


def set_default_dtype(dtype: Any) -> None:
    """Set the dtype of tensors that are created from no data or from Python's floats: float32 is that of torch.

    Args:
        dtype: a floating-point dtype.

    Raises:
        TypeError: it is another one.
    """
    dtype = np.dtype(dtype)
    if not is_inexact(dtype) or is_complex(dtype):
        raise TypeError(f"the default dtype is a floating-point one, not {dtype}{at_line(user_line())}")
    _default_dtype[0] = dtype


def get_default_dtype() -> Any:
    """The dtype of tensors that are created from no data or from Python's floats."""
    return _default_dtype[0]


def _by_default(array: Any, data: Any, dtype: Any) -> Any:
    """An array of Python's numbers in the default dtype, unless one was asked for or the data have one."""
    if dtype is not None or array.dtype != np.float64 or _has_dtype(data):
        return array
    return array.astype(_default_dtype[0], copy=False)


def _has_dtype(data: Any) -> bool:
    if isinstance(data, list | tuple):
        return any(map(_has_dtype, data))
    return hasattr(data, "dtype")


def tensor(data: Any, dtype: Any = None, requires_grad: bool = False, *, device: Any = None) -> Any:
    """Create a tensor with a copy of data.

    Args:
        data: a number, an array, a tensor (which is detached from its graph), or nested lists of these.
        dtype: dtype of the tensor; by default the one that NumPy infers.
        requires_grad: whether `backward` accumulates a gradient in its `grad`.
        device: "cpu".

    Returns:
        A leaf tensor.

    Raises:
        TypeError: the data is not numeric.
        RuntimeError: `requires_grad` is set, but the dtype is not floating-point or complex.

    Example:
        >>> import ftrans as ft
        >>> ft.autograd.tensor([1.0, 2.0], requires_grad=True)
        tensor([1., 2.], requires_grad=True)
    """
    require_host(device)
    array = np.array(_detached(data), dtype)
    return _leaf(_by_default(array, data, dtype), requires_grad)


def _detached(data: Any) -> Any:
    data = held(data)
    if isinstance(data, Tensor):
        return data.array
    if isinstance(data, list | tuple):
        return [_detached(x) for x in data]
    refuse_lookalike(data)
    return data


def _leaf(array: Any, requires_grad: bool) -> Any:
    try:
        type_of(array)
    except TypeError:
        raise TypeError(
            f"a tensor holds numbers, but NumPy makes an array of dtype {array.dtype} of these data; are the lists of "
            f"different lengths?{at_line(user_line())}"
        ) from None
    if speaking.get() and not requires_grad and reading.get() != "tensors":
        # A copy in a trace may be assigned to.
        return in_forward(array) if current_builder() is None else same_value(asarray(array))
    found = Tensor.of(array)
    found.is_inferred = current_mode().infers
    return found.requires_grad_() if requires_grad else found


def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """Create a tensor that shares memory with an array: each sees what is written to the other.

    Args:
        array: the array.

    Raises:
        TypeError: it is of a class whose arithmetic differs from that of arrays, such as `numpy.matrix`.
    """
    refuse_lookalike(array)
    found = Tensor.of(np.asarray(array))
    found.shared_memory().lend(found.array)
    return found


def _shape(shape: tuple[Any, ...]) -> tuple[int, ...]:
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    return tuple(int(n) for n in given)


def zeros(*shape: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Any:
    """A tensor of zeros."""
    require_host(device)
    return _leaf(np.zeros(_shape(shape), dtype or _default_dtype[0]), requires_grad)


def ones(*shape: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Any:
    """A tensor of ones."""
    require_host(device)
    return _leaf(np.ones(_shape(shape), dtype or _default_dtype[0]), requires_grad)


def empty(*shape: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Any:
    """An uninitialised tensor."""
    require_host(device)
    return _leaf(np.empty(_shape(shape), dtype or _default_dtype[0]), requires_grad)


def full(shape: Any, fill_value: Any, dtype: Any = None, requires_grad: bool = False, *, device: Any = None) -> Any:
    """A tensor filled with one number."""
    require_host(device)
    return _leaf(_by_default(np.full(shape, _detached(fill_value), dtype), fill_value, dtype), requires_grad)


def arange(*range: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Any:
    """`numpy.arange(start, stop, step)`."""
    require_host(device)
    return _leaf(_by_default(np.arange(*range, dtype=dtype), range, dtype), requires_grad)


def linspace(
    start: Any, end: Any, steps: int = 50, dtype: Any = None, requires_grad: bool = False, *, device: Any = None
) -> Any:
    """`steps` evenly spaced numbers from `start` to `end`, inclusive."""
    require_host(device)
    return _leaf(_by_default(np.linspace(start, end, steps, dtype=dtype), start, dtype), requires_grad)


def logspace(
    start: Any, end: Any, steps: int = 50, base: float = 10.0, dtype: Any = None, requires_grad: bool = False
) -> Any:
    """`steps` numbers from `base ** start` to `base ** end`, inclusive, whose logarithms are evenly spaced."""
    found = np.logspace(start, end, steps, base=base, dtype=dtype)
    return _leaf(_by_default(found, start, dtype), requires_grad)


def eye(
    rows: int, columns: int | None = None, dtype: Any = None, requires_grad: bool = False, *, device: Any = None
) -> Any:
    """A matrix with ones on the diagonal and zeros elsewhere."""
    require_host(device)
    return _leaf(np.eye(rows, columns, dtype=dtype or _default_dtype[0]), requires_grad)


def tril_indices(row: int, col: int, offset: int = 0, *, device: Any = None) -> Any:
    """The indices of the elements of a matrix on and below a diagonal, in two rows."""
    require_host(device)
    return _leaf(np.stack(np.tril_indices(row, offset, col)), False)


def triu_indices(row: int, col: int, offset: int = 0, *, device: Any = None) -> Any:
    """The indices of the elements of a matrix on and above a diagonal, in two rows."""
    require_host(device)
    return _leaf(np.stack(np.triu_indices(row, offset, col)), False)


def is_tensor(x: Any) -> bool:
    """Whether it is a tensor, or what stands for one: a traced value, or an array inside forward code."""
    return isinstance(x, Holder | Tracer | ForwardArray)


def _like(x: Any) -> Any:
    """An array of the shape and dtype of `x`."""
    x = held(x)
    if type(x) is Tracer:
        return np.broadcast_to(np.zeros((), x.dtype), x.shape)
    return x.array if isinstance(x, Tensor) else np.asarray(x)


def zeros_like(x: Any, dtype: Any = None, requires_grad: bool = False, *, device: Any = None) -> Any:
    """Zeros of the shape of `x`, and of its dtype by default."""
    require_host(device)
    return _leaf(np.zeros_like(_like(x), dtype), requires_grad)


def ones_like(x: Any, dtype: Any = None, requires_grad: bool = False, *, device: Any = None) -> Any:
    """Ones of the shape of `x`, and of its dtype by default."""
    require_host(device)
    return _leaf(np.ones_like(_like(x), dtype), requires_grad)


def empty_like(x: Any, dtype: Any = None, requires_grad: bool = False, *, device: Any = None) -> Any:
    """An uninitialised tensor of the shape of `x`, and of its dtype by default."""
    require_host(device)
    return _leaf(np.empty_like(_like(x), dtype), requires_grad)


def full_like(x: Any, fill_value: Any, dtype: Any = None, requires_grad: bool = False, *, device: Any = None) -> Any:
    """A tensor filled with one number, of the shape of `x`, and of its dtype by default."""
    require_host(device)
    return _leaf(np.full_like(_like(x), _detached(fill_value), dtype), requires_grad)


# Random numbers


def manual_seed(seed: int) -> np.random.Generator:
    """Seed the default generator of random numbers.

    Args:
        seed: a non-negative integer; the same seed gives the same numbers.

    Returns:
        The new default generator.

    Example:
        >>> import ftrans as ft
        >>> first = ft.autograd.randn(2, generator=ft.autograd.manual_seed(0))
        >>> second = ft.autograd.randn(2, generator=ft.autograd.manual_seed(0))
        >>> bool((first == second).all())
        True
    """
    _default[0] = np.random.default_rng(seed)
    return _default[0]


def default_generator() -> np.random.Generator:
    """The default generator of random numbers."""
    return _default[0]


def _drawn_from(generator: np.random.Generator | None, device: Any) -> np.random.Generator:
    """The generator to draw from.

    Raises:
        TypeError: a program is traced that is compiled, and would draw the same numbers whenever it runs.
    """
    require_host(device)
    builder = current_builder()
    if builder is not None and builder.is_compiled():
        raise TypeError(
            "random numbers of ftrans.autograd are drawn while the function is traced, so that the compiled program "
            "would have the same ones whenever it runs; give the module a stream, self.rng = nn.RngState(), and write "
            "nn.random.normal(self.rng.next_key(), shape), or uniform, bernoulli or categorical" + at_line(user_line())
        )
    return generator or _default[0]


def rand(
    *shape: Any,
    generator: np.random.Generator | None = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Any:
    """A tensor of random numbers from the uniform distribution on [0, 1).

    Args:
        shape: shape of the tensor.
        generator: the source of random numbers, for instance `numpy.random.default_rng(0)`; by default the one that
            `manual_seed` seeds.
        dtype: dtype of the tensor.
        requires_grad: whether `backward` accumulates a gradient in its `grad`.
        device: "cpu".

    Raises:
        TypeError: the numbers would be a constant of a program that is compiled.
    """
    found = _drawn_from(generator, device).random(_shape(shape))
    return _leaf(np.asarray(found, dtype or _default_dtype[0]), requires_grad)


def randn(
    *shape: Any,
    generator: np.random.Generator | None = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Any:
    """A tensor of random numbers from the standard normal distribution; arguments as for `rand`."""
    found = _drawn_from(generator, device).standard_normal(_shape(shape))
    return _leaf(np.asarray(found, dtype or _default_dtype[0]), requires_grad)


def randint(
    low: int,
    high: Any = None,
    size: Any = (),
    generator: np.random.Generator | None = None,
    dtype: Any = np.int64,
    *,
    device: Any = None,
) -> Any:
    """A tensor of random integers from `low` (inclusive) to `high` (exclusive); from zero as `randint(high, size)`."""
    if high is None or isinstance(high, tuple | list):
        low, high, size = 0, low, size if high is None else high
    return _leaf(np.asarray(_drawn_from(generator, device).integers(low, high, size), dtype), False)


def randperm(count: int, generator: np.random.Generator | None = None, *, device: Any = None) -> Any:
    """A random permutation of the integers from 0 to `count - 1`."""
    return _leaf(_drawn_from(generator, device).permutation(count), False)


def rand_like(
    x: Any, generator: np.random.Generator | None = None, dtype: Any = None, requires_grad: bool = False
) -> Any:
    """`rand` with the shape of `x`, and its dtype by default."""
    return rand(tuple(x.shape), generator=generator, dtype=dtype or x.dtype, requires_grad=requires_grad)


def randn_like(
    x: Any, generator: np.random.Generator | None = None, dtype: Any = None, requires_grad: bool = False
) -> Any:
    """`randn` with the shape of `x`, and its dtype by default."""
    return randn(tuple(x.shape), generator=generator, dtype=dtype or x.dtype, requires_grad=requires_grad)


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: np.random.Generator | None = None) -> Any:
    """Random numbers from normal distributions, of these means and standard deviations, or of a shape."""
    shape = np.broadcast_shapes(np.shape(mean), np.shape(std)) if size is None else size
    return mean + std * randn(shape, generator=generator)


def bernoulli(p: Any, *, generator: np.random.Generator | None = None) -> Any:
    """Ones with the probabilities `p`, and zeros."""
    return (rand(tuple(p.shape), generator=generator) < p).astype(p.dtype)


def multinomial(
    p: Any, num_samples: int, replacement: bool = False, *, generator: np.random.Generator | None = None
) -> Any:
    """Indices along the last axis, drawn with probabilities in proportion to `p`.

    Args:
        p: nonnegative numbers, a vector or the rows of a matrix.
        num_samples: how many indices to draw of each row.
        replacement: whether an index may be drawn again.
        generator: the source of random numbers.
    """
    p = held(p)
    weights, source = np.asarray(p.array if isinstance(p, Tensor) else p, float), _drawn_from(generator, None)
    rows = np.atleast_2d(weights / weights.sum(-1, keepdims=True))
    drawn = np.stack([source.choice(row.size, num_samples, replacement, row) for row in rows])
    return _leaf(np.reshape(drawn, (*weights.shape[:-1], num_samples)), False)
