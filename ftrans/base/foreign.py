"""What ftrans knows of the insides of Python and of other libraries, which they do not promise to keep.

No result of a correct program depends on it.  It is there for error messages, for speed, and for noticing code that
cannot be traced.  Each item says what it leans on, and what happens once that is gone.  `tests/test_foreign.py` fails
when the ground has moved.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import sys
import warnings
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from enum import StrEnum
from types import CodeType, FrameType
from typing import Any

import numpy as np

# Python

_CACHE = dis.opmap.get("CACHE", -1)


def instruction_at(code: CodeType, place: int) -> int:
    """The place of an instruction that runs, of which Python may report the cache behind it.

    Leans on: once Python has specialized an instruction, `f_lasti` may point at the CACHE entries that follow it.
    Without it: one place in the user's code counts as several, so that programs are traced again that are known.
    """
    while place > 0 and code.co_code[place] == _CACHE:
        place -= 2
    return place


def assigns_element(frame: FrameType) -> bool:
    """Whether what runs in a frame is an assignment `array[index] = value`.

    Leans on: the names of the instructions for it.
    Without it: a tensor that requires a gradient may lose it in silence as an element of a NumPy array.
    """
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] in ("STORE_SUBSCR", "STORE_SLICE")


def with_global_names(code: CodeType, renamed: Callable[[str, bool], str]) -> CodeType:
    """The code of a function that reads other global names: `renamed` gets each, and whether it is called at once.

    Leans on: LOAD_GLOBAL has twice the place of the name as its argument, and 1 added in front of a call.
    Without it: `ft.patch` finds nothing in code whose source is not at hand.
    """
    places, changed = list(code.co_names), bytearray(code.co_code)
    for instruction in dis.get_instructions(code):
        place = instruction.arg
        if instruction.opname != "LOAD_GLOBAL" or place is None or code.co_names[place // 2] != instruction.argval:
            continue
        name = renamed(instruction.argval, place % 2 == 1)
        if name not in places:
            places.append(name)
        new = 2 * places.index(name) + place % 2
        # A longer argument would need another instruction.
        if max(place, new) < 256:
            changed[instruction.offset + 1] = new
    return code.replace(co_names=tuple(places), co_code=bytes(changed))


@functools.cache
def _reads_attribute(code: CodeType, place: int, name: str) -> bool:
    instructions = [i for i in dis.get_instructions(code) if i.offset <= place]
    *before, running = [i for i in instructions if i.opname not in ("CACHE", "EXTENDED_ARG")]
    if running.opname in ("LOAD_ATTR", "LOAD_METHOD"):
        return bool(running.argval == name)
    # Python 3.11 prepares a call by an instruction of its own.
    before = [i for i in before if i.opname != "PRECALL"]
    count = running.arg if running.opname in ("CALL", "PRECALL") else None
    return count in (2, 3) and len(before) >= count and before[1 - count].argval == name


def reads_attribute(frame: FrameType, name: str) -> bool:
    """Whether what runs in a frame is `x.name`, `hasattr(x, "name")` or `getattr(x, "name", default)`.

    Leans on: the names of the instructions for it.
    Without it: traced numbers are said to have `__iter__`, which they have not.
    """
    return _reads_attribute(frame.f_code, instruction_at(frame.f_code, frame.f_lasti), name)


@functools.cache
def _calls_attribute(code: CodeType, place: int, name: str) -> bool:
    running, *after = (i for i in dis.get_instructions(code) if i.offset >= place and i.opname != "CACHE")
    # Python 3.13 stores and loads in one instruction, of two names.
    stored = after[0].argval if after else None
    if str(stored[0] if isinstance(stored, tuple) else stored).startswith("@py_assert"):
        return bool(running.argval == name)
    is_called = running.opname == "LOAD_METHOD" or (
        running.opname == "LOAD_ATTR" and sys.version_info >= (3, 12) and bool((running.arg or 0) & 1)
    )
    return is_called and running.argval == name


def calls_attribute(frame: FrameType, name: str) -> bool:
    """Whether what runs in a frame is `x.name` in front of its call, `x.name(...)`, or in an assertion in a test.

    Leans on: Python 3.11 has LOAD_METHOD for it, later versions a LOAD_ATTR with 1 added to its argument; what pytest
    makes of `assert x.name(...)` stores the attribute under a name that begins with "@py_assert".
    Without it: `x.size()` of torch calls the number that `x.size` is in NumPy.
    """
    return _calls_attribute(frame.f_code, instruction_at(frame.f_code, frame.f_lasti), name)


def receiver_of_warnings() -> Any:
    """Where `warnings.showwarning` hands its warnings, which `warnings.catch_warnings(record=True)` replaces.

    Leans on: the name of the function.
    Without it: of traced code that waits for warnings, only what has a filter is noticed.
    """
    return getattr(warnings, "_showwarnmsg_impl", None)


# NumPy

# What NumPy has as the default of arguments that are left out, and passes on to the functions that it calls.
NO_VALUE: Any = inspect.signature(np.sum).parameters["initial"].default


def _find_variable_of_error_modes() -> ContextVar[Any] | None:
    def context(mode: Any) -> Context:
        with np.errstate(divide=mode):
            return copy_context()

    before, after = context("warn"), context("ignore")
    found = [v for v in after if before.get(v) is not after[v]]
    return found[0] if len(found) == 1 else None


# The context variable of `np.errstate` and `np.seterr`, which has another object as its value after each of them.
# Leans on: NumPy keeps its error modes in one context variable.
# Without it, which is None here: `np.geterr()` is asked for each equation, so that tracing takes longer.
VARIABLE_OF_ERROR_MODES: ContextVar[Any] | None = _find_variable_of_error_modes()


def is_of_python_function(ufunc: np.ufunc) -> bool:
    """Whether `numpy.frompyfunc` has made a ufunc: it takes and returns Python objects alone."""
    return all(set(types) <= set("O->") for types in ufunc.types)


_VECTORIZE = np.vectorize.__call__.__code__
_REQUIRE = inspect.unwrap(np.require).__code__


def is_within_vectorize(frame: FrameType | None) -> bool:
    """Whether a frame, or one of those that called it, is a call of `np.vectorize`.

    Leans on: it is written in Python, and converts results by functions that are called in few steps.
    Without it: the error about a traced value as an element of a plain array does not say that this is the reason.
    """
    for _ in range(8):
        if frame is None or frame.f_code is _VECTORIZE:
            break
        frame = frame.f_back
    return frame is not None and frame.f_code is _VECTORIZE


def requires_properties(frame: FrameType) -> bool:
    """Whether what runs in a frame is `np.require` with requirements.

    Leans on: it is written in Python, and asks for the array in its own code.
    Without it: what is written to the copy that it makes of a traced value is lost in silence.
    """
    return frame.f_code is _REQUIRE and bool(inspect.getargvalues(frame).locals.get("requirements"))


def shuffles(expression: str) -> bool:
    """Whether the user's expression is a call of `numpy.random`'s `shuffle`.

    Leans on: nothing but the name.  The function leaves no frame, since it is compiled.
    Without it: a shuffled traced array has some rows twice.
    """
    return ".shuffle(" in expression


def without_name_of_method(method: str, said: str) -> str | None:
    """What an error of a method of arrays says behind the name of the function of NumPy that failed; None for others.

    Leans on: methods that NumPy has written in Python are functions named `_method`, or `_amethod`.
    Without it: wrong arguments are told by the name of that function.
    """
    name, _, rest = said.partition("() ")
    return rest if name in (f"_{method}", f"_a{method}") else None


# The functions of `scipy.sparse` that leave what is no array to the other operand.
_LEAVES_TO_OTHER = {"_matmul_dispatch", "_multiply_2d_with_broadcasting", "_divide"}


def leaves_to_other_operand(frame: FrameType) -> bool:
    """Whether what runs in a frame is an operator of a sparse array of SciPy, which lets objects of no shape answer.

    Leans on: these functions take what NumPy makes a 0-d array of Python objects for no array, and return
    NotImplemented; operators and `dot` of sparse arrays call them.
    Without it: a plain sparse array times a traced value is an error, unless written with ftrans.scipy.sparse.
    """
    if frame.f_code.co_name not in _LEAVES_TO_OTHER:
        return False
    outer = frame
    while outer.f_back is not None and outer.f_back.f_globals.get("__name__", "").startswith("scipy.sparse"):
        outer = outer.f_back
    return outer.f_code.co_name.startswith("__") or outer.f_code.co_name == "dot"


_QUESTIONS = {"__instancecheck__", "issparse", "isspmatrix", "isscalarlike", "isdense"}


def computes_with_sparse_arrays(frame: FrameType) -> bool:
    """Whether what runs in a frame is code of `scipy.sparse` that asks for itself, and not for a caller elsewhere.

    Leans on: its operators ask `issparse`, or `isinstance`, and return NotImplemented for other objects.
    Without it: a plain sparse array before one with traced entries is an error unless both have one format.
    """
    asking: FrameType | None = frame
    while asking is not None and asking.f_code.co_name in _QUESTIONS:
        asking = asking.f_back
    return asking is not None and asking.f_globals.get("__name__", "").startswith("scipy.sparse")


class Said(StrEnum):
    """What errors of Python and of other libraries say.

    Without it: the error reaches the user as it is, without the advice that goes with it.
    """

    # NumPy, of an array of Python objects; the last one before NumPy 2.5
    HOLDS_REFERENCES = "NPY_ITER_REFS_OK"
    NO_LOOP = "loop of ufunc does not support argument"
    OBJECT_DTYPE = "dtype('O')"
    NOT_SUPPORTED = "not supported for the input types"
    NOT_INEXACT = "'numpy.object_'> not inexact"
    # NumPy and struct, where what they asked raised an error that they hide
    NO_INDEX = "only integers, slices"
    NO_ELEMENT = "Error setting single item"
    NO_ARGUMENT = "required argument is not"
    # NumPy, of arguments
    READ_ONLY = "read-only"
    SHUFFLED_READ_ONLY = "array is read-only"
    INVALID_KEYWORD = "invalid keyword"  # before NumPy 2.5
    AXES_DIFFER = "don't match array"
    NO_DTYPE = "Cannot interpret 'True' as a data type"
    NO_ORDER = "order must be str, not int"
    # Python
    UNEXPECTED_KEYWORD = "unexpected keyword"
    MISSING_KEYWORD = "required keyword-only argument"
    UNHASHABLE = "unhashable type"
    NO_BYTES = "bytes-like"
    NO_JSON = "JSON"
    NO_FRACTION = "numerator"
    NO_DECIMAL = "Decimal"
    NOT_CALLABLE = "not callable"
    NO_OPERAND = "operand"
    NO_ORDERING = "between instances"
    NO_ATTRIBUTE = "object has no attribute"
    NO_SETTER = "object has no"
    NO_INDEX_OF_LIST = "indices must be integers or slices"
    NO_REPETITION = "multiply sequence"
    NO_CONCATENATION = "can only concatenate"
    # Other libraries; the name of a class is the end of those of all units
    NO_UNIT = "Unit'"
    NOT_OF_JAX = "JAX"
    NOT_OF_TORCH = "Tensor"
    DELETED = "deleted"


# SciPy


def module_of(function: Any) -> str | None:
    """The name of the module that a function, class or method of a class is from, None where nothing says it.

    Leans on: `SuperLU`, whose methods have no module, as it has none itself, is a class of `scipy.sparse.linalg`.
    Without it: `solve` of factors of a plain matrix does not take a traced right-hand side in patched code.
    """
    owner = getattr(function, "__objclass__", None)
    if owner is not None and owner.__name__ == "SuperLU":
        return "scipy.sparse.linalg"
    name = getattr(function, "__module__", None)
    return name if isinstance(name, str) else None


def kind_of_interp1d(f: Any) -> tuple[str, Any]:
    """The kind of a `scipy.interpolate.interp1d`, "spline" for several, and its spline if it has one.

    Leans on: the attributes `_kind` and `_spline`; `_spline.c` has the axis of data first and one for all others.
    Without it: traced points are refused where SciPy itself has made the object.
    """
    return f._kind, f._spline if f._kind == "spline" else None


def axes_of_polynomial(f: Any) -> tuple[int, tuple[int, ...]]:
    """The axis of the data of a `KroghInterpolator` or `BarycentricInterpolator`, and the shape of the other axes.

    Leans on: the attributes `_y_axis` and `_y_extra_shape`.
    Without it: traced points are refused where SciPy itself has made the object.
    """
    return f._y_axis, tuple(f._y_extra_shape)


def parts_of_rbf(f: Any) -> tuple[Any, Any, Any]:
    """Shift, scale and coefficients of a `scipy.interpolate.RBFInterpolator` without neighbors.

    Leans on: the attributes `_shift`, `_scale` and `_coeffs`; complex coefficients lie in pairs of real columns.
    Without it: traced points are refused where SciPy itself has made the object.
    """
    return f._shift, f._scale, f._coeffs


def spline_of_grid(f: Any) -> tuple[Any, Any] | None:
    """Knots and coefficients of the spline of a `scipy.interpolate.RegularGridInterpolator`, if it has one.

    Leans on: the attribute `_spline`, an `NdBSpline`, whose coefficients SciPy finds to a few digits only.
    Without it: traced points are refused where SciPy itself has made the object.
    """
    return None if f._spline is None else (f._spline.t, f._spline.c)


# JAX


# How the names of files end in JAX's persistent compilation cache.  Leans on: they do.  Without it: damaged files are
# noticed only where JAX compresses them by zlib.
ENDING_OF_COMPILED = "-cache"


def options_for_loops() -> str:
    """An addition to XLA_FLAGS by which XLA makes one kernel of a loop over up to 64 kB on a CPU; empty for none.

    Leans on: XLA of JAX 0.10 and 0.11 knows the option; from 0.12 on it does so by itself.  XLA ends the process when
    it meets an option that it does not know, so no other version gets it.
    Without it: each operation in a loop costs about a microsecond.
    """
    # Its import takes half as long as that of ftrans.
    from importlib.metadata import version

    if not version("jax").startswith(("0.10.", "0.11.")):
        return ""
    return "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=65536"


def leave_signals_alone(jax: Any) -> None:
    """Keep JAX from taking SIGTERM for itself when processes are put together.

    Leans on: the setting `jax_enable_preemption_service`.
    Without it: SIGTERM does not end a process that has joined others.
    """
    with contextlib.suppress(AttributeError):
        jax.config.update("jax_enable_preemption_service", False)


def found_no_cluster(error: ValueError) -> bool:
    """Whether `jax.distributed.initialize()` has found nothing that says which processes there are.

    Leans on: what it says.
    Without it: a script for several processes needs to be launched to run as one.
    """
    return "coordinator_address should be defined" in str(error)


def says_process_is_gone(error: BaseException) -> bool:
    """Whether a computation failed because another process that takes part has ended.

    Leans on: the names of the libraries by which XLA reaches other processes, in its errors.
    Without it: the error reaches the user as it is.
    """
    return any([name in str(error) for name in ("Gloo", "NCCL", "oordination service", "Connection reset")])
