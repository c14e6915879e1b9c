"""Search along a line for a point where strong Wolfe conditions hold, as a loop with one evaluation in each step.

First the step grows until it brackets such a point, then the bracket shrinks; both by the minimum of the cubic through
values and slopes at two points (Nocedal and Wright, Numerical Optimization, 2006, algorithms 3.5 and 3.6; the details
are those that torch has from minFunc).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ... import numpy as fnp

_DECREASE, _CURVATURE = 1e-4, 0.9
_MOST_STEPS = 25

Search = dict[str, Any]


class Line(NamedTuple):
    """A line, and the function where it begins.

    Attributes:
        x: where it begins, a vector.
        d: its direction.
        loss: the value there.
        g: the gradient there.
        slope: the derivative along the line.
        tolerance: a bracket by less than this moves no element of x.
    """

    x: Any
    d: Any
    loss: Any
    g: Any
    slope: Any
    tolerance: Any

    def at(self, t: Any) -> Any:
        """The point at a step size."""
        return self.x + t.astype(self.x.dtype) * self.d


def begun(line: Line, t: Any, is_done: Any) -> Search:
    """A search whose first step size is `t`; or one that is over, with the point where the line begins."""
    zero = 0 * t
    return {
        "t": t,
        "is_done": is_done,
        "is_bracketed": np.asarray(False),
        "is_slow": np.asarray(False),
        "steps": np.asarray(0),
        "low": np.asarray(0),
        "t_prev": zero,
        "f_prev": line.loss,
        "slope_prev": line.slope,
        "g_prev": line.g,
        "ts": fnp.stack([t, t]),
        "fs": fnp.stack([line.loss, line.loss]),
        "slopes": fnp.stack([line.slope, line.slope]),
        "gs": fnp.stack([line.g, line.g]),
    }


def found(search: Search) -> tuple[Any, Any, Any]:
    """The step size that a search has ended with, and value and gradient there."""
    is_first = search["low"] == 0
    t, loss, g = (fnp.where(is_first, search[name][0], search[name][1]) for name in ("ts", "fs", "gs"))
    return t, loss, g


def advanced(line: Line, search: Search, loss: Any, g: Any) -> Search:
    """A search after the evaluation at its step size: it has ended, or has another step size."""
    s = dict(search)
    t, slope = s["t"], _dot(g, line.d)
    is_high = loss > line.loss + _DECREASE * t * line.slope
    is_flat = abs(slope) <= -_CURVATURE * line.slope
    growing = ~s["is_bracketed"]
    is_last = s["steps"] >= _MOST_STEPS
    # The step still grows.
    is_over = is_high | ((s["steps"] > 1) & (loss >= s["f_prev"]))
    accepted = growing & ~is_last & ~is_over & is_flat
    opened = growing & (is_last | is_over | (~is_flat & (slope >= 0)))
    before = [fnp.where(is_last, first, s[name]) for first, name in zip(
        (0 * t, line.loss, line.slope, line.g), ("t_prev", "f_prev", "slope_prev", "g_prev"), strict=True)]  # fmt: skip
    here = (t, loss, slope, g)
    names = ("ts", "fs", "slopes", "gs")
    shrunk = _shrunk(s, here, is_high, is_flat)
    for name, first, second in zip(names, before, here, strict=True):
        opening = fnp.stack([fnp.where(accepted, second, first), second])
        s[name] = fnp.where(accepted | opened, opening, fnp.where(growing, s[name], shrunk[name]))
    ordered = fnp.where(s["fs"][0] <= s["fs"][1], 0, 1)
    s["low"] = fnp.where(accepted, 0, fnp.where(opened, ordered, fnp.where(growing, s["low"], shrunk["low"])))
    # What comes next.
    is_narrow = abs(s["ts"][1] - s["ts"][0]) * abs(line.d).max().astype(t.dtype) < line.tolerance
    s["is_bracketed"] = s["is_bracketed"] | opened
    ends = s["is_bracketed"] & (is_last | is_narrow | (~growing & shrunk["is_done"]))
    s["is_done"] = accepted | ends
    farther = _cubic(s["t_prev"], s["f_prev"], s["slope_prev"], t, loss, slope, t + 0.01 * (t - s["t_prev"]), 10 * t)
    inside, is_slow = _inside(s)
    s["is_slow"] = fnp.where(s["is_bracketed"], is_slow, s["is_slow"])
    s["t"] = fnp.where(s["is_bracketed"], inside, farther)
    for name, value in zip(("t_prev", "f_prev", "slope_prev", "g_prev"), here, strict=True):
        s[name] = fnp.where(growing, value, s[name])
    s["steps"] = s["steps"] + 1
    return s


def _shrunk(s: Search, here: tuple[Any, ...], is_high: Any, is_flat: Any) -> Search:
    """The bracket after an evaluation inside of it."""
    t, loss, slope, g = here
    low, ends = s["low"], np.arange(2)
    of_low = fnp.where(low == 0, s["fs"][0], s["fs"][1])
    is_worse = is_high | (loss >= of_low)
    at_low, at_high = ends == low, ends != low
    width = fnp.where(low == 0, s["ts"][1] - s["ts"][0], s["ts"][0] - s["ts"][1])
    turns = ~is_worse & ~is_flat & (slope * width >= 0)
    new: Search = {"is_done": ~is_worse & is_flat}
    for name, value in (("ts", t), ("fs", loss), ("slopes", slope), ("gs", g)):
        old = s[name]
        column = (-1,) + (1,) * (old.ndim - 1)
        is_low, is_other = at_low.reshape(column), at_high.reshape(column)
        moved = fnp.where(is_other & turns, old[::-1], old)
        new[name] = fnp.where((is_worse & is_other) | (~is_worse & is_low), value, moved)
    new["low"] = fnp.where(is_worse, fnp.where(new["fs"][0] <= new["fs"][1], 0, 1), low)
    return new


def _inside(s: Search) -> tuple[Any, Any]:
    """A step size inside of the bracket, and whether it is close to an end, as those before may have been."""
    (first, second), (f_first, f_second), (s_first, s_second) = s["ts"], s["fs"], s["slopes"]
    least, most = fnp.minimum(first, second), fnp.maximum(first, second)
    t = _cubic(first, f_first, s_first, second, f_second, s_second, least, most)
    margin = 0.1 * (most - least)
    is_close = fnp.minimum(most - t, t - least) < margin
    moves = is_close & (s["is_slow"] | (t >= most) | (t <= least))
    moved = fnp.where(abs(t - most) < abs(t - least), most - margin, least + margin)
    return fnp.where(moves, moved, t), is_close & ~moves


def _cubic(x: Any, f: Any, slope: Any, y: Any, f_y: Any, slope_y: Any, least: Any, most: Any) -> Any:
    """The minimum of the cubic with these values and slopes at two points, between bounds; else their middle."""
    distance = fnp.where(x == y, 1.0, x - y)
    d1 = slope + slope_y - 3 * (f - f_y) / distance
    square = d1 * d1 - slope * slope_y
    root = fnp.sqrt(fnp.where(square > 0, square, 0.0))
    is_ordered = x <= y
    a, b = fnp.where(is_ordered, x, y), fnp.where(is_ordered, y, x)
    s_a, s_b = fnp.where(is_ordered, slope, slope_y), fnp.where(is_ordered, slope_y, slope)
    below = s_b - s_a + 2 * root
    minimum = b - (b - a) * ((s_b + root - d1) / fnp.where(below == 0, 1.0, below))
    return fnp.where(square >= 0, fnp.minimum(fnp.maximum(minimum, least), most), (least + most) / 2)


def _dot(x: Any, y: Any) -> Any:
    return (x @ y).astype(np.float64)
