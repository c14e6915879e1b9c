"""Random loops, each as a scan and as Python's own loop over the same body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import ftrans as ft

MOST_ELEMENTS = 48
STEPS = (0, 1, 2, 3, 3, 4, 4, 5, 5)
SHAPES = ((), (2,), (3,), (2, 3), (3, 3), (3, 2), (0,), (1,), (2, 1, 3))
WEIGHTS = ((3, 3), (4, 3), (3, 2), (2, 4))
DTYPES = ("float64", "float64", "float64", "float64", "complex128", "int64", "int32", "bool")
CHECKPOINTS = (*(None,) * 9, True, "dots", 1, 2, "sqrt", "everything")


class Constructs(NamedTuple):
    """The functions of control flow that a body is written with."""

    scan: Callable[..., Any]
    cond: Callable[..., Any]
    while_loop: Callable[..., Any]
    checkpoint: Callable[..., Any]
    jit: Callable[..., Any]


def _python_scan(
    step: Callable[..., Any], carry: Any, xs: Any, length: int, reverse: bool, unroll: int, checkpoint: Any
) -> Any:
    if not length:
        _, ys = step(carry, [np.zeros(x.shape[1:], x.dtype)[()] for x in xs])
        return carry, [np.zeros((0, *y.shape), y.dtype) for y in ys]
    rows: list[Any] = [None] * length
    for i in reversed(range(length)) if reverse else range(length):
        carry, rows[i] = step(carry, [x[i] for x in xs])
    return carry, [np.stack(column) for column in zip(*rows, strict=True)]


def _python_while(condition: Callable[..., Any], body: Callable[..., Any], carry: Any) -> Any:
    while condition(carry):
        carry = body(carry)
    return carry


FTRANS = Constructs(ft.scan, ft.cond, ft.while_loop, ft.checkpoint, ft.jit)
PYTHON = Constructs(
    _python_scan, lambda p, f, g, *xs: f(*xs) if p else g(*xs), _python_while, lambda f, **_: f, lambda f: f
)

# Its derivative is not that of its value, so that it shows whether the rule is used.
twisted = ft.custom_vjp(lambda x: np.sin(x))
twisted.defvjp(lambda x: (np.sin(x), np.cos(x)), lambda cosine, ct: (2.0 * cosine * ct,))


def is_inexact(x: Any) -> bool:
    return x.dtype.kind in "fc"


def random_value(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    """An array or a number."""
    real = rng.normal(size=shape)
    if dtype == "bool":
        return np.asarray(real > 0)[()]
    if dtype.startswith("int"):
        return np.asarray(np.abs(real) * 3).astype(dtype)[()]
    return np.asarray(real + 1j * rng.normal(size=shape) if dtype == "complex128" else real)[()]


class Body:
    """Writes a random function: each rule makes further values of those that are there already."""

    def __init__(self, seed: int, constructs: Constructs, values: Sequence[Any], depth: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.constructs = constructs
        self.values = list(values)
        self.depth = depth

    def write(self, count: int) -> Body:
        """Apply so many rules."""
        rules = [*_RULES, *(_NESTED if self.depth else ())]
        for _ in range(count):
            x = self.some(is_inexact)
            if x is not None:
                found = rules[int(self.rng.integers(len(rules)))](self, x)
                self.values += [y for y in found if y is not None and y.size <= MOST_ELEMENTS]
        return self

    def some(self, fits: Callable[[Any], bool]) -> Any:
        """One of the values that fit, or None."""
        fitting = [x for x in self.values if fits(x)]
        return fitting[int(self.rng.integers(len(fitting)))] if fitting else None

    def like(self, x: Any) -> Any:
        """A value of the type of `x`, bounded if it is inexact."""
        same = [
            y for y in self.values if y.shape == x.shape and (y.dtype == x.dtype or (is_inexact(x) and is_inexact(y)))
        ]
        if not is_inexact(x):
            y = same[-1] if same else np.zeros(x.shape, x.dtype)
            return (y % 11).astype(x.dtype) if x.dtype.kind == "i" else y
        y = same[-1 - int(self.rng.geometric(0.4) - 1) % len(same)] if same and self.rng.integers(4) else None
        if y is None:
            recent = [v for v in self.values if is_inexact(v)][-3:]
            y = np.broadcast_to(np.sum(recent[int(self.rng.integers(len(recent)))]) * 0.3, x.shape)
        return np.sin(y.real) + 1j * np.sin(y.imag) if x.dtype.kind == "c" else np.sin(y.real)


def _broadcasting(b: Body, x: Any) -> Any:
    def fits(y: Any) -> bool:
        pairs = zip(x.shape[::-1], y.shape[::-1], strict=False)
        return is_inexact(y) and all(m == n or 1 in (m, n) for m, n in pairs)

    return b.some(fits)


def _elementwise(b: Body, x: Any) -> Any:
    functions = [
        np.sin,
        np.tanh,
        lambda v: np.exp(np.sin(v)),
        lambda v: v * v * 0.3,
        np.conj,
        lambda v: twisted(v.real),
    ]
    return [functions[int(b.rng.integers(len(functions)))](x)]


def _pair(b: Body, x: Any) -> Any:
    y = _broadcasting(b, x)
    functions = [
        lambda: x + y,
        lambda: x - y,
        lambda: np.tanh(x.real) * y,
        lambda: x / (2.5 + np.cos(y.real)),
        lambda: np.where(x.real > 0.1, x, y),
        lambda: np.maximum(x.real, y.real),
    ]
    return [functions[int(b.rng.integers(len(functions)))]()]


def _product(b: Body, x: Any) -> Any:
    y = b.some(lambda y: is_inexact(y) and y.ndim in (1, 2) and x.ndim > 0 and y.shape[0] == x.shape[-1])
    return [x @ y] if y is not None and x.ndim else []


def _parts_of_product(b: Body, x: Any) -> Any:
    w = b.some(lambda w: is_inexact(w) and w.ndim == 2 and w.size > 0)
    if w is None:
        return []
    v = b.some(lambda v: is_inexact(v) and v.ndim in (1, 2) and v.shape[-1] == w.shape[1])
    v = np.broadcast_to(np.sum(x), (w.shape[1],)) if v is None else v
    z = w @ np.tanh(v.real).T if b.rng.integers(2) else np.tanh(v.real) @ w.T
    axis = int(b.rng.integers(z.ndim))
    start, stop = sorted(int(i) for i in b.rng.integers(0, z.shape[axis] + 1, size=2))
    before = (slice(None),) * axis
    parts = [z[(*before, slice(i, j))] for i, j in ((0, start), (start, stop), (stop, z.shape[axis]))]
    return parts if b.rng.integers(2) else parts[1:2]


def _cell(b: Body, w: Any) -> Any:
    """A vector of gates, and parts of it, from all that is small."""
    n = w.shape[1]
    every = np.concatenate([x.real.reshape(-1) for x in b.values if is_inexact(x) and x.size <= n] or [np.ones(n)])
    z = w.real @ np.tanh(every[-n:] if every.size >= n else np.broadcast_to(np.sum(every), (n,)))
    middle = int(b.rng.integers(1, w.shape[0]))
    return [z[:middle], z[middle:]][int(b.rng.integers(2)) :]


def _moved(b: Body, x: Any) -> Any:
    if not x.ndim:
        return [np.broadcast_to(x, (2,))]
    half = (x.shape[0] + 1) // 2
    functions = [lambda: x[:half], lambda: x[::-1], lambda: x.T, lambda: np.concatenate([x, x]), lambda: x.reshape(-1)]
    return [functions[int(b.rng.integers(len(functions)))]()]


def _reduced(b: Body, x: Any) -> Any:
    functions = [lambda: np.sum(x, axis=0), lambda: np.cumsum(x, axis=0), lambda: ft.stop_gradient(x)]
    return [functions[int(b.rng.integers(len(functions)))]()] if x.ndim else []


def _counted(b: Body, x: Any) -> Any:
    n = b.some(lambda n: n.dtype.kind == "i" and n.ndim == 0)
    if n is None:
        return [x.real > 0.2, np.full(2, 0.5)]
    return [(n * 3 + 1) % 7, n * 0.1, *([ft.numpy.take(x, n % x.shape[0], axis=0)] if x.size and x.ndim else [])]


def _inner(b: Body) -> Callable[..., Any]:
    """A function of arrays that also uses values of the body."""
    seed, depth, outer, constructs = int(b.rng.integers(1 << 30)), b.depth - 1, b.values[:3], b.constructs
    return lambda x: Body(seed, constructs, [*outer, x], depth).write(3).like(x)


def _branch(b: Body, x: Any) -> Any:
    return [b.constructs.cond(np.sum(x.real) > 0.1, _inner(b), _inner(b), x)]


def _while(b: Body, x: Any) -> Any:
    body, steps = _inner(b), int(b.rng.integers(4))
    first = (np.int64(0), np.sin(x))
    return [b.constructs.while_loop(lambda c: c[0] < steps, lambda c: (c[0] + 1, body(c[1])), first)[1]]


def _wrapped(b: Body, x: Any) -> Any:
    wrap = (b.constructs.checkpoint, b.constructs.jit)[int(b.rng.integers(2))]
    return [wrap(_inner(b))(x)]


def _loop(b: Body, x: Any) -> Any:
    length, seed = int(b.rng.integers(4)), int(b.rng.integers(1 << 30))
    xs = [v for v in b.values if v.ndim and v.shape[0] == length][:2]
    carry, ys = run_loop(b.constructs, seed, b.depth - 1, [np.sin(x)], b.values[:2], xs, length)
    return [*carry, *ys]


_RULES: list[Callable[[Body, Any], Any]] = [
    _elementwise, _elementwise, _pair, _pair, _pair, _product, _product, _parts_of_product, _moved, _reduced, _counted
]  # fmt: skip
_NESTED: list[Callable[[Body, Any], Any]] = [_branch, _while, _wrapped, _loop]


def run_loop(
    constructs: Constructs,
    seed: int,
    depth: int,
    init: Sequence[Any],
    fixed: Sequence[Any],
    xs: Sequence[Any],
    length: int,
) -> Any:
    """A loop over a random body: some carries only add up, some stay, some are exchanged, and results repeat."""

    def step(carry: Any, x: Any) -> Any:
        rng = np.random.default_rng(seed)
        adds_up = [is_inexact(c) and rng.integers(4) == 0 for c in carry]
        body = Body(seed + 1, constructs, [c for c, a in zip(carry, adds_up, strict=True) if not a], depth)
        body.values += [*(x or ()), *fixed]
        body.write(int(rng.integers(2, 9)))
        weights = next((w for w in fixed if is_inexact(w) and w.ndim == 2 and w.size), None)
        gates = [] if weights is None else _cell(body, weights)
        body.values += gates
        new = []
        for c, a in zip(carry, adds_up, strict=True):
            same = [y for y in (*carry, *(x or ()), *fixed) if y.shape == c.shape and y.dtype == c.dtype]
            terms = [y for y in body.values if y.shape == c.shape and y.dtype == c.dtype]
            if a:
                new.append(c + terms[-1 - int(rng.integers(2)) * int(rng.integers(len(terms)))] if terms else c - 0.5)
            elif rng.integers(4) == 0:
                new.append(same[int(rng.integers(len(same)))])
            elif gates and c.dtype.kind == "f" and rng.integers(2):
                new.append(np.sin(c + np.sum(gates[-1] * 0.3)))
            else:
                new.append(body.like(c))
        every = [*body.values, *new]
        ys = [every[-1 - int(rng.integers(len(every)))] for _ in range(int(rng.integers(5)))]
        return new, [*ys, *(c for c in (*carry, *carry) if rng.integers(3) == 0)]

    rng = np.random.default_rng(seed + 2)
    reverse, unroll = bool(rng.integers(2)), int(rng.integers(1, 3))
    checkpoint = CHECKPOINTS[int(rng.integers(len(CHECKPOINTS)))]
    return constructs.scan(step, list(init), list(xs), length, reverse, unroll, checkpoint)


class RandomLoop:
    """A loop, with arguments: the inexact ones among its first carries, constants and sequences."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.seed = seed
        self.length = int(rng.choice(STEPS))
        self.depth = int(rng.choice((0, 0, 0, 0, 1, 2)))
        leads = [(), (), (), (), *[(self.length,)] * int(rng.integers(3))]
        self._leaves = [
            random_value(rng, (*lead, *SHAPES[int(rng.integers(len(SHAPES)))]), str(rng.choice(DTYPES)))
            for lead in leads
        ]
        self._leaves[0] = random_value(rng, SHAPES[int(rng.integers(1, 6))], "float64")
        self._leaves[2] = random_value(rng, WEIGHTS[int(rng.integers(len(WEIGHTS)))], "float64")
        self._places = [i for i, x in enumerate(self._leaves) if is_inexact(x) and (i in (0, 2) or rng.integers(4))]
        self.args = [self._leaves[i] for i in self._places]

    def results(self, constructs: Constructs) -> Callable[..., Any]:
        """The function from the arguments to some of the results."""

        def f(*args: Any) -> Any:
            leaves = list(self._leaves)
            for i, x in zip(self._places, args, strict=True):
                leaves[i] = x
            length = self.length
            carry, ys = run_loop(constructs, self.seed, self.depth, leaves[:2], leaves[2:4], leaves[4:], length)
            return [y for i, y in enumerate([*carry, *ys]) if (self.seed + i) % 4]

        return f

    def loss(self, constructs: Constructs) -> Callable[..., Any]:
        """The function from the arguments to a number."""

        def f(*args: Any) -> Any:
            total: Any = 0.0
            for i, y in enumerate(self.results(constructs)(*args)):
                total += np.sum(np.sin(y.real) * (1.0 + i)) + (np.sum(y.imag**2) if y.dtype.kind == "c" else 0.0)
            return total

        return f
