"""How NumPy's own functions reach tracers: the NEP 13 and NEP 18 protocols."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..base.foreign import is_of_python_function
from ..base.holders import takes_over
from ..base.source import at_line, user_line
from ..core.primitive import MissingRule
from ..core.trace import Tracer, current_builder
from . import creation
from .after_trace import after_trace
from .dispatch import ENTERED_LATER, TABLE, missing
from .polynomials import enter_on_objects
from .refused import REFUSED
from .ufunc_methods import METHODS
from .ufunc_options import call_with_options
from .vectorizing import apply_to_objects


def array_ufunc(self: Tracer | None, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """`__array_ufunc__`: a NumPy ufunc was called with a tracer among its operands."""
    if current_builder() is None:
        return getattr(ufunc, method)(*after_trace(inputs), **after_trace(kwargs))
    implementation = TABLE.get(ufunc)
    if implementation is None:
        implementation = _of_others(ufunc)
    if method == "__call__":
        if not kwargs:
            found = implementation(*inputs)
            # Of numbers of Python, operators make numbers of Python, but ufuncs numbers of NumPy.
            is_weak = type(found) is Tracer and found.weak
            return Tracer(found.builder, found.builder.atom(found)) if is_weak else found
        return call_with_options(ufunc, implementation, inputs, kwargs)
    if method not in METHODS:
        raise missing(f"{ufunc.__name__}.{method}")
    return METHODS[method](ufunc, implementation, *inputs, **kwargs)


def _of_others(ufunc: np.ufunc) -> Callable[..., Any]:
    """The traced form of a ufunc of a library whose functions are entered when one is met, or of `numpy.frompyfunc`."""
    for library in ENTERED_LATER.keys() & sys.modules.keys():
        ENTERED_LATER[library]()
    implementation = TABLE.get(ufunc)
    if implementation is None:
        name = ufunc.__name__
        if is_of_python_function(ufunc):
            return functools.partial(apply_to_objects, ufunc)
        raise missing(next((n for n in (f"numpy.{name}", f"scipy.special.{name}") if n in REFUSED), name))
    return implementation


def array_function(self: Tracer, function: Any, types: Iterable[type], args: Any, kwargs: Any) -> Any:
    """`__array_function__`: a NumPy function was called with a tracer among its arguments."""
    if current_builder() is None:
        return function(*after_trace(args), **after_trace(kwargs))
    if any(takes_over(cls, "__array_function__") for cls in types if cls is not Tracer):
        return NotImplemented
    implementation = TABLE.get(function)
    module = getattr(function, "__module__", "numpy") or "numpy"
    if implementation is None and module in ENTERED_LATER:
        ENTERED_LATER[module]()
        implementation = TABLE.get(function)
    if implementation is None and module.startswith("numpy.polynomial."):
        # Most of these run on traced values as they are.
        enter_on_objects(function)
        implementation = TABLE[function]
    if implementation is None:
        if module == "numpy" and function.__name__ in creation.__all__:
            # Functions that make arrays meet a traced value as `like=` only.
            raise MissingRule(
                f"numpy.{function.__name__} with like= cannot make a traced array; write ftrans.numpy."
                f"{function.__name__}, whose arrays take traced values in a traced function{at_line(user_line())}"
            )
        raise missing(f"{module}.{function.__name__}")
    return implementation(*args, **kwargs)
