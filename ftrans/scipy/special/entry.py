"""How the functions of `scipy.special` get their traced forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from ...base.source import at_line, user_line
from ...numpy.dispatch import CONSTANT, TABLE, public
from ...numpy.promotion import asarray, broadcast_shapes, cast, is_number, is_operand, is_weak, operand
from ...numpy.ufunc_entry import resolved_dtypes


def ufunc(name: str, rule: Callable[..., Any], constant: bool = False) -> Callable[..., Any]:
    """Enter the traced form of the ufunc `scipy.special.<name>`; return the public function.

    Args:
        name: the name of the ufunc.
        rule: a primitive, or a function of tracers of one shape in the dtypes that SciPy computes in; where there are
            several results it returns a sequence of them.
        constant: whether no result has a derivative.
    """
    given = getattr(scipy.special, name)
    # With SCIPY_ARRAY_API=1 there is a function around each ufunc.
    function: np.ufunc = getattr(given, "__wrapped__", given)

    def call(*xs: Any) -> Any:
        if len(xs) != function.nin:
            raise TypeError(f"{name} takes {function.nin} operands, {len(xs)} were given{at_line(user_line())}")
        if not all(map(is_operand, xs)):
            return NotImplemented
        operands = [x if is_number(x) else asarray(x) for x in xs]
        dtypes = resolved_dtypes(function, operands)
        shape = broadcast_shapes(name, *operands)
        found = rule(*(operand(x, d, shape) for x, d in zip(operands, dtypes, strict=False)))
        results = [
            cast(y, d) for y, d in zip(found if function.nout > 1 else [found], dtypes[function.nin :], strict=True)
        ]
        for y in results:
            y.weak = all(map(is_weak, operands)) and y.dtype.kind != "b"
        return tuple(results) if function.nout > 1 else results[0]

    call.__name__ = name
    call.__doc__ = f"`scipy.special.{name}` on arrays and on traced values."
    TABLE[function] = call
    if constant:
        CONSTANT.add(function)
    return public(function, call)
