"""Random numbers as functions of a key.

A key is an array of type u32[2], of NumPy or traced.  The same key gives the same numbers in eager code, compiled code
and each lane of `vmap`; so use each key once, and make further ones with `split` and `fold_in`.  There is no hidden
state.

Samples have no derivatives: write `mean + std * normal(key, shape)` for derivatives with respect to `mean` and `std`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..api.call import record_or_run
from ..api.elementwise import apply_elementwise
from ..base.cell import Eager
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..core.trace import Tracer, current_builder
from ..core.types import Shape, is_inexact
from ..numpy.promotion import asarray, cast
from ..ops import literals, parts, shapes
from ..ops.random_bits import encrypted
from ..ops.random_bits import random_bits as random_bits_primitive
from ..ops.special.errors import erf, erf_inv
from ..run.places import JAX_TRACE, TRACE, place_of_argument
from .functional.arguments import described, shape_of
from .functional.entry import functional
from .init import generator

__all__ = [
    "advance", "bernoulli", "bits", "categorical", "exponential", "fold_in", "gumbel", "integers", "key", "normal",
    "permutation", "split", "stream", "truncated_normal", "uniform",
]  # fmt: skip

_U32 = np.dtype(np.uint32)
_MASK = 0xFFFFFFFF
# Counters that end with 0 make numbers, those that end with this make keys: no key is among another key's numbers.
_FOLDS = 1
_ROOT_2 = math.sqrt(2)


# Keys


@functional
def key(seed: Any) -> Any:
    """The key for a seed.

    Args:
        seed: an integer of up to 64 bits, possibly traced.

    Returns:
        A key, an array of type u32[2].

    Raises:
        TypeError: the seed is not an integer.
        ValueError: it has more than 64 bits.

    Example:
        >>> from ftrans.nn import random
        >>> random.key(7)
        array([0, 7], dtype=uint32)
    """
    if isinstance(seed, Tracer) and seed.shape == () and seed.dtype.kind in "iu":
        wide = cast(seed, np.dtype(np.uint64))
        return np.stack([wide >> 32, wide & _MASK]).astype(np.uint32)
    try:
        number = operator.index(seed)
    except TypeError:
        raise TypeError(f"a seed must be an integer, not {described(seed)}{at_line(user_line())}") from None
    if not -(1 << 63) <= number < 1 << 64:
        raise ValueError(f"a seed must have at most 64 bits; {number} has more{at_line(user_line())}")
    return np.array([number >> 32 & _MASK, number & _MASK], np.uint32)


@functional
def fold_in(key: Any, data: Any) -> Any:
    """A new key from a key and an integer; different integers give different keys.

    Args:
        key: a key.
        data: an integer, possibly traced; only its lowest 32 bits are used.

    Returns:
        A key, an array of type u32[2].

    Example:
        >>> from ftrans.nn import random
        >>> key = random.key(0)
        >>> bool((random.fold_in(key, 1) == random.fold_in(key, 2)).all())
        False
    """
    key = _checked(key, "fold_in")
    if shape_of(data) != () or getattr(data, "dtype", np.dtype(type(data))).kind not in "biu":
        raise TypeError(
            f"fold_in takes one integer in addition to the key, not {described(data)}{at_line(user_line())}"
        )
    if not isinstance(data, Tracer):
        low = operator.index(data) & _MASK
        if current_builder() is None and is_plain(key, np.ndarray):
            k0, k1 = key.tolist()
            return np.array(encrypted(k0, k1, low, _FOLDS), np.uint32)
        data = np.uint32(low)

    def record(xs: list[Tracer]) -> list[Tracer]:
        key, low = xs
        low = shapes.reshape(cast(low, _U32), shape=(1,))
        counter = parts.concatenate(low, literals.full((1,), _FOLDS, _U32), axis=0)
        return [random_bits_primitive(key, counter, shape=(2,))]

    return record_or_run("fold_in", record, [key, data])[0]


def split(key: Any, num: int = 2) -> Any:
    """Several new keys from a key.

    Args:
        key: a key.
        num: number of keys.

    Returns:
        An array of type u32[num,2].

    Example:
        >>> from ftrans.nn import random
        >>> first, second = random.split(random.key(0))
        >>> first.shape
        (2,)
    """
    return bits(key, (num, 2))


def stream(seed: int | None = None) -> np.ndarray[Any, Any]:
    """The initial state of a stream of keys, for `advance`: an array of type u32[3], with a key and a counter.

    Args:
        seed: an integer; by default drawn from the generator that `nn.manual_seed` seeds.
    """
    start = generator().integers(0, 1 << 32, 2, dtype=np.uint32) if seed is None else key(seed)
    return np.append(start, np.uint32(0))


@functional
def advance(state: Any) -> tuple[Any, Any]:
    """The next key of a stream, and the new state of the stream.  A stream has 2**32 keys.

    Args:
        state: an array of type u32[3], from `stream` or `advance`.

    Returns:
        `(key, state)`, of types u32[2] and u32[3].

    Example:
        >>> from ftrans.nn import random
        >>> state = random.stream(0)
        >>> key, state = random.advance(state)
        >>> state
        array([0, 0, 1], dtype=uint32)
    """
    if is_plain(state, np.ndarray) and current_builder() is None:
        k0, k1, count = state.tolist()
        new = np.array([k0, k1, count + 1 & _MASK], np.uint32)
        return np.array(encrypted(k0, k1, count, _FOLDS), np.uint32), new
    return fold_in(state[:2], state[2]), state + np.array([0, 0, 1], np.uint32)


def key_of(rng: Any, what: str, operands: Iterable[Any] = ()) -> Any:
    """The key for one call of a random function: `rng`, its next key, or one of the generator of `nn.manual_seed`.

    Args:
        rng: a key, what has `next_key()`, or None.
        what: who asks, for messages.
        operands: arrays that the function is called with, which JAX may trace.

    Raises:
        TypeError: nothing was given inside of a function that is transformed or compiled.
    """
    if hasattr(rng, "next_key"):
        return rng.next_key()
    if rng is not None:
        return _checked(rng, what)
    if current_builder() is None and not any(place_of_argument(x) in (TRACE, JAX_TRACE) for x in operands):
        return generator().integers(0, 1 << 32, 2, dtype=np.uint32)
    raise TypeError(
        f"{what} needs rng in a function that is transformed or compiled, which would otherwise give the same numbers "
        "in every call, step and lane: write rng=self.rng with self.rng = nn.RngState() in the module, or hand a key "
        f"to the function and write rng=key{at_line(user_line())}"
    )


def _checked(key: Any, what: str) -> Any:
    """A key, if it is one.

    Raises:
        TypeError: it is not.
    """
    if getattr(key, "dtype", None) == _U32 and tuple(key.shape) == (2,) and not isinstance(key, Eager):
        return key
    if getattr(key, "dtype", None) == _U32 and tuple(key.shape) == (3,):
        raise TypeError(
            f"{what} takes a key, an array of type u32[2], but got u32[3], which an RngState holds; give functions "
            "that are transformed or compiled the module that has it as an attribute, or a key, rng.next_key()"
            + at_line(user_line())
        )
    raise TypeError(
        f"{what} takes a key, an array of type u32[2], not {described(key)}; nn.random.key(0) makes one, "
        f"nn.random.split and nn.random.fold_in make several of one{at_line(user_line())}"
    )


def _shape(shape: Any) -> Shape:
    try:
        sizes = (operator.index(shape),) if isinstance(shape, int | np.integer) else tuple(map(operator.index, shape))
    except TypeError:
        raise TypeError(
            f"a shape must be an integer or a tuple of integers, not {shape!r}{at_line(user_line())}"
        ) from None
    if min(sizes, default=0) < 0:
        raise ValueError(f"a shape must not have negative sizes, but got {shape!r}{at_line(user_line())}")
    return sizes


def _checked_dtype(dtype: Any, what: str) -> np.dtype[Any]:
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise TypeError(
            f"{what} gives float32 or float64, not {dtype}; convert the result with .astype{at_line(user_line())}"
        )
    return dtype


# Uniform numbers


@functional
def bits(key: Any, shape: int | Sequence[int] = ()) -> Any:
    """Random bits, an array of uint32.

    Args:
        key: a key.
        shape: shape of the result.

    Example:
        >>> from ftrans.nn import random
        >>> random.bits(random.key(0), 2)
        array([1797259609, 2579123966], dtype=uint32)
    """
    key, shape = _checked(key, "bits"), _shape(shape)
    if is_plain(key, np.ndarray) and current_builder() is None:
        return random_bits_primitive.numpy(key, np.zeros(2, np.uint32), shape=shape)

    def record(xs: list[Tracer]) -> list[Tracer]:
        return [random_bits_primitive(xs[0], literals.full((2,), 0, _U32), shape=shape)]

    return record_or_run("random_bits", record, [key])[0]


def _unit(key: Any, shape: Shape, dtype: np.dtype[Any]) -> Any:
    """Numbers in [0, 1), multiples of the spacing of floating-point numbers below 1."""
    if dtype == np.float32:
        # A signed integer becomes a floating-point number by one instruction, an unsigned one by several.
        return (bits(key, shape) >> 8).astype(np.int32).astype(np.float32) * 2.0**-24
    words = bits(key, (2, *shape))
    return ((words[0] >> 5).astype(np.float64) * 2.0**26 + (words[1] >> 6).astype(np.float64)) * 2.0**-53


def open_unit(key: Any, shape: Shape, dtype: np.dtype[Any]) -> Any:
    """Numbers in (0, 1), symmetric about 1/2: odd multiples of half a power of 2."""
    if dtype == np.float32:
        return ((bits(key, shape) >> 9).astype(np.int32).astype(np.float32) + 0.5) * 2.0**-23
    words = bits(key, (2, *shape))
    return ((words[0] >> 6).astype(np.float64) * 2.0**26 + (words[1] >> 6).astype(np.float64) + 0.5) * 2.0**-52


@functional
def uniform(key: Any, shape: int | Sequence[int] = (), dtype: Any = np.float32, low: Any = 0.0, high: Any = 1.0) -> Any:
    """Numbers drawn uniformly from `[low, high)`, where rounding may give `high`.

    Args:
        key: a key.
        shape: shape of the result.
        dtype: float32 or float64.
        low: lower bound; a number or an array that broadcasts.
        high: upper bound; a number or an array that broadcasts.

    Returns:
        An array of this shape and dtype.

    Raises:
        TypeError: the dtype is neither float32 nor float64.

    Example:
        >>> from ftrans.nn import random
        >>> random.uniform(random.key(0), (2,), low=-1.0).round(4)
        array([-0.1631,  0.201 ], dtype=float32)
    """
    unit = _unit(key, _shape(shape), _checked_dtype(dtype, "uniform"))
    if is_plain(low, float | int) and is_plain(high, float | int) and (low, high) == (0, 1):
        return unit
    return low + (high - low) * unit


@functional
def bernoulli(key: Any, p: Any = 0.5, shape: int | Sequence[int] | None = None) -> Any:
    """Booleans that are True with probability `p` (to within 2**-24): where `uniform(key, shape)` is less than `p`.

    Args:
        key: a key.
        p: probability; a number or an array that broadcasts.
        shape: shape of the result; by default that of `p`.

    Raises:
        ValueError: `p` is a number outside of [0, 1].

    Example:
        >>> from ftrans.nn import random
        >>> random.bernoulli(random.key(0), 0.5, (4,))
        array([ True,  True, False, False])
    """
    shape = shape_of(p) if shape is None else _shape(shape)
    if not is_plain(p, float | int):
        return _unit(key, shape, np.dtype(np.float32)) < p
    if not 0 <= p <= 1:
        raise ValueError(f"p={p} of bernoulli must be a probability, from 0 to 1{at_line(user_line())}")
    return bits(key, shape) >> 8 < math.ceil(p * (1 << 24))


@functional
def integers(key: Any, low: Any, high: Any, shape: int | Sequence[int] = (), dtype: Any = np.int64) -> Any:
    """Integers drawn uniformly from `[low, high)`; probabilities differ by at most (high - low) / 2**64.

    Args:
        key: a key.
        low: lower bound; a number or an array that broadcasts.
        high: upper bound, not included.
        shape: shape of the result.
        dtype: an integer dtype.

    Returns:
        An array of this shape and dtype.

    Raises:
        TypeError: bounds or dtype are not integers.
        ValueError: bounds are numbers, and the interval is empty.

    Example:
        >>> from ftrans.nn import random
        >>> random.integers(random.key(0), 1, 7, (4,))
        array([1, 1, 6, 5])
    """
    dtype = np.dtype(dtype)
    for what, x in (("dtype", dtype), ("low", low), ("high", high)):
        kind = x.kind if x is dtype else getattr(x, "dtype", np.dtype(type(x))).kind
        if kind not in "iu":
            raise TypeError(f"{what} of integers must be integers, not {described(x)}{at_line(user_line())}")
    if is_plain(low, int) and is_plain(high, int) and low >= high:
        raise ValueError(
            f"there is no integer in the interval from low={low} to high={high} (not included){at_line(user_line())}"
        )
    words = bits(key, (2, *_shape(shape))).astype(np.uint64)
    low, high = _as_int64(low), _as_int64(high)
    span = (high - low).astype(np.uint64)
    return (((words[0] << 32 | words[1]) % span).astype(np.int64) + low).astype(dtype)


def _as_int64(x: Any) -> Any:
    return cast(x, np.dtype(np.int64)) if isinstance(x, Tracer) else np.asarray(x, np.int64)


@functional
def permutation(key: Any, n: int) -> Any:
    """The integers from 0 to `n - 1` in random order.

    Args:
        key: a key.
        n: number of integers.

    Returns:
        An int64 vector of length `n`.

    Example:
        >>> from ftrans.nn import random
        >>> random.permutation(random.key(0), 5)
        array([1, 2, 0, 4, 3])
    """
    words = bits(key, (2, *_shape(n))).astype(np.uint64)
    return np.argsort(words[0] << 32 | words[1], kind="stable")


# Other distributions


@functional
def normal(key: Any, shape: int | Sequence[int] = (), dtype: Any = np.float32) -> Any:
    """Standard normal numbers, by the inverse of the distribution function.

    The largest possible magnitude is 5.3 in float32, and 8.1 in float64.

    Args:
        key: a key.
        shape: shape of the result.
        dtype: dtype of the result, float32 or float64.

    Example:
        >>> from ftrans.nn import random
        >>> random.normal(random.key(0), (2,)).round(4)
        array([-0.2058,  0.2546], dtype=float32)
    """
    unit = open_unit(key, _shape(shape), _checked_dtype(dtype, "normal"))
    return apply_elementwise(erf_inv, unit * 2.0 - 1.0) * _ROOT_2


@functional
def truncated_normal(
    key: Any, lower: Any = -2.0, upper: Any = 2.0, shape: int | Sequence[int] = (), dtype: Any = np.float32
) -> Any:
    """Numbers from the standard normal distribution, truncated to an interval.

    Precision is low if both bounds lie beyond 3 (float32) or 6 (float64) on the same side.

    Args:
        key: a key.
        lower: lower bound; a number or an array that broadcasts.
        upper: upper bound; a number or an array that broadcasts.
        shape: shape of the result.
        dtype: dtype of the result, float32 or float64.

    Example:
        >>> from ftrans.nn import random
        >>> x = random.truncated_normal(random.key(0), -1.0, 1.0, (1000,))
        >>> bool((abs(x) <= 1).all())
        True
    """
    unit = open_unit(key, _shape(shape), _checked_dtype(dtype, "truncated_normal"))
    low, high = (_erf(bound) for bound in (lower, upper))
    x = apply_elementwise(erf_inv, low + (high - low) * unit) * _ROOT_2
    return np.clip(x, lower, upper)


def _erf(bound: Any) -> Any:
    """The error function of a bound divided by sqrt(2)."""
    return math.erf(bound / _ROOT_2) if is_plain(bound, float | int) else apply_elementwise(erf, bound / _ROOT_2)


@functional
def exponential(key: Any, shape: int | Sequence[int] = (), dtype: Any = np.float32) -> Any:
    """Exponentially distributed numbers with mean 1.

    Args:
        key: a key.
        shape: shape of the result.
        dtype: dtype of the result, float32 or float64.

    Example:
        >>> from ftrans.nn import random
        >>> random.exponential(random.key(0), (2,)).round(4)
        array([0.8712, 0.51  ], dtype=float32)
    """
    return -np.log(open_unit(key, _shape(shape), _checked_dtype(dtype, "exponential")))


@functional
def gumbel(key: Any, shape: int | Sequence[int] = (), dtype: Any = np.float32) -> Any:
    """Numbers from the standard Gumbel distribution: `-log` of exponentially distributed ones.

    Args:
        key: a key.
        shape: shape of the result.
        dtype: dtype of the result, float32 or float64.

    Example:
        >>> from ftrans.nn import random
        >>> random.gumbel(random.key(0), (2,)).round(4)
        array([0.1379, 0.6734], dtype=float32)
    """
    return -np.log(-np.log(open_unit(key, _shape(shape), _checked_dtype(dtype, "gumbel"))))


@functional
def categorical(key: Any, logits: Any, axis: int = -1) -> Any:
    """Indices (int64) along an axis, drawn with probabilities `softmax(logits)` (by the Gumbel-max trick).

    Args:
        key: a key.
        logits: unnormalized log-probabilities; -inf for what is never drawn.
        axis: axis of the classes, which is removed in the result.

    Example:
        >>> import numpy as np
        >>> from ftrans.nn import random
        >>> random.categorical(random.key(0), np.array([[0.0, -np.inf], [-np.inf, 0.0]]))
        array([0, 1])
    """
    x = asarray(logits) if current_builder() is not None else logits if hasattr(logits, "dtype") else np.asarray(logits)
    if not is_inexact(x.dtype):
        x = x.astype(np.float32)
    dtype = np.dtype(np.float64 if x.dtype == np.float64 else np.float32)
    return np.argmax(x + gumbel(key, x.shape, dtype), axis)


def __dir__() -> list[str]:
    return __all__
