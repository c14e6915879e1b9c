"""Roots of functions of one number, with their derivatives by all that the functions use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
from scipy.optimize import RootResults

from ...core.trace import Tracer
from ...core.types import ArrayType
from ...numpy.promotion import asarray
from ..derivatives import scalar
from .calls import BOOL, INT, NUMBER, Call, Given, alone, entering, refuse_complex
from .solutions import root_of, root_of_each


def _bracketed(call: Call) -> Any:
    """A root between two ends, at which the function has different signs."""
    f = call.given("f", NUMBER, as_read=scalar)
    types = [NUMBER, INT, INT, BOOL]
    x, *counts = call.searched({"f": f}, _results, types, {"full_output": True})
    root = root_of(f, x, call.name, call["a"], call["b"])
    return (root, _reported(root, counts, call.name)) if call["full_output"] else root


def _results(found: Any) -> Sequence[Any]:
    """The root, and how it was found."""
    result = found if isinstance(found, RootResults) else found[1]
    return result.root, result.iterations, result.function_calls, result.converged


def _reported(root: Any, counts: Sequence[Tracer], method: str) -> RootResults:
    """What SciPy says of a root, of which nobody knows yet how it is found."""
    iterations, calls, converged = counts
    result = RootResults(root, iterations, calls, 0, method)
    result.converged = converged
    result.flag = "traced: see converged"
    return result


brentq = entering(scipy.optimize.brentq)(_bracketed)
brenth = entering(scipy.optimize.brenth)(_bracketed)
ridder = entering(scipy.optimize.ridder)(_bracketed)
bisect = entering(scipy.optimize.bisect)(_bracketed)
toms748 = entering(scipy.optimize.toms748)(_bracketed)


def _newton(call: Call) -> Any:
    """A root by steps from a start, or a root for each element of an array."""
    _unpack_args(call)
    shape = np.shape(call["x0"])
    unknown = NUMBER.with_shape(shape)
    functions = _with_derivatives(call, "func", unknown)
    if unknown.size > 1:
        lanes = BOOL.with_shape(shape)
        if call["full_output"]:
            x, *outcome = call.searched(functions, tuple, [unknown, lanes, lanes])
            return _Roots(root_of_each(functions["func"], x, call.name, call["x0"]), *outcome)
        (x,) = call.searched(functions, alone, [unknown])
        return root_of_each(functions["func"], x, call.name, call["x0"])
    x, *counts = call.searched(functions, _results, [unknown, INT, INT, BOOL], {"full_output": True})
    root = root_of(functions["func"], x, call.name, call["x0"])
    method = "secant" if call["fprime"] is None else "halley" if call["fprime2"] is not None else "newton"
    return (root, _reported(root, counts, method)) if call["full_output"] else root


def _unpack_args(call: Call) -> None:
    """Let `args` be a tuple where SciPy hands the items of any sequence to the function."""
    call.arguments["args"] = tuple(call["args"])


class _Roots(NamedTuple):
    """The roots for the elements of an array, and what SciPy says of each."""

    root: Any
    converged: Any
    zero_der: Any


def _with_derivatives(call: Call, name: str, unknown: ArrayType) -> dict[str, Given]:
    """The function of which a root is sought, and the derivatives that are given as functions."""
    refuse_complex(call, "x0")
    names = (name, *[other for other in ("fprime", "fprime2") if callable(call[other])])
    return {key: call.given(key, unknown) for key in names}


def _root_scalar(call: Call) -> Any:
    """A root by the method that is named, or that what is given allows."""
    functions = _with_derivatives(call, "f", NUMBER)
    x, *counts = call.searched(functions, _results, [NUMBER, INT, INT, BOOL])
    f = functions["f"]

    def residual(x: Tracer) -> Any:
        out = f(x)
        # The function may return its derivatives, too.
        return out[0] if isinstance(out, tuple) else out

    starts = [end for end in (*(() if call["bracket"] is None else call["bracket"]), call["x0"]) if end is not None]
    return _reported(
        root_of(residual, x, call.name, *starts), counts, call["method"] or "see scipy.optimize.root_scalar"
    )


def _fixed_point(call: Call) -> Any:
    """A point that a function leaves where it is, by iteration."""
    _unpack_args(call)
    refuse_complex(call, "x0")
    f = call.given("func", NUMBER.with_shape(np.shape(call["x0"])))
    (x,) = call.searched({"func": f}, alone, f.types)
    return root_of(lambda x: x - asarray(f(x)), x, call.name, call["x0"])


newton = entering(scipy.optimize.newton)(_newton)
root_scalar = entering(scipy.optimize.root_scalar)(_root_scalar)
fixed_point = entering(scipy.optimize.fixed_point)(_fixed_point)
