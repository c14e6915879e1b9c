"""Random bits by counters: the cipher Threefry, applied to the positions of the result.

Nothing is remembered between calls.  Bits depend on a key and on a counter alone, so they are the same in every
evaluator, in any order, and in each lane of a batch.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.affine import row_strides
from ..base.surroundings import exported_for, is_divided
from ..core.cost import Cost
from ..core.on_numpy import Memory
from ..core.primitive import SingleResult
from ..core.program import Params
from ..core.trace import Tracer
from ..core.types import ArrayType, Shape
from .broadcast import with_batch_axis
from .platforms import by_platform

_U32 = np.dtype(np.uint32)
_MASK = 0xFFFFFFFF
# Rotations of Threefry-2x32, four rounds at a time in turn, and the constant of its key schedule.
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_GROUPS = 5
# As many blocks, NumPy's calls cost little beside their work, and their operands stay in the cache.
_CHUNK = 1 << 15
# For as few blocks, Python's integers are faster than calls of NumPy.
_FEW = 8


class RandomBits(SingleResult):
    """Random bits uint32 of `shape`, from a key uint32[2] and a counter uint32[2].

    Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; 2011)
    encrypts the counters (c[0], c[1]), (c[0] + 1, c[1]), ...  The first words of all blocks, then their second words,
    fill the result.  Leading axes of both operands are axes of lanes, which lead the result.
    """

    name = "random_bits"
    memory = Memory.NEW

    def type_rule(self, key: ArrayType, counter: ArrayType, *, shape: Shape) -> ArrayType:
        for what, x in (("key", key), ("counter", counter)):
            if x.dtype != _U32 or x.ndim == 0 or x.shape[-1] != 2:
                raise TypeError(f"the {what} of {self.name} is an array u32[2], not {x}")
        if key.shape != counter.shape:
            raise TypeError(f"{self.name}: keys and counters differ in their lanes: {key}, {counter}")
        if math.prod(shape) > 2 << 32:
            raise ValueError(f"{self.name} has 2**33 numbers for a key; shape {shape} takes more")
        return ArrayType((*key.shape[:-1], *shape), _U32)

    def numpy(self, key: Any, counter: Any, *, shape: Shape) -> Any:
        lanes, size = key.shape[:-1], math.prod(shape)
        blocks = (size + 1) // 2
        keys, counters = key.reshape(-1, 2), counter.reshape(-1, 2)
        words = np.empty((len(keys), 2, blocks), _U32)
        if len(keys) * blocks <= _FEW:
            for row, k, c in zip(words, keys.tolist(), counters.tolist(), strict=True):
                for i in range(blocks):
                    row[:, i] = encrypted(k[0], k[1], (c[0] + i) & _MASK, c[1])
        else:
            _encrypt_all(words, keys, counters)
        return words.reshape(len(keys), 2 * blocks)[:, :size].reshape((*lanes, *shape))[()]

    def xla(self, key: Any, counter: Any, *, shape: Shape) -> Any:
        return _compiled(exported_for(), is_divided() and math.prod(shape) <= _MASK)(key, counter, shape)

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        # Each round adds, rotates by two shifts and a union, and takes the exclusive or, for two words.
        return Cost.arithmetic(5 * 4 * _GROUPS * results[0].size / 2)

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, shape: Shape) -> Any:
        key, counter = (with_batch_axis(size, x, b) for x, b in zip(operands, batched, strict=True))
        return random_bits(key, counter, shape=shape), True


def encrypted(k0: int, k1: int, x0: int, x1: int) -> tuple[int, int]:
    """The block (x0, x1) encrypted by Threefry-2x32-20 under the key (k0, k1), in Python's integers."""
    ks = (k0, k1, k0 ^ k1 ^ _PARITY)
    x0, x1 = (x0 + k0) & _MASK, (x1 + k1) & _MASK
    for group in range(_GROUPS):
        for r in _ROTATIONS[group % 2]:
            x0 = (x0 + x1) & _MASK
            x1 = ((x1 << r | x1 >> (32 - r)) & _MASK) ^ x0
        x0 = (x0 + ks[(group + 1) % 3]) & _MASK
        x1 = (x1 + ks[(group + 2) % 3] + group + 1) & _MASK
    return x0, x1


def _encrypt_all(words: Any, keys: Any, counters: Any) -> None:
    """Fill `words`, of shape (lanes, 2, blocks), with what the counters from the given ones on are encrypted to."""
    lanes, _, blocks = words.shape
    width = min(blocks, _CHUNK)
    height = max(1, _CHUNK // width)
    scratch = np.empty((min(height, lanes), width), _U32)
    for top in range(0, lanes, height):
        rows = slice(top, top + height)
        for left in range(0, blocks, width):
            x = words[rows, :, left : left + width]
            np.add(counters[rows, :1], np.arange(left, left + x.shape[2], dtype=_U32), out=x[:, 0])
            x[:, 1] = counters[rows, 1:]
            _encrypt(keys[rows, :1], keys[rows, 1:], x[:, 0], x[:, 1], scratch[: x.shape[0], : x.shape[2]])


def _encrypt(k0: Any, k1: Any, x0: Any, x1: Any, scratch: Any) -> None:
    ks = (k0, k1, k0 ^ k1 ^ np.uint32(_PARITY))
    np.add(x0, k0, out=x0)
    np.add(x1, k1, out=x1)
    for group in range(_GROUPS):
        for left, right in _shifts()[group % 2]:
            np.add(x0, x1, out=x0)
            np.left_shift(x1, left, out=scratch)
            np.right_shift(x1, right, out=x1)
            np.bitwise_or(x1, scratch, out=x1)
            np.bitwise_xor(x1, x0, out=x1)
        np.add(x0, ks[(group + 1) % 3], out=x0)
        np.add(x1, ks[(group + 2) % 3] + np.uint32(group + 1), out=x1)


@functools.cache
def _shifts() -> list[list[tuple[Any, Any]]]:
    """The rotations as shifts to the left and to the right, in the form that NumPy takes fastest."""
    return [[(np.array(r, _U32), np.array(32 - r, _U32)) for r in group] for group in _ROTATIONS]


@functools.cache
def _compiled(platforms: tuple[str, ...] | None, in_parts: bool) -> Callable[..., Any]:
    """The XLA form for these platforms.  It is jitted, so that JAX traces and lowers it once for each shape.

    Args:
        platforms: the platforms; None for this process.
        in_parts: whether several devices are to draw a part each.
    """
    import jax
    from jax import lax

    def encrypt(k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
        ks = (k0, k1, lax.bitwise_xor(lax.bitwise_xor(k0, k1), np.uint32(_PARITY)))
        x0, x1 = lax.add(x0, k0), lax.add(x1, k1)
        for group in range(_GROUPS):
            for r in _ROTATIONS[group % 2]:
                x0 = lax.add(x0, x1)
                left, right = lax.shift_left(x1, np.uint32(r)), lax.shift_right_logical(x1, np.uint32(32 - r))
                x1 = lax.bitwise_xor(lax.bitwise_or(left, right), x0)
            x0 = lax.add(x0, ks[(group + 1) % 3])
            x1 = lax.add(x1, lax.add(ks[(group + 2) % 3], np.uint32(group + 1)))
        return x0, x1

    def bits(key: Any, counter: Any, shape: Shape) -> Any:
        lanes, size = key.shape[:-1], math.prod(shape)
        blocks = (*lanes, (size + 1) // 2)
        axes = tuple(range(len(lanes)))
        k0, k1, c0, c1 = (lax.broadcast_in_dim(x[..., i], blocks, axes) for x in (key, counter) for i in (0, 1))
        places = lax.broadcasted_iota(_U32, blocks, len(lanes))
        words = lax.concatenate(encrypt(k0, k1, lax.add(c0, places), c1), len(lanes))
        return lax.reshape(lax.slice_in_dim(words, 0, size, axis=len(lanes)), (*lanes, *shape))

    def bits_in_parts(key: Any, counter: Any, shape: Shape) -> Any:
        # Each number from its own place, twice the work, so that a device can draw those that it holds.
        whole, axes = (*key.shape[:-1], *shape), tuple(range(key.ndim - 1))
        blocks = np.uint32((math.prod(shape) + 1) // 2)
        places = lax.full(whole, np.uint32(0))
        for axis, stride in enumerate(row_strides(shape)):
            places = lax.add(places, lax.mul(lax.broadcasted_iota(_U32, whole, len(axes) + axis), np.uint32(stride)))
        is_second = lax.ge(places, blocks)
        k0, k1, c0, c1 = (lax.broadcast_in_dim(x[..., i], whole, axes) for x in (key, counter) for i in (0, 1))
        block = lax.sub(places, lax.mul(lax.convert_element_type(is_second, _U32), blocks))
        first, second = encrypt(k0, k1, lax.add(c0, block), c1)
        return lax.select(is_second, second, first)

    draw = bits_in_parts if in_parts else bits

    def fenced(key: Any, counter: Any, shape: Shape) -> Any:
        # XLA's fusion would repeat all rounds in each consumer, and without vector instructions where the two words
        # are joined.  It does not reach into a branch; which one is taken is not known to it.
        always = lax.ne(lax.bitwise_or(lax.reshape(key, (key.size,))[0], np.uint32(1)), np.uint32(0))
        zeros = functools.partial(lax.full, (*key.shape[:-1], *shape), np.uint32(0))
        return lax.cond(always, lambda: draw(key, counter, shape), zeros)

    def random_bits(key: Any, counter: Any, shape: Shape) -> Any:
        if key.size == 0 or math.prod(shape) == 0:
            return lax.full((*key.shape[:-1], *shape), np.uint32(0))
        return by_platform(
            key,
            counter,
            cpu=functools.partial(fenced, shape=shape),
            default=functools.partial(draw, shape=shape),
        )

    return jax.jit(random_bits, static_argnums=2)


random_bits = RandomBits()
