"""Random programs of views, copies and writes, whose results NumPy gives bit for bit.

A program is a seed.  `run` carries it out on whatever arrays it is given, of NumPy or traced, so that NumPy is the
oracle: which of the arrays in a program share their elements decides its results.  All numbers are small whole
numbers, and the operations are exact, so that results do not depend on how a loop adds up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import ftrans as ft

Random = np.random.Generator
DTYPES = (np.float64, np.float64, np.float64, np.complex128, np.float32, np.int64)
STEPS = 8
# What a trace refuses, because NumPy's answer depends on memory, or because a plain array cannot hold traced values.
REFUSALS = (
    "may or may not have changed",
    "would cut it off",
    "cannot hold a traced value",
    "cannot put traced values",
    "setting an array element with a sequence",
    "order must be 'C' or 'F'",
    "cannot be required",
)


class Refused(Exception):
    """A trace refused a statement with an error that says why."""


# Arguments


def random_argument(c: Random, dtype: Any = None, ndim: int | None = None, read_only: bool = True) -> Any:
    """An array of up to three axes in any memory order."""
    dtype = DTYPES[int(c.integers(len(DTYPES)))] if dtype is None else dtype
    shape = tuple(int(n) for n in c.integers(1, 4, size=int(c.integers(4)) if ndim is None else ndim))
    values = c.integers(-4, 5, size=shape)
    x = (values + 1j * c.integers(-4, 5, size=shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)
    x = in_memory_order(c, np.asarray(x))
    x.flags.writeable = not read_only or bool(c.random() < 0.9)
    return x


def in_memory_order(c: Random, x: Any) -> Any:
    """A copy in row-major or column-major order, of permuted axes, or with gaps and in opposite direction."""
    kind = int(c.integers(6))
    if kind < 2:
        return x.copy("CF"[kind])
    axes = [int(i) for i in c.permutation(x.ndim)]
    if kind == 2:
        return x.transpose(axes).copy().transpose(np.argsort(axes).astype(int))
    steps = [[1, 2, -1, -2][int(c.integers(4))] for _ in x.shape]
    wide = np.zeros([n * abs(s) for n, s in zip(x.shape, steps, strict=True)], x.dtype, "CF"[int(c.integers(2))])
    view = wide[tuple(slice(None, None, s) for s in steps)] if steps else wide
    view[...] = x
    return view


def twin(x: Any) -> Any:
    """A copy that can be written to, with the same strides."""
    low, high = np.lib.array_utils.byte_bounds(x)
    found = np.ndarray(x.shape, x.dtype, np.zeros(high - low, np.uint8), x.ctypes.data - low, x.strides)
    found[...] = x
    return found


# Statements


def integer(c: Random, low: int, high: int) -> int:
    return int(c.integers(low, high))


def random_index(c: Random, shape: tuple[int, ...]) -> Any:
    """A basic index."""
    items: list[Any] = []
    for n in shape:
        kind = c.random()
        if kind < 0.1:
            items.append(None)
        if kind < 0.25:
            items.append(integer(c, -n, n) if n else slice(None))
        elif kind < 0.9:
            ends = [None if c.random() < 0.6 else integer(c, -n, n + 1) for _ in range(2)]
            items.append(slice(*ends, [None, 1, 2, -1, -2][integer(c, 0, 5)]))
        else:
            break
    if c.random() < 0.2:
        items.append(Ellipsis)
    return tuple(items)


def random_shape(c: Random, size: int) -> tuple[int, ...]:
    shapes = [(n, size // n) for n in (1, 2, 3, 4) if size % n == 0] + [(size,), (1, size), (size, 1, 1)]
    return shapes[integer(c, 0, len(shapes))]


def order(c: Random, of: str = "CF") -> Any:
    return of[integer(c, 0, len(of))]


def permutation(c: Random, y: Any) -> tuple[int, ...]:
    return tuple(int(i) for i in c.permutation(y.ndim))


VIEWS: list[Callable[[Random, Any], Any]] = [
    lambda c, y: y.T,
    lambda c, y: y[random_index(c, y.shape)],
    lambda c, y: y[random_index(c, y.shape)],
    lambda c, y: y.reshape(random_shape(c, y.size)),
    lambda c, y: np.reshape(y, random_shape(c, y.size), order=order(c)),
    lambda c, y: y.reshape(-1),
    lambda c, y: y.ravel(),
    lambda c, y: np.ravel(y, order(c)),
    lambda c, y: np.transpose(y, permutation(c, y)),
    lambda c, y: y.swapaxes(0, -1) if y.ndim else y[...],
    lambda c, y: np.moveaxis(y, 0, -1) if y.ndim else y[...],
    lambda c, y: np.expand_dims(y, integer(c, 0, y.ndim + 1)),
    lambda c, y: np.squeeze(y),
    lambda c, y: np.atleast_2d(y),
    lambda c, y: np.atleast_3d(y),
    lambda c, y: np.flip(y),
    lambda c, y: np.rot90(y, integer(c, 0, 4)) if y.ndim > 1 else y[...],
    lambda c, y: np.array_split(y, 2)[integer(c, 0, 2)] if y.ndim else y[...],
    lambda c, y: y.view(),
    lambda c, y: np.diagonal(y) if y.ndim > 1 else y[...],
    lambda c, y: np.broadcast_to(y, (2, *y.shape)),
    lambda c, y: np.broadcast_arrays(y, np.zeros((2,) + (1,) * y.ndim))[0],
    lambda c, y: y.real,
    lambda c, y: y.imag,
    lambda c, y: np.real(y),
    lambda c, y: np.einsum("ij->ji", y) if y.ndim == 2 else y[...],
    lambda c, y: np.meshgrid(y, y, copy=False, sparse=bool(c.random() < 0.5))[integer(c, 0, 2)],
    lambda c, y: np.lib.stride_tricks.sliding_window_view(y, 1, 0) if y.ndim and len(y) else y[...],
    lambda c, y: next(iter(y)) if y.ndim and len(y) else y[...],
    lambda c, y: np.split(y, 1)[0] if y.ndim else y[...],
    lambda c, y: np.hsplit(y, 1)[0] if y.ndim else y[...],
    lambda c, y: np.matrix_transpose(y) if y.ndim > 1 else y[...],
    lambda c, y: np.rollaxis(y, y.ndim - 1) if y.ndim else y[...],
]
# What is the same array or a copy, depending on how it lies in memory.
SAME: list[Callable[[Random, Any], Any]] = [
    lambda c, y: ft.numpy.asarray(y),
    lambda c, y: ft.numpy.asarray(y, order=order(c, "CFKA")),
    lambda c, y: ft.numpy.asanyarray(y),
    lambda c, y: ft.numpy.asarray_chkfinite(y),
    lambda c, y: ft.numpy.ascontiguousarray(y),
    lambda c, y: ft.numpy.asfortranarray(y),
    lambda c, y: ft.numpy.require(y, requirements=order(c)),
    lambda c, y: ft.numpy.array(y, copy=None, order=order(c, "CFKA")),
    lambda c, y: ft.numpy.array(y, copy=None, ndmin=2),
    lambda c, y: ft.numpy.array(y, copy=False) if y.ndim else y[...],
    lambda c, y: y.astype(y.dtype, copy=False),
    lambda c, y: y.astype(y.dtype, order=order(c, "CFKA"), copy=False),
    lambda c, y: y.conj(),
    lambda c, y: y.conjugate(),
    lambda c, y: np.atleast_1d(y),
    lambda c, y: np.real_if_close(y) if y.ndim and y.dtype.kind != "c" else y[...],
    lambda c, y: np.broadcast_arrays(y, y)[1],
    lambda c, y: np.nan_to_num(y, copy=False) if y.ndim else y[...],
]
COPIES: list[Callable[[Random, Any], Any]] = [
    lambda c, y: y.copy(order(c, "CFKA")),
    lambda c, y: np.copy(y, order=order(c, "CFKA")),
    lambda c, y: ft.numpy.array(y, order=order(c, "CFKA")),
    lambda c, y: y.astype(y.dtype, order=order(c, "CFKA")),
    lambda c, y: y.astype(np.complex128, order=order(c, "CFKA")),
    lambda c, y: y.astype(complex),
    lambda c, y: y.flatten(order(c)),
    lambda c, y: np.reshape(y, random_shape(c, y.size), copy=True),
    lambda c, y: y.flat[integer(c, 0, 3) :],
    lambda c, y: y.flat[::2],
    lambda c, y: np.conjugate(y),
    lambda c, y: +y,
    lambda c, y: -y,
    lambda c, y: y * 2,
    lambda c, y: 1 - y,
    lambda c, y: y + np.ones(y.shape),
    lambda c, y: y - y.T if y.ndim < 2 or y.shape == y.shape[::-1] else y + y,
    lambda c, y: y + np.asfortranarray(np.ones(y.shape)),
    lambda c, y: np.where(np.real(y) > 0, y, 0) if y.ndim else y + 1,
    lambda c, y: np.where(np.real(y) > 0, y, -y.T) if y.ndim and y.shape == y.shape[::-1] else y + 1,
    lambda c, y: np.maximum(y, 1),
    lambda c, y: np.sign(y.real),
    lambda c, y: np.clip(y.real, -2, 2),
    lambda c, y: np.zeros_like(y),
    lambda c, y: np.full_like(y, 3, order=order(c, "CFKA")),
    lambda c, y: np.zeros_like(y) + y,
    lambda c, y: ft.numpy.zeros(y.shape, y.dtype, order(c)),
    lambda c, y: np.concatenate([y, y]) if y.ndim else y + 1,
    lambda c, y: np.stack([y, -y], -1),
    lambda c, y: np.roll(y, 1, 0) if y.ndim else y + 1,
    lambda c, y: np.tile(y, 2),
    lambda c, y: np.repeat(y, 2, 0) if y.ndim else y + 1,
    lambda c, y: np.take(y, [0, -1], 0) if y.ndim and len(y) else y + 1,
    lambda c, y: y[[0, -1]] if y.ndim and len(y) else y + 1,
    lambda c, y: y[:, [0]] if y.ndim > 1 and y.shape[1] else y + 1,
    lambda c, y: y[np.ones(y.shape, bool)],
    lambda c, y: np.triu(y) if y.ndim > 1 else y + 1,
    lambda c, y: np.diag(y) if y.ndim == 1 else y + 1,
    lambda c, y: np.diff(y, axis=0) if y.ndim and len(y) > 1 else y + 1,
    lambda c, y: np.max(y.real, axis=0) if y.ndim and len(y) else y + 1,
    lambda c, y: np.max(y.real, axis=-1, keepdims=True) if y.ndim and y.shape[-1] else y + 1,
    lambda c, y: np.meshgrid(y, y)[integer(c, 0, 2)],
    lambda c, y: np.piecewise(y.T, [y.T.real > 0], [1, -1]),
    lambda c, y: np.sort(y, 0) if y.ndim else y + 1,
    lambda c, y: np.expand_dims(y, 0) + np.zeros((2,) + (1,) * y.ndim),
    lambda c, y: np.broadcast_to(y, (2, *y.shape)) * 1,
    lambda c, y: np.pad(y, 1) if y.ndim else y + 1,
    lambda c, y: np.delete(y, 0, 0) if y.ndim and len(y) else y + 1,
    lambda c, y: np.append(y, y),
    lambda c, y: np.ediff1d(y),
    lambda c, y: np.outer(y, [1, -1]),
    lambda c, y: np.kron(y, np.ones(2)),
    lambda c, y: np.choose(np.zeros(y.shape, int), [y, -y]) if y.ndim else y + 1,
]


def random_value(c: Random, y: Any, shape: tuple[int, ...], pool: list[Any]) -> Any:
    """Something to assign to a part of `y` of this shape: a number, an array, or an array of the program."""
    if c.random() < 0.4:
        return integer(c, -3, 4)
    pool = [p for p in pool if np.can_cast(p.dtype, y.dtype, "same_kind")]
    fitting = [p for p in pool if p.shape == shape[len(shape) - p.ndim :] and p.ndim <= len(shape)]
    if not fitting or c.random() < 0.4:
        return in_memory_order(c, c.integers(-3, 4, size=shape))
    return fitting[integer(c, 0, len(fitting))]


def in_place(c: Random, y: Any, pool: list[Any]) -> Any:
    value = random_value(c, y, y.shape, pool)
    kind = integer(c, 0, 3)
    if kind == 0:
        y += value
    elif kind == 1:
        y -= value
    else:
        y *= np.sign(np.real(value))
    return y


def write(c: Random, y: Any, pool: list[Any]) -> None:
    """One statement that writes to `y`."""
    # NumPy's numbers have methods that write to a copy.
    kind = integer(c, 0, 16 if y.ndim else 6)
    if kind < 4:
        index = random_index(c, y.shape)
        y[index] = random_value(c, y, np.empty(y.shape)[index].shape, pool)
    elif kind < 6:
        pool.append(in_place(c, y, pool))
    elif kind == 6:
        index = random_index(c, y.shape)
        y[index] += integer(c, 1, 4)
    elif kind == 7:
        y[np.real(y) > 0] = integer(c, -3, 0)
    elif kind == 8:
        np.copyto(y, random_value(c, y, y.shape, pool) * 1, casting="unsafe")
    elif kind == 9:
        y.flat[integer(c, 0, y.size or 1)] = integer(c, 5, 9)
    elif kind == 10:
        y.flat[integer(c, 0, 2) :: 2] = integer(c, 5, 9)
    elif kind == 11 and y.ndim:
        np.put(y, [0, -1], [7, 8])
    elif kind == 12 and y.dtype.kind == "c":
        y.real = random_value(c, y, y.shape, [])
    elif kind == 13:
        np.subtract(1, y, out=y)
    elif kind == 14 and y.ndim and len(y):
        y[[0, -1]] = random_value(c, y, y.shape[1:], pool)
    else:
        y.fill(integer(c, -9, 10))


def step(c: Random, pool: list[Any]) -> None:
    """One random statement, on one of the arrays of the program."""
    place = integer(c, 0, len(pool))
    y, kind = pool[place], c.random()
    if kind < 0.3:
        pool.append(choice(c, VIEWS)(c, y))
    elif kind < 0.4:
        pool.append(choice(c, SAME)(c, y))
    elif kind < 0.6:
        pool.append(choice(c, COPIES)(c, y))
    elif kind < 0.64:
        other = pool[integer(c, 0, len(pool))]
        pool.append(np.add(y, other) if y.shape == other.shape else y * 1)
    else:
        write(c, y, pool)


def choice(c: Random, items: list[Any]) -> Any:
    return items[integer(c, 0, len(items))]


def run(seed: int, arguments: list[Any]) -> list[Any]:
    """All arrays of a random program, after the numbers of the statements that failed.

    Raises:
        Refused: a trace refused a statement.
    """
    pool = list(arguments)
    failed: list[Any] = []
    for number in range(STEPS):
        count = len(pool)
        try:
            step(np.random.default_rng((seed, number)), pool)
        except (ValueError, IndexError, TypeError, AttributeError, Warning) as error:
            if any(words in str(error) for words in REFUSALS):
                raise Refused(str(error)) from error
            failed.append(number)
            del pool[count:]
    return [np.array(failed, float), *pool]
