"""Errors of NumPy and SciPy that hide what is wrong with the user's code, and what is said in their place."""

from __future__ import annotations

import importlib
from types import FrameType
from typing import Any

import numpy as np

from ..core.source import at_line, line_of_error, of_package
from ..core.trace import Builder, ConcretizationError
from ..numpy.promotion import has_tracer

_OF_OBJECT_ARRAYS = (
    "NPY_ITER_REFS_OK", "loop of ufunc does not support argument", "dtype('O')", "not supported for the input types",
)  # fmt: skip


def explained(error: Exception, builder: Builder) -> Exception | None:
    """What to raise in place of an error of traced code; None if the error says it all.

    Args:
        error: what was raised.
        builder: the builder of the trace.
    """
    if isinstance(error, ConcretizationError):
        return None
    call = _call_of_scipy(error)
    if call is not None:
        return TypeError(f"{call}{at_line(line_of_error(error))}")
    refused = builder.refused
    if isinstance(error, IndexError | ValueError):
        # NumPy asked a tracer for a value, and hid our answer behind an error of its own.
        is_hidden = refused is not None and (
            error.__cause__ is refused or str(error).startswith("only integers, slices")
        )
        return refused if is_hidden else None
    if isinstance(error, AttributeError | TypeError) and error is not refused and _met_object_array(error):
        return TypeError(
            "NumPy cannot do this with an array of Python objects, which is what np.array makes of a list that holds "
            "traced values; write ftrans.numpy.array([...]) or np.stack([...]) for an array that is traced"
            + at_line(line_of_error(error))
        )
    return None


def _met_object_array(error: TypeError | AttributeError) -> bool:
    """Whether NumPy failed on an array of Python objects, which is what it makes of a list that holds traced values."""
    if isinstance(error, AttributeError):
        # A ufunc of objects calls the method of its own name on each of them.
        return isinstance(getattr(np, error.name or "", None), np.ufunc)
    return any(text in str(error) for text in _OF_OBJECT_ARRAYS)


def _call_of_scipy(error: Exception) -> str | None:
    """What is wrong with a call of a function of SciPy that failed on a traced value, if that is what happened."""
    trace, frames = error.__traceback__, []
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    packages = [of_package(frame.f_code.co_filename) for frame in frames]
    places = [i for i, package in enumerate(packages) if package not in ("ftrans", "numpy")]
    if not places or packages[places[-1]] != "scipy":
        return None
    # SciPy's functions call each other; the user called the outermost one behind the last line of his own.
    first = places[-1]
    while first > 0 and packages[first - 1] == "scipy":
        first -= 1
    calls = [_name_and_arguments(frame) for frame in frames[first : places[-1] + 1]]
    if not any(takes_tracer for _, takes_tracer in calls):
        return None
    # Decorators of SciPy have names of their own.
    name = next((name for name, _ in calls if _is_public(name)), calls[0][0])
    advice = (
        f"write ftrans.{name}, which can be traced"
        if _is_public(f"ftrans.{name}")
        else "ftrans.scipy has no such function; compose it from functions of NumPy, give it a rule by ft.custom_vjp, "
        "or apply it to values outside of the traced function"
    )
    return f"{name} cannot be applied to traced values, because NumPy's protocols do not reach it: {advice}"


def _name_and_arguments(frame: FrameType) -> tuple[str, bool]:
    """The public name of the function that runs in a frame, and whether a traced value is among its arguments."""
    code = frame.f_code
    values = frame.f_locals
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    owner: Any = values.get("self")
    path = frame.f_globals["__name__"].split(".")[:2]
    if owner is not None:
        path.append(getattr(owner, "name", None) or type(owner).__name__)
    if code.co_name != "__init__":
        path.append(code.co_name)
    given = [values.get(name) for name in code.co_varnames[:count]]
    return ".".join(path), any(has_tracer(list(x.values()) if isinstance(x, dict) else x) for x in given)


def _is_public(name: str) -> bool:
    """Whether there is a function of this full name in SciPy or in `ftrans.scipy`."""
    parts = name.split(".")
    count = parts.index("scipy") + 2
    try:
        found: Any = importlib.import_module(".".join(parts[:count]))
        for part in parts[count:]:
            found = getattr(found, part)
    except (ImportError, AttributeError, NotImplementedError):
        return False
    return True
