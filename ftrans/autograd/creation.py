"""Functions that create tensors, also of random numbers.

A shape is one tuple or several integers.  The default dtype is float64, as in NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.lookalikes import refuse_lookalike
from ..base.source import at_line, user_line
from ..core.types import type_of
from .modes import current_mode
from .tensor import Tensor, held

_default: list[np.random.Generator] = [np.random.default_rng()]


def tensor(data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Create a tensor with a copy of data.

    Args:
        data: a number, an array, a tensor (which is detached from its graph), or nested lists of these.
        dtype: dtype of the tensor; by default the one that NumPy infers.
        requires_grad: whether `backward` accumulates a gradient in its `grad`.

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
    return _leaf(np.array(_detached(data), dtype), requires_grad)


def _detached(data: Any) -> Any:
    data = held(data)
    if isinstance(data, Tensor):
        return data.array
    if isinstance(data, list | tuple):
        return [_detached(x) for x in data]
    refuse_lookalike(data)
    return data


def _leaf(array: Any, requires_grad: bool) -> Tensor:
    try:
        type_of(array)
    except TypeError:
        raise TypeError(
            f"a tensor holds numbers, but NumPy makes an array of dtype {array.dtype} of these data; are the lists of "
            f"different lengths?{at_line(user_line())}"
        ) from None
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


def zeros(*shape: Any, dtype: Any = float, requires_grad: bool = False) -> Tensor:
    """A tensor of zeros."""
    return _leaf(np.zeros(_shape(shape), dtype), requires_grad)


def ones(*shape: Any, dtype: Any = float, requires_grad: bool = False) -> Tensor:
    """A tensor of ones."""
    return _leaf(np.ones(_shape(shape), dtype), requires_grad)


def empty(*shape: Any, dtype: Any = float, requires_grad: bool = False) -> Tensor:
    """An uninitialised tensor."""
    return _leaf(np.empty(_shape(shape), dtype), requires_grad)


def full(shape: Any, fill_value: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor filled with one number."""
    return _leaf(np.full(shape, _detached(fill_value), dtype), requires_grad)


def arange(*range: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """`numpy.arange(start, stop, step)`."""
    return _leaf(np.arange(*range, dtype=dtype), requires_grad)


def linspace(start: Any, stop: Any, num: int = 50, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, inclusive."""
    return _leaf(np.linspace(start, stop, num, dtype=dtype), requires_grad)


def eye(rows: int, columns: int | None = None, dtype: Any = float, requires_grad: bool = False) -> Tensor:
    """A matrix with ones on the diagonal and zeros elsewhere."""
    return _leaf(np.eye(rows, columns, dtype=dtype), requires_grad)


def _like(x: Any) -> Any:
    x = held(x)
    return x.array if isinstance(x, Tensor) else np.asarray(x)


def zeros_like(x: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros of the shape of `x`, and of its dtype by default."""
    return _leaf(np.zeros_like(_like(x), dtype), requires_grad)


def ones_like(x: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones of the shape of `x`, and of its dtype by default."""
    return _leaf(np.ones_like(_like(x), dtype), requires_grad)


def empty_like(x: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """An uninitialised tensor of the shape of `x`, and of its dtype by default."""
    return _leaf(np.empty_like(_like(x), dtype), requires_grad)


def full_like(x: Any, fill_value: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor filled with one number, of the shape of `x`, and of its dtype by default."""
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


def rand(
    *shape: Any, generator: np.random.Generator | None = None, dtype: Any = float, requires_grad: bool = False
) -> Tensor:
    """A tensor of random numbers from the uniform distribution on [0, 1).

    Args:
        shape: shape of the tensor.
        generator: the source of random numbers, for instance `numpy.random.default_rng(0)`; by default the one that
            `manual_seed` seeds.
        dtype: dtype of the tensor.
        requires_grad: whether `backward` accumulates a gradient in its `grad`.
    """
    return _leaf(np.asarray((generator or _default[0]).random(_shape(shape)), dtype), requires_grad)


def randn(
    *shape: Any, generator: np.random.Generator | None = None, dtype: Any = float, requires_grad: bool = False
) -> Tensor:
    """A tensor of random numbers from the standard normal distribution; arguments as for `rand`."""
    return _leaf(np.asarray((generator or _default[0]).standard_normal(_shape(shape)), dtype), requires_grad)


def randint(
    low: int, high: int, shape: Any = (), generator: np.random.Generator | None = None, dtype: Any = np.int64
) -> Tensor:
    """A tensor of random integers from `low` (inclusive) to `high` (exclusive)."""
    return _leaf(np.asarray((generator or _default[0]).integers(low, high, shape), dtype), False)


def randperm(count: int, generator: np.random.Generator | None = None) -> Tensor:
    """A random permutation of the integers from 0 to `count - 1`."""
    return _leaf((generator or _default[0]).permutation(count), False)


def rand_like(
    x: Any, generator: np.random.Generator | None = None, dtype: Any = None, requires_grad: bool = False
) -> Tensor:
    """`rand` with the shape of `x`, and its dtype by default."""
    like = _like(x)
    return rand(like.shape, generator=generator, dtype=dtype or like.dtype, requires_grad=requires_grad)


def randn_like(
    x: Any, generator: np.random.Generator | None = None, dtype: Any = None, requires_grad: bool = False
) -> Tensor:
    """`randn` with the shape of `x`, and its dtype by default."""
    like = _like(x)
    return randn(like.shape, generator=generator, dtype=dtype or like.dtype, requires_grad=requires_grad)
