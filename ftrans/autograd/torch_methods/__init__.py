"""The table of torch's methods and functions, as functions of any value: tensors, traced values, arrays and cells.

Each file has those of one kind, composed of functions of NumPy, so that each works wherever those do.  Methods that
NumPy's arrays have, too, are in `shared`, which says which of the two a call means.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from . import changes, kinds, order, parts, pointwise, products, shapes, sums

Function = Callable[..., Any]

METHODS: dict[str, Function] = {}
for _part in (shapes, parts, changes, order, sums, products, pointwise, kinds):
    METHODS |= _part.METHODS

# Methods that change their first argument, by their names without the underscore.
_ALSO_IN_PLACE = (
    "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr", "baddbmm", "cumprod", "cumsum", "div", "divide",
    "lerp", "logit", "renorm", "relu", "sigmoid", "sub", "subtract", "tril", "triu", "true_divide", "round", "rsqrt",
    "frac", "erf", "erfc", "erfinv", "lgamma", "digamma",
)  # fmt: skip
IN_PLACE: dict[str, Function] = changes.IN_PLACE | {name: METHODS[name] for name in _ALSO_IN_PLACE}

# Functions that are no methods.
FUNCTIONS: dict[str, Function] = {}
for _part in (parts, order, products, pointwise):
    FUNCTIONS |= _part.FUNCTIONS
FUNCTIONS["where"] = changes.where


def _name(functions: dict[str, Function]) -> None:
    """Let functions have the names that users call them by, which Python's errors say."""
    for name, function in functions.items():
        is_ours = isinstance(function, FunctionType) and function.__module__.startswith(__name__)
        if is_ours and functions.get(function.__name__) is not function:
            function.__name__ = function.__qualname__ = name


_name(METHODS)
_name(FUNCTIONS)
