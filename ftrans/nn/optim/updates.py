"""Programs that update all parameters of an optimizer, made from the rule for one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from ... import numpy as fnp
from ...api.call import recorded
from ...core.program import Program
from ...core.trace import Tracer
from ...core.types import ArrayType, is_complex
from .groups import Layout


class Rule:
    """How one parameter is updated, and what state that takes.

    The methods are given the hyperparameters of the group as attributes of `h`: numbers, which take the dtype of what
    they meet; flags; and, in `h.used`, the names of numbers that are not zero throughout.
    """

    # Numbers that the state has for parameters that are always updated together.
    counters: tuple[str, ...] = ("step",)

    @staticmethod
    def slots(used: tuple[str, ...], options: dict[str, Any]) -> tuple[str, ...]:
        """Names of the arrays that the state has for each parameter."""
        raise NotImplementedError

    @staticmethod
    def first_slot(slot: str, numbers: dict[str, Any]) -> float:
        """What fills such an array at first."""
        return 0.0

    @staticmethod
    def first_counter(name: str) -> float:
        """The first value of a number."""
        return 0.0

    @staticmethod
    def advance(s: dict[str, Any], h: SimpleNamespace) -> dict[str, Any]:
        """Advance the numbers in `s`, vectors with an element for each clock; the step has been counted.

        Returns:
            Further such vectors, whose elements are attributes of `h` in `update`.
        """
        return {}

    @staticmethod
    def update(p: Any, g: Any, s: dict[str, Any], h: SimpleNamespace) -> Any:
        """The new value of a parameter, from its gradient; puts new arrays into `s`."""
        raise NotImplementedError


@lru_cache(maxsize=128)
def update_program(rule: type[Rule], layouts: tuple[Layout, ...], types: tuple[ArrayType, ...]) -> Program:
    """The updates of all parameters.

    Args:
        rule: how one is updated.
        layouts: the groups.
        types: the types of the operands.  For each group these are its hyperparameters, the counters of its state, and
            for each parameter with a gradient this gradient, the parameter, and the arrays of its state.

    Returns:
        A program whose results are the new counters, and for each parameter its new value and its new arrays.
    """

    def record(xs: list[Any]) -> list[Any]:
        given = iter(xs)
        return [y for layout in layouts for y in _of_group(rule, layout, given)]

    return recorded("an optimizer", record, types)


def _of_group(rule: type[Rule], layout: Layout, given: Iterator[Any]) -> list[Any]:
    common = {**_numbers_by_name(layout, next(given)), **dict(layout.options), "used": layout.used}
    before = {name: next(given) for name in rule.counters}
    s = {**before, "step": before["step"] + 1}
    vectors = rule.advance(s, SimpleNamespace(**common))
    runs = {clock for clock, has in zip(layout.clocks, layout.has, strict=True) if has}
    outs = [_of_some(runs, s[name], before[name]) for name in rule.counters]
    slots = rule.slots(layout.used, dict(layout.options))
    for number in itertools.compress(itertools.count(), layout.has):
        g, p, arrays = next(given), next(given), {slot: next(given) for slot in slots}
        # A whole vector is converted once; and XLA compiles equal updates once, if they read the same element.
        own = {name: _like(p, vector)[layout.clocks[number]] for name, vector in vectors.items()}
        outs += _of_parameter(rule, p, g, arrays, SimpleNamespace(**common, **own))
    return outs


def _of_some(runs: set[int], new: Any, old: Any) -> Any:
    """The elements of a new vector at some places, and of an old one at the others."""
    count = new.shape[0]
    return new if len(runs) == count else fnp.stack([(new if i in runs else old)[i] for i in range(count)])


def _of_parameter(rule: type[Rule], p: Any, g: Any, s: dict[str, Any], h: SimpleNamespace) -> list[Any]:
    dtypes = [p.dtype, *(x.dtype for x in s.values())]
    is_pair = is_complex(p.dtype)
    if is_pair:
        # A complex number is updated as two real ones.
        p, g, s = _parts(p), _parts(g), {name: _parts(x) for name, x in s.items()}
    new = [rule.update(p, -g if h.maximize else g, s, h), *s.values()]
    if is_pair:
        new = [x[0] + 1j * x[1] for x in new]
    return [x.astype(dtype) for x, dtype in zip(new, dtypes, strict=True)]


def _like(p: Any, numbers: Any) -> Any:
    """Numbers in the dtype of a parameter."""
    return numbers if numbers.dtype.kind != "f" else numbers.astype(np.zeros(0, p.dtype).real.dtype)


def _parts(x: Any) -> Any:
    return fnp.stack([x.real, x.imag])


def _numbers_by_name(layout: Layout, numbers: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, start, count in layout.places:
        values = tuple(_weak(numbers[i]) for i in range(start, start + (count or 1)))
        found[name] = values[0] if count is None else values
    return found


def _weak(x: Tracer) -> Tracer:
    """A number that takes the dtype of what it meets."""
    return Tracer(x.builder, x.atom, x.dtype.kind == "f")
