"""The forms that functions take while a trace runs, in code that is patched.

`form(f)` stands in the code for each `f` that may have one.  Where no trace runs it is `f` itself.  Otherwise it is
looked up, in this order: by the function; for a method, by the function of its class; for an object that is called, by
the `__call__` of its class.  What the functions of NumPy and SciPy become is said in `numpy.dispatch.TABLE`, what those
of Python become in `builtin_forms` and `math_forms`.
"""

from __future__ import annotations

import functools
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from ..base.foreign import module_of
from ..core.trace import TracerLeak, current_builder, recording_in
from ..numpy.dispatch import ENTERED_LATER, TABLE, TAKES_FUNCTIONS, wherever
from ..numpy.vectorizing import vectorize
from ..run.places import TRACE, place_of_arguments
from .builtin_forms import BUILTINS, CALLERS, with_forms
from .math_forms import FUNCTIONS as MATH
from .numpy_forms import FUNCTIONS as NUMPY
from .numpy_forms import IN_PLACE, element, method_of_array

__all__ = ["element", "form", "may_have_form"]

_Cached = type(functools.lru_cache(lambda: None))


def form(function: Any) -> Any:
    """What is called in place of a function: itself where no trace runs, or where it has no other form."""
    return function if current_builder() is None else traced_form(function)


# What has another form, by the function itself; None is for what is known to have none.
_forms: dict[Any, Any] = {**NUMPY, **MATH, **BUILTINS, **{f: with_forms(f, form) for f in CALLERS}}
_forms |= {f: with_forms(_forms[f], form) for f in (np.vectorize, np.frompyfunc, np.apply_along_axis)}


def may_have_form(value: Any) -> bool:
    """Whether a value of a module's namespace may have another form.  Functions and classes of most modules do not."""
    if not isinstance(value, FunctionType | BuiltinFunctionType | type):
        return True
    return value in _forms or _library(value) is not None


def traced_form(function: Any) -> Any:
    """The form of a function while a trace runs."""
    try:
        found = _forms.get(function)
    except TypeError:
        # An object that cannot be hashed is none of these functions.
        return _of_object(function)
    if found is not None:
        return found
    if isinstance(function, _Cached):
        return _uncached(function)
    if type(function) is functools.partial:
        return functools.partial(traced_form(function.func), *function.args, **function.keywords)
    if isinstance(function, FunctionType | type):
        return _of_library(function)
    if isinstance(function, MethodType):
        return _of_method(function, function.__func__)
    if isinstance(function, BuiltinFunctionType):
        owner = function.__self__
        if isinstance(owner, np.ndarray):
            return function if function.__name__ in IN_PLACE else method_of_array(owner, function.__name__)
        if owner is None or isinstance(owner, type | type(np)):
            return _of_library(function)
        return _of_method(function, getattr(type(owner), function.__name__, None))
    found = _of_object(function)
    if found is function and hasattr(function, "__name__") and not isinstance(function, np.ufunc):
        # The functions of `scipy.fft` are objects of a compiled class.
        return _of_library(function)
    return found


def _library(function: Any) -> str | None:
    """The module of NumPy or SciPy that a function belongs to, as far as it is entered in the table at once."""
    name = module_of(function)
    if name is None or not name.startswith(("numpy", "scipy.")):
        return None
    return ".".join(name.split(".")[:2])


def _of_library(function: Any) -> Any:
    """A function or class of NumPy or SciPy: what is in the table for it."""
    library = _library(function)
    if library is None:
        return function
    enter = ENTERED_LATER.get(library)
    if enter is not None:
        enter()
    found = function
    if function in TABLE:
        found = functools.wraps(TABLE[function])(wherever(TABLE[function], function, has_protocols=False))
        if function in TAKES_FUNCTIONS:
            found = with_forms(found, _handed)
    _forms[function] = found
    return found


def _handed(x: Any) -> Any:
    """An argument: functions of Python that were compiled are called in their traced forms."""
    return form(x) if isinstance(x, BuiltinFunctionType | functools.partial) else x


def _of_method(method: Any, function: Any) -> Any:
    """A method of an object of NumPy or SciPy: what is in the table for the function of the class."""
    found = _forms.get(function) or (_of_library(function) if function is not None else None)
    if found is None or found is function:
        return method
    return functools.partial(found, method.__self__)


def _of_object(function: Any) -> Any:
    """An object that is called."""
    if type(function).__module__.startswith("numba."):
        return _of_numba(function)
    call = next((vars(c)["__call__"] for c in type(function).__mro__ if "__call__" in vars(c)), None)
    if not isinstance(call, FunctionType):
        # Some functions of SciPy are objects made in C; NumPy's protocols bring ufuncs to traced values.
        return function if isinstance(function, np.ufunc) or not _is_hashable(function) else _of_library(function)
    found = _forms.get(call) or _of_library(call)
    return function if found is call else functools.partial(found, function)


def _is_hashable(x: Any) -> bool:
    return getattr(type(x), "__hash__", None) is not None


# Functions that numba compiles from their code, which therefore stays, with the copies of them that are patched.
patched_copies: dict[Any, FunctionType] = {}


def _of_numba(function: Any) -> Any:
    """What numba has compiled: the function of Python that it keeps, of a ufunc for each element."""
    if hasattr(function, "ufunc") and hasattr(function, "__wrapped__"):
        return vectorize(patched_copies.get(function.__wrapped__, function.__wrapped__))
    python = getattr(function, "py_func", function)
    return patched_copies.get(python, python)


def _uncached(function: Any) -> Any:
    """A function with a cache: what is computed from traced values is not kept."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if place_of_arguments(args, kwargs) is TRACE:
            return function.__wrapped__(*args, **kwargs)
        try:
            # What is made here is kept beyond the trace, so it must be plain.
            with recording_in(None):
                return function(*args, **kwargs)
        except TracerLeak:
            # It uses a traced value that is not among its arguments.
            return function.__wrapped__(*args, **kwargs)

    return call
