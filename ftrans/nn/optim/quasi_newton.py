"""The iterations of L-BFGS: directions from the last changes of parameters and gradients, and a search along each.

The loops are handed in: those of compiled programs, or those of Python where each evaluation is code of the user.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ... import numpy as fnp
from ...api.loops import scan
from . import line_search

Carry = dict[str, Any]
# A loop: takes a condition, a step, and the first carry.
Loop = Callable[[Callable[[Carry], Any], Callable[[Carry], Carry], Carry], Carry]

# Pairs of changes whose product is less than this say nothing about curvature.
_LEAST_CURVATURE = 1e-10


class Limits(NamedTuple):
    """When the iterations of a step end, and whether each searches along its line."""

    max_iter: int
    max_eval: int
    searches: bool


def empty_memory(size: int, history: int, dtype: Any) -> dict[str, Any]:
    """What is remembered from step to step, before the first."""
    return {
        "old_stps": np.zeros((history, size), dtype),
        "old_dirs": np.zeros((history, size), dtype),
        "ro": np.zeros(history, dtype),
        "H_diag": np.ones((), dtype),
        "d": np.zeros(size, dtype),
        "t": np.zeros((), np.float64),
        "prev_flat_grad": np.zeros(size, dtype),
        "n_iter": np.zeros((), np.int64),
        "func_evals": np.zeros((), np.int64),
    }


def minimized(
    evaluate: Callable[[Any], tuple[Any, Any]],
    x: Any,
    loss: Any,
    g: Any,
    memory: Carry,
    numbers: dict[str, Any],
    limits: Limits,
    loop: Loop,
) -> tuple[Any, Carry]:
    """The parameters after the iterations of a step, and what is remembered.

    Args:
        evaluate: the function: a vector to a value and a gradient.
        x: the parameters, a vector.
        loss: the value there, a f64.
        g: the gradient there.
        memory: what is remembered.
        numbers: `lr`, `tolerance_grad` and `tolerance_change`.
        limits: when the iterations end.
        loop: `ft.while_loop`, or a loop of Python.
    """

    def iterate(c: Carry) -> Carry:
        kept = _with_direction({name: c[name] for name in memory}, c["g"], numbers["lr"])
        slope = (c["g"] @ kept["d"]).astype(np.float64)
        tolerance = numbers["tolerance_change"]
        line = line_search.Line(c["x"], kept["d"], c["loss"], c["g"], slope, tolerance)
        stops = slope > -tolerance
        iterations = c["iterations"] + 1
        if limits.searches:
            found, evaluations = _searched(evaluate, line, kept["t"], stops, loop)
        else:
            found, evaluations = _stepped(evaluate, line, kept["t"], stops | (iterations == limits.max_iter), loop)
        t, value, gradient = found
        moved = line.at(t)
        ends = (iterations >= limits.max_iter) | (c["evaluations"] + evaluations >= limits.max_eval)
        ends = ends | (abs(gradient).max() <= numbers["tolerance_grad"])
        ends = ends | (abs(kept["d"]).max().astype(np.float64) * t <= tolerance)
        ends = ends | (abs(value - c["loss"]) < tolerance)
        return {
            **kept,
            "t": fnp.where(stops, kept["t"], t),
            "x": fnp.where(stops, c["x"], moved),
            "loss": fnp.where(stops, c["loss"], value),
            "g": fnp.where(stops, c["g"], gradient),
            "iterations": iterations,
            "evaluations": c["evaluations"] + evaluations,
            "is_done": stops | ends,
        }

    is_flat = abs(g).max() <= numbers["tolerance_grad"]
    zero = np.asarray(0, np.int64)
    first = {**memory, "x": x, "loss": loss, "g": g, "iterations": zero, "evaluations": zero + 1, "is_done": is_flat}
    last = loop(lambda c: ~c["is_done"], iterate, first)
    kept = {name: last[name] for name in memory}
    return last["x"], {**kept, "func_evals": kept["func_evals"] + last["evaluations"]}


def _searched(
    evaluate: Callable[[Any], tuple[Any, Any]], line: line_search.Line, t: Any, stops: Any, loop: Loop
) -> tuple[Any, Any]:
    """Step size, value and gradient that a search along a line finds, and the number of evaluations."""
    last = loop(
        lambda s: ~s["is_done"],
        lambda s: line_search.advanced(line, s, *evaluate(line.at(s["t"]))),
        line_search.begun(line, t, stops),
    )
    return line_search.found(last), last["steps"]


def _stepped(
    evaluate: Callable[[Any], tuple[Any, Any]], line: line_search.Line, t: Any, is_last: Any, loop: Loop
) -> tuple[Any, Any]:
    """The same without a search: the first step size is taken, and nothing evaluated if there is no next iteration."""

    def once(c: Carry) -> Carry:
        loss, g = evaluate(line.at(t))
        return {"loss": loss, "g": g, "steps": c["steps"] + 1, "is_done": c["is_done"] | True}

    first = {"loss": line.loss, "g": line.g, "steps": np.asarray(0, np.int64), "is_done": is_last}
    last = loop(lambda c: ~c["is_done"], once, first)
    return (t, last["loss"], last["g"]), last["steps"]


def _with_direction(memory: Carry, g: Any, lr: Any) -> Carry:
    """What is remembered when an iteration begins, with its direction and its first step size."""
    m = dict(memory)
    is_first = m["n_iter"] == 0
    y, s = g - m["prev_flat_grad"], m["d"] * m["t"].astype(g.dtype)
    product = y @ s
    counts = ~is_first & (product > _LEAST_CURVATURE)
    for name, new in (("old_stps", s), ("old_dirs", y), ("ro", 1 / fnp.where(counts, product, 1))):
        m[name] = fnp.where(counts, fnp.concatenate([m[name][1:], new[None]]), m[name])
    square = y @ y
    m["H_diag"] = fnp.where(counts, product / fnp.where(counts, square, 1), m["H_diag"])
    m["d"] = fnp.where(is_first, -g, _direction(m, g))
    sizes = abs(g).sum().astype(np.float64)
    m["t"] = fnp.where(is_first, fnp.minimum(1.0, 1 / fnp.where(sizes > 0, sizes, 1.0)), 1.0) * lr
    m["prev_flat_grad"] = g
    m["n_iter"] = m["n_iter"] + 1
    return m


def _direction(m: Carry, g: Any) -> Any:
    """The gradient times the inverse of the Hessian that the remembered pairs approximate, by two loops over them.

    Rows that hold no pair yet have ro = 0, and change nothing.
    """

    def back(q: Any, row: Any) -> Any:
        s, y, ro = row
        weight = ro * (s @ q)
        return q - weight * y, weight

    def forth(r: Any, row: Any) -> Any:
        s, y, ro, weight = row
        return r + (weight - ro * (y @ r)) * s, None

    rows = (m["old_stps"], m["old_dirs"], m["ro"])
    q, weights = scan(back, -g, rows, reverse=True)
    return scan(forth, q * m["H_diag"], (*rows, weights))[0]
