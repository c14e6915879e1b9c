"""Functions that make tensors, and the random numbers that some are made of.

Shapes are given as one tuple or as several numbers.  Without a dtype, numbers are float64, as in NumPy.
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
    """A tensor with a copy of data.

    Args:
        data: a number, an array, a tensor (whose graph is not taken along), or nested lists of these.
        dtype: dtype of the tensor; that which NumPy gives to the data by default.
        requires_grad: whether `backward` is to leave a gradient in its `grad`.

    Returns:
        A leaf.

    Raises:
        TypeError: the data are no numbers.
        RuntimeError: a gradient is asked for, but the numbers are not floating-point or complex.

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
    """A tensor of the memory of an array: each sees what is written to the other.

    Args:
        array: the array.

    Raises:
        TypeError: it is of a class whose arithmetic is not that of arrays, such as `numpy.matrix`.
    """
    refuse_lookalike(array)
    found = Tensor.of(np.asarray(array))
    found.shared_memory().lend(found.array)
    return found


def _shape(shape: tuple[Any, ...]) -> tuple[int, ...]:
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    return tuple(int(n) for n in given)


def zeros(*shape: Any, dtype: Any = float, requires_grad: bool = False) -> Tensor:
    """Zeros of a shape."""
    return _leaf(np.zeros(_shape(shape), dtype), requires_grad)


def ones(*shape: Any, dtype: Any = float, requires_grad: bool = False) -> Tensor:
    """Ones of a shape."""
    return _leaf(np.ones(_shape(shape), dtype), requires_grad)


def empty(*shape: Any, dtype: Any = float, requires_grad: bool = False) -> Tensor:
    """A tensor to be filled, of a shape; what it holds at first is arbitrary."""
    return _leaf(np.empty(_shape(shape), dtype), requires_grad)


def full(shape: Any, fill_value: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of a shape, filled with one number."""
    return _leaf(np.full(shape, _detached(fill_value), dtype), requires_grad)


def arange(*range: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """`numpy.arange(start, stop, step)`."""
    return _leaf(np.arange(*range, dtype=dtype), requires_grad)


def linspace(start: Any, stop: Any, num: int = 50, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """`num` numbers from `start` to `stop`, which is included, at equal distances."""
    return _leaf(np.linspace(start, stop, num, dtype=dtype), requires_grad)


def eye(rows: int, columns: int | None = None, dtype: Any = float, requires_grad: bool = False) -> Tensor:
    """Ones on the diagonal of a matrix, zeros elsewhere."""
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
    """A tensor to be filled, of the shape of `x`, and of its dtype by default."""
    return _leaf(np.empty_like(_like(x), dtype), requires_grad)


def full_like(x: Any, fill_value: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """One number in the shape of `x`, and in its dtype by default."""
    return _leaf(np.full_like(_like(x), _detached(fill_value), dtype), requires_grad)


# Random numbers


def manual_seed(seed: int) -> np.random.Generator:
    """Start the random numbers anew.

    Args:
        seed: an integer that is not negative; the same seed gives the same numbers.

    Returns:
        The generator that is used from now on where none is given.

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
    """The generator of random numbers that is used where none is given."""
    return _default[0]


def rand(
    *shape: Any, generator: np.random.Generator | None = None, dtype: Any = float, requires_grad: bool = False
) -> Tensor:
    """Random numbers between 0 and 1, uniformly distributed.

    Args:
        shape: shape of the tensor.
        generator: where the numbers come from, for instance `numpy.random.default_rng(0)`; that of `manual_seed` by
            default.
        dtype: dtype of the tensor.
        requires_grad: whether `backward` is to leave a gradient in its `grad`.
    """
    return _leaf(np.asarray((generator or _default[0]).random(_shape(shape)), dtype), requires_grad)


def randn(
    *shape: Any, generator: np.random.Generator | None = None, dtype: Any = float, requires_grad: bool = False
) -> Tensor:
    """Random numbers of the standard normal distribution; arguments are those of `rand`."""
    return _leaf(np.asarray((generator or _default[0]).standard_normal(_shape(shape)), dtype), requires_grad)


def randint(
    low: int, high: int, shape: Any = (), generator: np.random.Generator | None = None, dtype: Any = np.int64
) -> Tensor:
    """Random integers from `low` to `high`, which is not among them."""
    return _leaf(np.asarray((generator or _default[0]).integers(low, high, shape), dtype), False)


def randperm(count: int, generator: np.random.Generator | None = None) -> Tensor:
    """The integers below `count`, in random order."""
    return _leaf((generator or _default[0]).permutation(count), False)


def rand_like(
    x: Any, generator: np.random.Generator | None = None, dtype: Any = None, requires_grad: bool = False
) -> Tensor:
    """`rand` in the shape of `x`, and in its dtype by default."""
    like = _like(x)
    return rand(like.shape, generator=generator, dtype=dtype or like.dtype, requires_grad=requires_grad)


def randn_like(
    x: Any, generator: np.random.Generator | None = None, dtype: Any = None, requires_grad: bool = False
) -> Tensor:
    """`randn` in the shape of `x`, and in its dtype by default."""
    like = _like(x)
    return randn(like.shape, generator=generator, dtype=dtype or like.dtype, requires_grad=requires_grad)
