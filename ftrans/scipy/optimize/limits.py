"""Bounds and constraints of a call in a trace: as SciPy takes them, and as equations take them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.optimize
from scipy.optimize import Bounds, LinearConstraint
from scipy.sparse import issparse

from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...core.types import ArrayType
from ...numpy.promotion import asarray
from .calls import Call, Given, vector_of
from .solutions import Limits

Function = Callable[..., Any]

_NONLINEAR = ("jac", "hess", "keep_feasible", "finite_diff_rel_step", "finite_diff_jac_sparsity")


def bounds_of(given: Any) -> tuple[Any, Any] | None:
    """The least and the largest value of each unknown, from bounds in any form that SciPy takes; None for none."""
    if given is None:
        return None
    if isinstance(given, Bounds):
        return given.lb, given.ub
    pairs = [(low, high) for low, high in given]
    return [-np.inf if low is None else low for low, _ in pairs], [
        np.inf if high is None else high for _, high in pairs
    ]


def together(x: Any) -> Any:
    """Numbers, some of which may be traced, as one array."""
    return asarray(x) if isinstance(x, list) else x


class Constraints:
    """The constraints of a call, taken apart.

    Attributes:
        functions: the functions in them, by names of their own.
        arguments: what is left of them, as an argument for the host.

    Args:
        call: the call.
        unknown: the type of its unknowns.

    Raises:
        TypeError: one of them is none of those that SciPy knows.
    """

    def __init__(self, call: Call, unknown: ArrayType) -> None:
        given = call["constraints"]
        self._given = list(given) if isinstance(given, list | tuple) else [given]
        self.functions: dict[str, Given] = {}
        self.arguments = [self._taken_apart(i, x, call, unknown) for i, x in enumerate(self._given)]

    def _taken_apart(self, index: int, constraint: Any, call: Call, unknown: ArrayType) -> Any:
        name = f"constraint {index}"
        if isinstance(constraint, LinearConstraint):
            matrix = constraint.A.toarray() if issparse(constraint.A) else constraint.A
            return ("linear", matrix, constraint.lb, constraint.ub, constraint.keep_feasible)
        if isinstance(constraint, Mapping):
            args = constraint.get("args", ())
            rest = {key: x for key, x in constraint.items() if key not in ("fun", "jac", "args")}
            for key in ("fun", "jac"):
                f = constraint.get(key)
                if callable(f):
                    self._take(name, key, lambda x, f=f: f(x, *args), call, unknown)
                elif f is not None:
                    rest[key] = f
            return ("dictionary", rest)
        if isinstance(constraint, scipy.optimize.NonlinearConstraint):
            rest = {key: getattr(constraint, key) for key in _NONLINEAR}
            f = self._take(name, "fun", constraint.fun, call, unknown)
            if callable(constraint.jac):
                self._take(name, "jac", constraint.jac, call, unknown)
            if callable(constraint.hess) and f.captured is not None:
                size = sum(t.size for t in f.captured.program.out_types)
                self._take(name, "hess", constraint.hess, call, unknown, vector_of(size))
            rest |= {key: None for key in ("jac", "hess") if callable(rest[key])}
            return ("nonlinear", type(constraint), constraint.lb, constraint.ub, rest)
        raise TypeError(
            f"constraint {index} of {call.name} must be a dictionary, a LinearConstraint or a NonlinearConstraint, not "
            f"of type {type(constraint).__name__}{at_line(user_line())}"
        )

    def _take(self, name: str, key: str, f: Function, call: Call, *types: ArrayType) -> Given:
        given = self.functions[f"{name} {key}"] = Given(f, types, call.name)
        return given

    def limits(self, x: Tracer) -> Limits | None:
        """All of them as limits of one vector; the `x` is any point."""
        if not self._given:
            return None
        parts = [self._limits_of(i, constraint) for i, constraint in enumerate(self._given)]
        sizes = [p.values(x).size for p in parts]
        lower, upper = (
            np.concatenate([np.broadcast_to(asarray(p[k]), (n,)) for p, n in zip(parts, sizes, strict=True)])
            for k in (1, 2)
        )
        return Limits(lambda x: np.concatenate([p.values(x) for p in parts]), lower, upper)

    def _limits_of(self, index: int, constraint: Any) -> Limits:
        if isinstance(constraint, LinearConstraint):
            matrix = self.arguments[index][1]
            return Limits(lambda x: asarray(matrix) @ x, constraint.lb, constraint.ub)
        f = self.functions[f"constraint {index} fun"]

        def values(x: Tracer) -> Any:
            return np.reshape(asarray(f(x)), (-1,))

        if isinstance(constraint, Mapping):
            return Limits(values, 0.0, 0.0 if constraint["type"].lower() == "eq" else np.inf)
        return Limits(values, constraint.lb, constraint.ub)


def put_together(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `minimize`, from those that the host has, in which bounds and constraints are taken apart."""
    functions = {name: arguments.pop(name) for name in list(arguments) if name.startswith("constraint ")}
    if arguments["bounds"] is not None:
        arguments["bounds"] = Bounds(*arguments["bounds"])
    arguments["constraints"] = [_constraint(i, x, functions) for i, x in enumerate(arguments["constraints"])]
    return arguments


def _constraint(index: int, parts: Sequence[Any], functions: Mapping[str, Function]) -> Any:
    mine = {key: functions[f"constraint {index} {key}"] for key in ("fun", "jac", "hess")
            if f"constraint {index} {key}" in functions}  # fmt: skip
    kind, *rest = parts
    if kind == "linear":
        return LinearConstraint(*rest)
    if kind == "dictionary":
        return {**rest[0], **mine}
    cls, lower, upper, options = rest
    return cls(mine.pop("fun"), lower, upper, **{**options, **mine})
