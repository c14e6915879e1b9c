"""Random modules as somebody else may have written them, for numbers of Python, as text.

A module is a seed.  It has a function `f(x, y)` of two floats, which mixes `math`, buffers of NumPy with views of them,
lists, classes, closures, tables, caches, generators, exceptions and branches.  Numbers stay small.
"""

from __future__ import annotations

import linecache
import types
from collections.abc import Callable
from typing import Any

import numpy as np

HEAD = """
import cmath
import functools
import itertools
import math
import operator
from math import exp, sin as sine, sqrt
import numpy as np
from numpy import asarray as aa, zeros as nought

TABLE = {"tanh": math.tanh, "atan": math.atan, "sine": np.sin}
KNOTS = np.array([-9.0, -0.6, 0.1, 0.7, 9.0])
LEVELS = [0.3, -0.2, 0.5, 0.9, -0.4]
alias = math.cos


class Point:
    count = 0

    def __init__(self, x, y=0.25):
        self.x, self.y = float(x), y

    @property
    def length(self):
        return math.hypot(self.x, self.y, 1.0)

    @staticmethod
    def between(p, q, at=np.float64(0.5)):
        return Point(p.x + at * (q.x - p.x), float(p.y) * 0.5 + q.y * 0.5)

    @classmethod
    def of(cls, pair):
        return cls(*map(float, pair))

    def __add__(self, other):
        return type(self)(self.x + other.x, self.y + other.y)

    def __lt__(self, other):
        return self.x < other.x


@functools.lru_cache(maxsize=None)
def cached(t, n=2):
    return math.tanh(t) * n


@functools.lru_cache(maxsize=None)
def weights(n):
    made = np.zeros(n)
    for i in range(n):
        made[i] = 1.0 / (1 + i)
    return made


def power(t, n):
    return 1.0 if n == 0 else t * power(t, n - 1)


def terms(t, n):
    term = 1.0
    for i in range(1, n):
        term *= t / i
        yield term


def with_default(t, f=math.atan, scale=float("0.5"), *more, **options):
    return f(t) * scale + sum(more) + options.get("shift", 0.0)


def checked(t):
    if not isinstance(t, (int, float)) or type(t) is complex:
        raise TypeError("a number, please")
    return float(t)


def deferred(t):
    def inner(s, k=t):
        nonlocal t
        t = t * 0.5 + s
        return k * t
    return inner
"""

# Lines that make `new` of numbers, which stand in braces; `{n}` is a small integer.
STATEMENTS = (
    "new = math.sin({}) * alias({}) + TABLE['tanh']({})",
    "new = sine({}) + exp(-abs({})) - sqrt(1.0 + {} ** 2)",
    "new = math.atan2({}, 1.5 + {} * {}) + math.fsum([{}, {}, 0.1])",
    "new = with_default({}, scale={}) + with_default({}, math.tanh, 0.3, {}, shift={})",
    "new = cached({}) + float(weights(4)[{n}]) * {}",
    "new = power({}, {n}) + sum(terms({}, 4))",
    "new = (lambda s: s * math.cos(s))({}) + (lambda s, t={}: s - t)({})",
    "new = Point({}, {}).length + Point.between(Point({}), Point.of(({}, {}))).y",
    "new = (Point({}) + Point({})).x * min(Point({}), Point({})).x",
    "inner = deferred({})\nnew = inner({}) + inner({}) * 0.5",
    "new = checked({}) + checked({}) * 0.25",
    "buffer = np.zeros(4)\nbuffer[{n}] = {}\nbuffer[1:3] += {}\nbuffer[::-1][0] -= {}\nnew = float(buffer.sum())",
    "grid = nought((2, 3))\nrow, column = grid[1], grid[:, 2]\nrow[:] = {}\ncolumn[0] = {}\n"
    "grid.T[0, 1] *= 0.5\ngrid.reshape(-1)[1] = {}\nnew = np.dot(grid[0], grid[1]) + row[2]",
    "held = np.ones(3)\nother = held.copy()\nheld *= {}\nother[1] = {}\nheld[[0, 2]] += other[:2]\n"
    "new = (held @ other) * 0.2",
    "full = np.full((3,), {})\nlike = np.zeros_like(full)\nlike[1:] = full[:2] * {}\nnew = like.max() + like.mean()",
    "grown = []\nfor i in range(4):\n    grown.append(math.sin({} * i) + {})\n"
    "new = sum(grown) * 0.2 + np.array(grown).std()",
    "steps = np.arange(3.0)\nfor i, s in enumerate(steps):\n    steps[i] = s * {} + (steps[i - 1] if i else {})\n"
    "new = steps[-1] * 0.2",
    "old = fresh = 0.5\nfor _ in range(3):\n    old, fresh = fresh, math.cos(old) * {} + fresh * {}\nnew = fresh",
    "s, k = {}, 0\nwhile abs(s) > 0.05 and k < 5:\n    s, k = s * 0.6, k + 1\nnew = s + {} * k",
    "if {} > {}:\n    new = math.tanh({})\nelif {} > 0.2:\n    new = {} * 0.5\nelse:\n    new = -{}",
    "try:\n    new = math.sqrt({} - 0.4)\nexcept ValueError:\n    new = {} * {}",
    "try:\n    new = math.log({}) * 0.1\nexcept ValueError as error:\n    new = {} if 'domain' in str(error) else 0.0\n"
    "finally:\n    new = new + {}",
    "try:\n    new = LEVELS[int(10 * {})]\nexcept IndexError:\n    new = {}",
    "i = int(np.searchsorted(KNOTS, {})) - 1\nnew = LEVELS[i] + ({} - KNOTS[i]) * 0.1",
    "i = np.searchsorted(KNOTS, {})\nnew = KNOTS[i] * {} * 0.1 + np.interp({}, KNOTS, LEVELS)",
    "new = sum([s * t for s in ({}, 0.2) for t in (1.0, {}) if s > -5]) * 0.5",
    "found = {{k: f({}) for k, f in TABLE.items()}}\nnew = found['atan'] - found['sine'] * {}",
    "new = functools.reduce(operator.mul, map(math.cos, [{}, {}, 0.3])) + functools.partial(math.pow, 2.0)({})",
    "new = sorted([{}, {}, 0.1], key=lambda s: -s)[1] + max({}, 0.1) + min(({}, {}), key=abs)",
    "new = list(itertools.accumulate([{}, {}, 0.3], lambda s, t: s * 0.5 + t))[-1]",
    "z = complex({}, {})\n"
    "new = abs(cmath.exp(1j * z.real)) * z.imag + cmath.phase(z + 3.0) + (z * z.conjugate()).real * 0.1",
    "a = aa([{}, 1.0, {}], dtype=float)\nb = np.array([[{}, 0.0, 1.0], [0.5, {}, 0.2]])\nnew = (b @ a).sum() * 0.3",
    "m = np.eye(2) * 2.0\nm[0, 1] = {} * 0.3\nm[1, 0] += {} * 0.3\n"
    "new = np.linalg.solve(m, np.array([{}, 1.0]))[0] + np.linalg.norm(m) * 0.1",
    "new = math.fmod({} + 7.3, 0.9) + math.remainder({} + 3.1, 0.77) + math.copysign({}, {})",
    "part, whole = math.modf(3.0 + {})\nnew = part + 0.01 * whole * {}",
    "new = math.hypot({}, 1.0) + math.dist(({}, 0.4), ({}, {})) + math.erf({})",
    "first, *rest = [{}, {}, 0.2]\nnew = first + sum(rest) * {}",
    "new = np.vectorize(lambda s: math.sin(s) if s > 0.1 else s * s)(np.array([{}, {}])).sum()",
    "new = sum(v * (i + 1) for (i,), v in np.ndenumerate(np.array([{}, {}]))) * 0.4",
    "new = np.apply_along_axis(lambda r: r * {} + r.sum(), 0, np.array([{}, 0.2])).sum() * 0.3",
    "cells = [[0.0] * 2 for _ in range(2)]\ncells[0][1] = {}\ncells[1] = [{}, 0.3]\n"
    "new = np.linalg.det(np.array(cells) + np.eye(2))",
    "new = float(np.asarray({}, dtype=np.float64)) + np.float64({}).item() * 0.5 + np.asarray([{}]).tolist()[0]",
    "ends = np.empty(3)\nnp.multiply([0.1, 0.2, 0.3], {}, out=ends)\nends[ends > 0.05] *= {}\n"
    "new = np.cumsum(ends)[-1]",
    "ends = np.linspace(0.0, {}, 4)\nends[0] = {}\nends[1:] -= ends[:-1]\nnew = ends @ [0.3, 0.1, 0.2, 0.4]",
    "flat = np.zeros((2, 2))\nflat.flat[{n}] = {}\nflat.ravel()[0] += {}\nnp.fill_diagonal(flat, {})\n"
    "new = flat.sum() * 0.4",
    "line = 'new = {{}}'\nnew = {} * len(line.format(1)) * 0.1 + {} * int(f'{{3.7:.0f}}') * 0.1",
    "def local(s, depth=2):\n    return s if depth == 0 else math.sin(local(s * {}, depth - 1)) + {}\nnew = local({})",
    "class Local(Point):\n    def size(self):\n        return super().length + {}\nnew = Local({}).size()",
    "kinds = np.zeros(4, dtype=int)\nkinds[{n}] = 2\nnew = {} * kinds.sum() + LEVELS[kinds[{n}]] * {}",
    "new = {} if (s := {}) > 0.1 else s * {}",
    "match {n}:\n    case 0 | 1:\n        new = math.sinh({})\n    case k:\n        new = math.expm1({}) * 0.2 * k",
    "with np.errstate(all='ignore'):\n    new = np.where({} > 0.1, np.sqrt(abs({})), {})",
    "queue = [{}, {}]\nqueue.insert(0, 0.3)\nqueue[1:2] = [{} * 0.5, 0.1]\nnew = queue.pop() + queue[1] * queue[0]",
)  # fmt: skip

_OPERANDS = (
    "{}",
    "{}",
    "{}",
    "{} * {}",
    "({} - 0.4 * {})",
    "math.tanh({})",
    "np.cos({})",
    "abs({})",
    "0.7 * {}",
    "-{}",
)


class OthersModule:
    """A module.

    Attributes:
        source: its text.
        module: it, executed.
        f: its function of two floats.
        at: the floats.
    """

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._names = ["x", "y"]
        lines = [HEAD, "", "def f(x, y):"]
        for i in range(5):
            statement = self._some(STATEMENTS)
            for line in self._filled(statement).split("\n"):
                lines.append(f"    {line}")
            lines.append(f"    v{i} = math.tanh(new)" if self._random.integers(2) else f"    v{i} = np.sin(new)")
            self._names.append(f"v{i}")
        lines.append(f"    return {' + '.join(self._names)}")
        self.source = "\n".join(lines) + "\n"
        name = f"others_module_{seed}"
        self.module = types.ModuleType(name)
        filename = f"<{name}>"
        linecache.cache[filename] = (len(self.source), None, self.source.splitlines(True), filename)
        self.module.__file__ = filename
        exec(compile(self.source, filename, "exec"), vars(self.module))
        self.f: Callable[..., Any] = self.module.f  # type: ignore[attr-defined]
        self.at = tuple(map(float, self._random.uniform(-0.9, 1.1, 2)))

    def _some(self, options: Any) -> Any:
        return options[int(self._random.integers(len(options)))]

    def _filled(self, text: str) -> str:
        """A statement with operands in the place of its braces."""
        parts = (
            text.replace("{n}", str(int(self._random.integers(4)))).replace("{{", "\0").replace("}}", "\1").split("{}")
        )
        filled = "".join(p + self._operand() for p in parts[:-1]) + parts[-1]
        return filled.replace("\0", "{").replace("\1", "}")

    def _operand(self) -> str:
        parts = self._some(_OPERANDS).split("{}")
        return "(" + "".join(p + str(self._some(self._names)) for p in parts[:-1]) + parts[-1] + ")"
