"""Random functions whose loops are Python's, as text, so that each statement has a line of its own.

A function is a seed.  Its arguments are rows `x`, a vector `v` and a matrix `A`; all vectors have `WIDTH` elements.
Numbers stay small, and nothing is chaotic, so that rounding is not magnified.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np

import ftrans as ft
from ftrans.nn import random

WIDTH = 3
STEPS = (11, 14, 19, 26)
# Rows, and elements of the buffers that are filled, beyond one per step.
MORE = 4

_FUNCTIONS = (
    "np.sin({})",
    "np.tanh({})",
    "0.3 * {} * {}",
    "({})[::-1]",
    "np.cumsum({}) * 0.3",
    "A @ np.tanh({})",
    "np.maximum({}, -0.1)",
    "np.concatenate([({})[1:], v[:1]])",
    "({}).reshape(1, 3)[0]",
)
_PAIRS = (
    "({} + {})",
    "({} - 0.5 * {})",
    "np.tanh({}) * {}",
    "np.where({} > 0.05, {}, 0.2 * v)",
    "{} / (2.5 + np.cos({}))",
    "np.dot({}, {}) * v",
)


class PythonLoop:
    """A function with loops.

    Attributes:
        source: its text.
        function: the function of `args`, which returns a list of arrays.
        args: floating-point arrays.
        has_guards: whether branches of Python depend on the arguments.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._random = np.random.default_rng(seed)
        self._steps = int(self._random.choice(STEPS))
        self._lines: list[str] = []
        # Carried vectors and scalars, and whether lists, buffers and keys of random numbers are used.
        self._vectors = ["a", "b", "c"][: 1 + self._one_of(3)]
        self._has = {
            name: bool(self._one_of(2)) for name in ("rows", "line", "history", "lagged", "parts", "queue", "count")
        }
        self._has["key"] = self._one_of(6) == 0
        self.has_guards = False
        self._write()
        self.source = "\n".join(self._lines) + "\n"
        name = f"<loop {seed}>"
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(True), name)
        namespace: dict[str, Any] = {"np": np, "ft": ft, "random": random, "n": self._steps, **self._constants()}
        exec(compile(self.source, name, "exec"), namespace)
        self.function: Callable[..., Any] = namespace["f"]
        draw = np.random.default_rng(seed + 1).normal
        rows = self._steps + MORE
        self.args = [draw(size=(rows, WIDTH)) * 0.5, draw(size=WIDTH), draw(size=(WIDTH, WIDTH)) * 0.4]

    def loss(self, *args: Any) -> Any:
        """A number that depends on all results."""
        outs = self.function(*args)
        return sum(np.sum(np.sin(y) * (1.0 + 0.1 * i)) for i, y in enumerate(outs))

    def _constants(self) -> dict[str, Any]:
        random = np.random.default_rng(self.seed + 2)
        rows = self._steps + MORE
        return {
            "W": random.normal(size=(rows, WIDTH)),
            "K": [round(float(k), 3) for k in random.normal(size=rows)],
            "PLACES": random.integers(0, rows, size=rows),
        }

    # Choices

    def _one_of(self, count: int) -> int:
        return int(self._random.integers(count))

    def _some(self, options: Any) -> Any:
        return options[self._one_of(len(options))]

    # Text

    def _add(self, depth: int, text: str) -> None:
        self._lines.append("    " * depth + text)

    def _write(self) -> None:
        self._add(0, "def f(x, v, A):")
        for i, name in enumerate(self._vectors):
            self._add(
                1, f"{name} = {self._some(('v * 0.5', 'np.sin(v)', 'A[0] + 0.1', 'np.zeros(3)', 'x[0]'))} * {i + 1}.0"
            )
        self._add(1, "total, scale = 0.0, np.sum(v) * 0.1")
        self._add(1, "added = v * 1.0")
        if self._has["rows"]:
            self._add(1, f"y = {self._some(('np.zeros((n + 4, 3)) + 0.0 * v', 'x.copy()', 'x[::-1] * 0.3'))}")
        if self._has["line"]:
            self._add(1, f"z = {self._some(('np.zeros(n + 4) + 0.0 * v[0]', 'x[:, 1] * 0.5'))}")
        if self._has["history"]:
            self._add(1, "h = [v, 0.5 * v, x[0], A[1], v, x[1]]")
        if self._has["lagged"]:
            self._add(1, "old, older = v, 0.1 * v")
        if self._has["parts"]:
            self._add(1, "u = [v[0], 0.5 * v[1], A[0, 0]]")
        if self._has["queue"]:
            self._add(1, "q = [v, x[1], 0.1 * v]")
        if self._has["count"]:
            self._add(1, "count, M = np.sum(v > 0.0), 0.5 * A")
        self._add(1, "def helper(p, r):")
        self._add(2, f"s = {self._some(('p * r', 'p - r', 'np.dot(p, r) * p'))}")
        self._add(2, "return np.sin(s) + 0.1 * p")
        if self._has["key"]:
            self._add(1, f"key = random.key({self.seed})")
        self._loop()
        if self._one_of(3) == 0:
            if self._has["history"]:
                self._has["filled"] = True
                self._add(1, "filled = list(h)")
            self._loop()
        results = [*self._vectors, "total", "added", "scale"]
        results += ["y"] * self._has["rows"] + ["z"] * self._has["line"]
        if self._has["history"]:
            results += [self._some(("np.stack(h)", "np.array(h)", "h[5] + h[-1]", "sum(h)", "np.stack(h, axis=1)"))]
            results += ["h[4]"] * self._one_of(2)
        results += ["u[0]", "u[1] * u[2]"] * self._has["parts"] + ["q[0] + q[2]"] * self._has["queue"]
        results += ["count * 1.0", "M"] * self._has["count"]
        self._add(1, f"return [{', '.join(results)}]")

    def _loop(self) -> None:
        kind = self._one_of(8)
        if kind == 0:
            self._add(1, "t = 0")
            self._add(1, "while t < n:")
        elif kind == 1:
            self._add(1, "for t in reversed(range(n)):")
        elif kind == 2:
            self._add(1, f"for t in range({self._some((1, 2))}, n):")
        elif kind == 3:
            self.has_guards = True
            self._add(1, "t = 0")
            self._add(1, "while t < n and np.sum(a * a) < 1e3:")
        else:
            self._add(1, "for t in range(n):")
        if self._has["key"]:
            self._add(2, "key, sub = random.split(key)")
        for _ in range(1 + self._one_of(4)):
            self._statement(2, "t", inner=True)
        if self._has["lagged"]:
            self._add(2, "old, older = a, old")
        if self._one_of(12) == 0:
            self._add(2, "if t == n - 2:")
            self._add(3, "break")
        if kind in (0, 3):
            self._add(2, "t = t + 1")

    # Statements

    def _statement(self, depth: int, t: str, inner: bool) -> None:
        kinds: list[Callable[[int, str], None]] = [
            self._carry, self._carry, self._carry, self._swap, self._sum, self._in_place
        ]  # fmt: skip
        kinds += [self._write_row] * (2 * self._has["rows"]) + [self._write_element] * (2 * self._has["line"])
        kinds += [self._part] * (2 * self._has["parts"]) + [self._pass_on] * self._has["queue"]
        kinds += [self._counted] * (2 * self._has["count"])
        kinds += [self._append] * (self._has["history"] and depth == 2)
        kinds += [self._branch, self._gradient, self._guard, self._inner_loop] if inner else []
        self._some(kinds)(depth, t)

    def _carry(self, depth: int, t: str) -> None:
        name = self._some(self._vectors)
        form = self._some(("np.sin({})", "0.5 * {0} + 0.3 * np.tanh({1})", "0.9 * np.tanh({})"))
        expression = self._vector(t, 2)
        self._add(depth, f"{name} = " + (form.format(name, expression) if "{1}" in form else form.format(expression)))

    def _swap(self, depth: int, t: str) -> None:
        if len(self._vectors) < 2:
            self._carry(depth, t)
        else:
            self._add(depth, f"a, b = b, np.tanh({self._vector(t, 1)}) + 0.1 * a")

    def _sum(self, depth: int, t: str) -> None:
        self._add(depth, f"total += np.sum({self._vector(t, 2)}) * 0.1")
        if self._one_of(3) == 0:
            self._add(depth, "scale = np.cos(scale + 0.01 * total)")

    def _in_place(self, depth: int, t: str) -> None:
        place = self._some(("added", "added", "added[1:]", "added[0]"))
        expression = f"0.1 * np.sin({self._vector(t, 1)})"
        part = {"added": "", "added[1:]": "[1:]", "added[0]": "[0]"}[place]
        self._add(depth, f"{place} {self._some(('+=', '-='))} ({expression}){part}")

    def _write_row(self, depth: int, t: str) -> None:
        expression = f"0.4 * np.sin({self._vector(t, 2)})"
        self._add(depth, self._some((
            f"y[{t} + 3] = {expression}",
            f"y[{t} + 2] += {expression}",
            f"y[n - {t}, 1:] = ({expression})[1:]",
            f"y[{t} + 1:{t} + 3] = 0.5 * y[{t} + 1:{t} + 3] + {expression}",
            f"y[{t}:{t} + 2, :2] += ({expression})[:2]",
            f"y[{t}, 1] = np.sum({expression})",
            f"y[:, {t} % 3] += 0.1 * {expression}[0]",
            f"y[1:-1] += 0.1 * (y[2:] - y[:-2]) * {expression}",
            f"y = 0.9 * np.roll(y, 1, axis=0) + {expression}",
            f"y[{t} + 1:{t} + 3, 1:] = y[{t}:{t} + 2, :2] * ({expression})[1:]",
            f"y[PLACES[{t}]] = {expression}",
        )))  # fmt: skip

    def _write_element(self, depth: int, t: str) -> None:
        expression = f"0.4 * np.sin(np.sum({self._vector(t, 2)}))"
        self._add(depth, self._some((
            f"z[{t} + 3] = {expression}",
            f"z[{t} + 1] += {expression}",
            f"z[{t}:{t} + 3] = 0.3 * z[{t}:{t} + 3] + {expression}",
        )))  # fmt: skip

    def _part(self, depth: int, t: str) -> None:
        expression = f"np.sin(np.sum({self._vector(t, 1)}))"
        self._add(depth, self._some((
            "u = [0.8 * p + 0.1 * np.sin(r) for p, r in zip(u, [u[1], u[2], u[0]])]",
            "u = [u[2], u[0], 0.3 * u[1]]",
            f"u[{t} % 3] = {expression}",
            f"u[1] = 0.5 * u[0] + {expression}",
            f"u = [p + 0.1 * {expression} for p in u]",
        )))  # fmt: skip

    def _pass_on(self, depth: int, t: str) -> None:
        self._add(depth, f"q = q[1:] + [np.tanh({self._vector(t, 1)})]")

    def _counted(self, depth: int, t: str) -> None:
        self._add(depth, self._some((
            f"count = count + np.sum({self._vector(t, 1)} > 0.1)",
            f"M = 0.9 * M + 0.05 * np.outer({self._vector(t, 1)}, v)",
            f"M[{t} % 3] = np.sin({self._vector(t, 1)})",
            "M = np.tanh(M @ M.T)",
        )))  # fmt: skip

    def _append(self, depth: int, t: str) -> None:
        self._add(depth, f"h.append(np.tanh({self._vector(t, 2)}))")

    def _branch(self, depth: int, t: str) -> None:
        condition = self._some(
            (f"{t} == 0", f"{t} < 2", f"{t} == n - 1", f"{t} % 2 == 0", f"{t} != 6", f"{t} > n // 2")
        )
        self._add(depth, f"if {condition}:")
        self._statement(depth + 1, t, inner=False)
        if self._one_of(2):
            self._add(depth, "else:")
            self._statement(depth + 1, t, inner=False)

    def _guard(self, depth: int, t: str) -> None:
        self.has_guards = True
        self._add(depth, f"if np.sum({self._vector(t, 1)}) > {self._some((-1e3, 0.1, 1e3))}:")
        self._statement(depth + 1, t, inner=False)

    def _gradient(self, depth: int, t: str) -> None:
        name = self._some(self._vectors)
        self._add(
            depth, f"{name} = {name} - 0.1 * ft.grad(lambda p: np.sum(np.cos(p) * ({self._vector(t, 1)})))({name})"
        )

    def _inner_loop(self, depth: int, t: str) -> None:
        counts = ("range(3)", "range(3)", "range(10)", f"range({t}, {t} + 2)", f"range({t} + 1)", f"range({t} % 3)")
        self._add(depth, f"for j in {self._some(counts)}:")
        for _ in range(1 + self._one_of(2)):
            self._statement(depth + 1, self._some(("j", "j", t)), inner=False)

    # Expressions

    def _vector(self, t: str, depth: int) -> str:
        if depth == 0 or self._one_of(6) == 0:
            return self._some(self._atoms(t))
        if self._one_of(2):
            form = self._some(_FUNCTIONS)
            inner = self._vector(t, depth - 1)
            return form.format(*[inner] * form.count("{}"))
        form = self._some(_PAIRS)
        operands = [self._vector(t, depth - 1) for _ in range(form.count("{}"))]
        return form.format(*operands)

    def _atoms(self, t: str) -> list[str]:
        last = "n - 1 - " + t
        found = [*self._vectors * 3, "v", "added", "scale * v"]
        found += [f"x[{t}]", f"x[{t} + 1]", f"x[{last}]", f"x[({t} * 2) % n]", f"np.sum(x[{t}:{t} + 3], axis=0)"]
        found += [f"x[{t}:{t} + 3, 1]", f"x[{t}, 2] * v", f"A[{t} % 3]", f"W[{t}]", f"K[{t}] * v", f"(0.1 * {t}) * v"]
        found += [f"v / ({t} + 2.0)", f"0.9 ** {t} * v", f"v[{t} % 3] * a"]
        found += [f"x[PLACES[{t}]]", "helper(a, v)", f"helper(x[{t}], a)"]
        found += [f"x[PLACES[{t}]]", "helper(a, v)", f"helper(x[{t}], a)"]
        if self._has["rows"]:
            found += [f"y[{t} + 2]", f"y[{t}]", f"np.sum(y[{t}:{t} + 2], axis=0)", f"y[n - {t}]"]
        if self._has["line"]:
            found += [f"z[{t}:{t} + 3]", f"z[{t} + 2] * v", f"z[{t}] * a"]
        if self._has["history"]:
            found += ["h[-1]", "h[-2]", "h[-3]", "h[0]", "h[len(h) // 2]", f"h[{t} % 5]"]
        if self._has["lagged"]:
            found += ["old", "older", "(old - older)"]
        if self._has.get("filled"):
            found += [f"filled[min({t}, len(filled) - 1)]", f"filled[max(0, len(filled) - 1 - {t})]"] * 2
        if self._has["parts"]:
            found += ["u[0] * v", "u[2] * a", "np.stack(u)"]
        if self._has["queue"]:
            found += ["q[0]", "q[1]", "q[-1]"]
        if self._has["count"]:
            found += ["(count * 0.1) * v", "M @ v", "M[0]", "ft.numpy.take(x, count % 5, axis=0)"]
        if self._has["key"]:
            found += ["random.normal(sub, (3,), np.float64)"]
        return found
