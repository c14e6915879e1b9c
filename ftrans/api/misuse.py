"""Errors of NumPy and SciPy that hide what is wrong with the user's code, and what is said in their place."""

from __future__ import annotations

import importlib
import inspect
import struct
import sys
from itertools import takewhile
from traceback import walk_tb
from types import FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from .. import numpy as namespace
from ..base.foreign import Said
from ..base.names import name_of
from ..base.source import at_line, line_of_error, of_package, user_line
from ..base.type_questions import is_plain
from ..core.trace import Builder, Tracer
from ..core.witness import ConcretizationError
from ..numpy.number_advice import called
from ..numpy.promotion import has_tracer
from ..numpy.refused import REFUSED
from ..numpy.torch_names import add_hint

_OF_OBJECT_ARRAYS = (Said.HOLDS_REFERENCES, Said.NO_LOOP, Said.OBJECT_DTYPE, Said.NOT_SUPPORTED, Said.NOT_INEXACT)

# How errors begin behind which NumPy hides that a tracer refused to tell its value.
_OF_NUMPY = (Said.NO_INDEX, Said.NO_ELEMENT, Said.NO_ARGUMENT)

# How they call its class.
_NAMES_OF_TRACER = ("'Tracer'", "not Tracer", "from Tracer", "of type Tracer", f"{Tracer.__module__}.Tracer")
_OF_JAX = (
    "functions of JAX take arrays of JAX, and know nothing of a traced value of ftrans. Write the function of numpy "
    "(np.sin in place of jnp.sin), or one of ftrans.scipy; ftrans.jit compiles it by XLA. A function written for JAX "
    "becomes part of a program by ftrans.from_jax(f), which takes traced values as arguments"
)
_OF_PACKAGES = {
    "astropy": (
        "a Quantity holds numbers as a subclass of NumPy's array, which cannot hold a traced value. Compute with "
        "numbers in one system of units, as in x * (3 * u.km).to_value(u.m) or u.km.to(u.m, x), and give the result "
        "its unit; quantities of pint can hold traced values"
    ),
    "jax": _OF_JAX,
    "matplotlib": (
        "matplotlib draws numbers, and a traced value has none before the program runs. Return it from the traced "
        "function and draw the result, or watch it by ftrans.tap"
    ),
    "pandas": (
        "pandas computes this from numbers, and a traced value has none before the program runs. A Series becomes "
        "traced by its operators, as in series * x, and has most methods then; for others take functions of NumPy of "
        "its numbers, x.to_numpy()"
    ),
}
# What errors of Python and of other libraries say that were given a traced value, and what is said in their place.
_INSTEAD_OF = {
    Said.NO_UNIT: _OF_PACKAGES["astropy"],
    Said.UNHASHABLE: (
        "a traced value cannot be a key of a dictionary or an element of a set: it stands for a number, which may be "
        "another one next time. For an integer write table[int(n)], which looks at "
        "its value; in a table that is an array, ftrans.numpy.take(table, n). int() cuts off decimals: for other "
        "numbers write x in [1.0, 2.0] in place of x in {1.0, 2.0}"
    ),
    Said.NO_BYTES: (
        "a traced value has no bytes: it stands for a value of the program that is being traced. Return it from the "
        "traced function, and take the bytes of the result"
    ),
    Said.NO_JSON: (
        "a traced value cannot be written as JSON: it has no number before the program runs. Return it from the traced "
        "function, and write the result; or watch it by ftrans.tap"
    ),
    Said.NOT_OF_JAX: _OF_JAX,
    Said.NOT_OF_TORCH: (
        "functions of another library take its own tensors, and know nothing of a traced value of ftrans. Write the "
        "function of numpy (np.sin in place of torch.sin), or one of ftrans.scipy or ftrans.nn.functional; or make it "
        "a part of the program by g = ftrans.from_torch(torch.sin)"
    ),
    Said.NO_FRACTION: (
        "the modules statistics and fractions take numbers of Python, from which no derivative comes back. Write the "
        "function of numpy: np.mean, np.std, np.median"
    ),
    Said.NO_DECIMAL: "a traced value cannot become a Decimal, which has no derivative; compute with it as it is",
    Said.NOT_CALLABLE: "a traced value is an array, and no function: is a `*` missing, or are [] meant by ()",
    Said.NO_OPERAND: (
        "a traced value, the 'Tracer' below, meets something that is neither an array nor a number; a None "
        "is often the result of a function without `return`"
    ),
    Said.NO_ORDERING: (
        "a traced value, the 'Tracer' below, is compared with something that is neither an array nor a number"
    ),
}

# What Python says where an attribute of a traced value is set or deleted.
_OF_SETTING = (f"'Tracer' {Said.NO_ATTRIBUTE}", f"of 'Tracer' {Said.NO_SETTER}")
_NAMED = ("'Tracer' object", "traced value")
_NO_SETTING = (
    "a traced value takes no attributes, as little as an array of NumPy does, and its own are not changed by "
    "assignment; keep what belongs to it in a variable, and write x = x.astype(dtype), x = x.reshape(shape)"
)

# What Python says of a list or tuple where an array was meant.
_OF_LISTS = (Said.NO_OPERAND, Said.NO_INDEX_OF_LIST, Said.NO_REPETITION, Said.NO_CONCATENATION)

# Functions of functions, whose results may be traced where no argument is.
_OF_FUNCTIONS = ("piecewise", "apply_along_axis")


def explained(error: Exception, builder: Builder) -> Exception | None:
    """What to raise in place of an error of traced code; None if the error says it all.

    Args:
        error: what was raised.
        builder: the builder of the trace.
    """
    if isinstance(error, ConcretizationError):
        return None
    refused = builder.refused[-1][0] if builder.refused else None
    call = _call_of_numba(error) or _call_of_scipy(error, refused is not None)
    if call is not None:
        return TypeError(f"{call}{_where(error)}")
    was_refused = refused is not None and (error is refused or error.__cause__ is refused)
    # NumPy permutes the array of Python objects that it has made of a traced value.
    if was_refused or _met_object_array(error) or str(error) == Said.SHUFFLED_READ_ONLY:
        call = _call_of_random(error) or _call_of_numpy(error)
        if call is not None:
            return TypeError(f"{call}{_where(error)}")
    if isinstance(error, AttributeError) and any(text in str(error) for text in _OF_SETTING):
        return AttributeError(f"{_NO_SETTING} ({str(error).replace(*_NAMED)}){_where(error)}")
    met = _met_tracer(error, was_refused)
    if met is not None:
        return TypeError(f"{met}{_where(error)}")
    if isinstance(error, IndexError | ValueError | SystemError | struct.error):
        # Compiled code asked a tracer for a value, and hid our answer behind an error of its own.
        is_hidden = refused is not None and (was_refused or str(error).startswith(_OF_NUMPY))
        if is_hidden:
            return refused
    # None among the arguments is another mistake, and NumPy's error names it.
    is_of_list = isinstance(error, AttributeError | TypeError) and "NoneType" not in str(error)
    if is_of_list and error is not refused and _met_object_array(error):
        return TypeError(
            "NumPy cannot do this with an array of Python objects, which is what np.array makes of a list that holds "
            "traced values; write ftrans.numpy.array([...]) or np.stack([...]) for an array that is traced"
            + _where(error)
        )
    if _met_list(error):
        return type(error)(
            f"a list or tuple is no array ({error}): give the function an array, as in "
            f"ft.grad(f)(np.array([1.0, 2.0])), or make one inside by np.stack(x){_where(error)}"
        )
    _add_line(error)
    add_hint(error)
    return None


def _where(error: Exception) -> str:
    """The user's line that an error comes from, or that called what failed, as the end of a message."""
    return at_line(line_of_error(error) or user_line())


def _met_tracer(error: Exception, was_refused: bool) -> str | None:
    """What is wrong where Python, or a library that does not know traced values, was given one."""
    if was_refused:
        below = ("ftrans", "numpy", "python")
        return next((text for name, text in _OF_PACKAGES.items() if _frames_within(name, error, below)), None)
    said = str(error)
    if not isinstance(error, TypeError) or not any(name in said for name in _NAMES_OF_TRACER):
        return None
    found = _call_of_cache(error) if Said.UNHASHABLE in said else None
    found = found or next((instead for text, instead in _INSTEAD_OF.items() if text in said), None)
    return f"{found} ({said.splitlines()[0].rstrip('.')})" if found is not None else None


def _call_of_cache(error: Exception) -> str | None:
    """What is wrong with a call of a function that keeps its results, if that is what asked for a hash."""
    *_, (frame, _) = walk_tb(error.__traceback__)
    function = called(frame)
    if not hasattr(function, "cache_info") or not hasattr(function, "__wrapped__"):
        return None
    name = name_of(function)
    return (
        f"{name} keeps its results by its arguments (functools.lru_cache), and a traced value cannot be looked up: it "
        f"stands for a number, which may be another one next time. Remove the cache, or call the function without "
        f"it, {name}.__wrapped__"
    )


def _add_line(error: Exception) -> None:
    """Note the user's line on an error of this package or NumPy that does not name one."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    if not frames or _package(frames[-1]) is None or "\n  at " in str(error):
        return
    note = _where(error).strip("\n")
    if note and not any("  at " in n for n in getattr(error, "__notes__", ())):
        error.add_note(note)


def _met_list(error: Exception) -> bool:
    """Whether Python refused to do something with a list of traced values that arrays can do."""
    if isinstance(error, AttributeError):
        is_of_array = isinstance(error.obj, list | tuple) and hasattr(np.ndarray, error.name or "")
    else:
        is_of_array = isinstance(error, TypeError) and any(text in str(error) for text in _OF_LISTS)
    if not is_of_array:
        return False
    *_, (frame, _) = walk_tb(error.__traceback__)
    return any(isinstance(x, list | tuple) and has_tracer(x) for x in frame.f_locals.values())


def _met_object_array(error: Exception) -> bool:
    """Whether NumPy failed on an array of Python objects, which is what it makes of a list that holds traced values."""
    if isinstance(error, AttributeError):
        obj: Any = error.obj
        if is_plain(obj, np.ndarray) and obj.dtype != object:
            return False
        # A ufunc of objects calls the method of its own name on each of them.
        return isinstance(getattr(np, error.name or "", None), np.ufunc)
    return any(text in str(error) for text in _OF_OBJECT_ARRAYS)


def _call_of_numpy(error: Exception) -> str | None:
    """What is wrong with a call of a function of NumPy whose own code failed on a traced value, if that happened."""
    frames = _frames_within("numpy", error, below=("ftrans",))
    if not frames:
        return None
    code, module = frames[0].f_code, frames[0].f_globals["__name__"]
    name = code.co_name
    if name not in _OF_FUNCTIONS and not any(_name_and_arguments(frame)[1] for frame in frames):
        return None
    if module.startswith("numpy.polynomial."):
        return (
            f"{module}.{name} cannot be applied to traced values. For roots write "
            " np.roots, for a fit np.polyfit, where coefficients begin with the highest power; or np.linalg.lstsq "
            "with the matrix that polyvander, chebvander ... make"
        )
    public = getattr(np, name, None)
    if getattr(getattr(public, "__wrapped__", public), "__code__", None) is not code or name not in dir(namespace):
        return None
    return (
        f"np.{name} does not look for traced values where one is: in an array of Python objects, or in an argument "
        f"that is not an array as a rule; write ftrans.numpy.{name}, which looks everywhere, and "
        "ftrans.numpy.array([...]) for an array of traced values"
    )


def _call_of_random(error: Exception) -> str | None:
    """What is wrong with a call of `numpy.random` that was given a traced value, if that is what happened."""
    frames = _frames_within("numpy", error, below=("ftrans",))
    if not any(frame.f_globals.get("__name__", "").startswith("numpy.random.") for frame in frames):
        return None
    return (
        "numpy.random draws numbers whose distribution plain numbers describe, and a derivative does not pass through "
        "it. Draw from the standard distribution and move what was drawn, as in "
        "mean + deviation * rng.standard_normal(shape). For a random order write x[rng.permutation(len(x))]"
    )


def _call_of_numba(error: Exception) -> str | None:
    """What is wrong with a call of a function that numba has compiled, if a traced value was among the arguments."""
    for frame, _ in walk_tb(error.__traceback__):
        owner = inspect.getargvalues(frame).locals.get("self")
        if type(owner).__module__.startswith("numba.") and _name_and_arguments(frame)[1]:
            python = getattr(owner, "py_func", None)
            name = getattr(python or owner, "__name__", "the function")
            instead = f"call {name}.py_func" if callable(python) else "remove the decorator"
            return (
                f"{name} is compiled by numba, whose code takes numbers and no traced values: {instead}, or call "
                "ftrans.patch(__name__) before, which runs the Python that numba has compiled"
            )
    return None


def _frames_within(package: str, error: Exception, below: tuple[str, ...]) -> list[FrameType]:
    """The frames of a package's functions, the user's call first, if an error comes from there.

    Args:
        package: the package.
        error: the error.
        below: packages that those functions may have called.
    """
    trace, frames = error.__traceback__, []
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    packages = [_package(frame) for frame in frames]
    while packages and packages[-1] in below:
        packages.pop()
    # The functions call each other; the user called the outermost one behind the last line of his own.
    last = first = len(packages)
    while first > 0 and packages[first - 1] == package:
        first -= 1
    return frames[first:last]


def _package(frame: FrameType) -> str | None:
    """The package whose code runs in a frame, as `of_package` says; what Cython compiled lies in no folder."""
    if frame.f_code.co_filename.endswith(".pyx"):
        return frame.f_globals.get("__name__", "").partition(".")[0]
    return of_package(frame.f_code.co_filename)


def _call_of_scipy(error: Exception, asked: bool) -> str | None:
    """What is wrong with a call of a function of SciPy that failed on a traced value, if that is what happened.

    Args:
        error: what was raised.
        asked: whether a traced value was asked for a number, as by compiled code that calls a function of the user.
    """
    frames = _frames_within("scipy", error, below=("ftrans", "numpy"))
    calls = [_name_and_arguments(frame) for frame in frames]
    if not calls or not (asked or any(takes_tracer for _, takes_tracer in calls)):
        return None
    # Decorators of SciPy have names of their own, and may fail before they call the function.
    names = [name for name, _ in calls] + [name for frame in frames for name in _names_of_decorated(frame)]
    name = next(filter(_is_public, names), names[0])
    if name.endswith(".__getattr__"):
        # A result has no such attribute.
        return None
    instead = _mirror_of(name)
    if name.startswith("scipy.sparse.") and name.count(".") == 3 and not name.startswith("scipy.sparse.linalg."):
        # A method of a sparse array.
        instead = (
            "products with a plain sparse array A as A @ x, sparse arrays with traced entries by ftrans.scipy.sparse, "
            "or else A.toarray()"
        )
    if name.startswith("scipy.fft.") and hasattr(np.fft, name.rpartition(".")[2]):
        instead = name.replace("scipy", "numpy")
    advice = REFUSED.get(name) or (
        _import_of(instead)
        if instead is not None
        else "ftrans.scipy has no such function; compose it from functions of NumPy, call it in the forward method of "
        "an ft.autograd.Function, or apply it to values outside of the traced function"
    )
    return f"{name} cannot be applied to traced values: {advice}"


def _import_of(name: str) -> str:
    """What to write for a function, or a method of an object, that can be traced: where to import it from."""
    if not name.startswith("ftrans."):
        return f"write {name}, which can be traced"
    package, _, what = name.rpartition(".")
    if package.removeprefix("ftrans.") not in sys.modules:
        # A method comes with its object.
        package, _, what = package.rpartition(".")
    return (
        f"write `from {package} import {what}`, or call ftrans.patch(__name__) before, which does so for all that this "
        "file takes from SciPy"
    )


def _public_path(module: str) -> list[str]:
    """The public part of the name of a module: names that begin with an underscore are not."""
    return list(takewhile(lambda part: not part.startswith("_"), module.split(".")))


def _names_of_decorated(frame: FrameType) -> list[str]:
    """The public names of the functions of SciPy that what runs in a frame was made of."""
    kept = [frame.f_locals.get(name) for name in frame.f_code.co_freevars]
    paths = [(_public_path(f.__module__ or ""), f.__name__) for f in kept if isinstance(f, FunctionType)]
    return [".".join([*path, name]) for path, name in paths if path[:1] == ["scipy"]]


def _name_and_arguments(frame: FrameType) -> tuple[str, bool]:
    """The public name of the function that runs in a frame, and whether a traced value is among its arguments."""
    names, rest, keywords, values = inspect.getargvalues(frame)
    owner: Any = values.get("self")
    module = frame.f_globals["__name__"]
    path = _public_path(module)
    if owner is not None:
        path.append(_name_of_owner(owner, sys.modules.get(".".join(path))))
    # What Cython compiled is named with its module.
    function = frame.f_code.co_name.removeprefix(f"{module}.").removesuffix("__init__").strip(".")
    if function:
        path.append(function)
    given = [values.get(name) for name in (*names, rest, keywords) if name is not None]
    return ".".join(path), any(has_tracer(list(x.values()) if isinstance(x, dict) else x) for x in given)


def _name_of_owner(owner: Any, module: ModuleType | None) -> str:
    """The public name of an object of SciPy whose method runs: distributions are instances of hidden classes."""
    # A frozen distribution has it as an attribute.
    owner = getattr(owner, "dist", owner)
    name = getattr(owner, "name", None) or type(owner).__name__
    shorter = (name.removesuffix(end) for end in ("", "_gen", "_frozen"))
    return next((found for found in shorter if hasattr(module, found)), name)


def _mirror_of(name: str) -> str | None:
    """What `ftrans.scipy` has in place of a function, or of the class whose method is named; None if it has nothing."""
    name = name.removesuffix(".__call__")
    if _has_traced_form(name):
        return f"ftrans.{name}"
    package, _, owner = name.rpartition(".")[0].rpartition(".")
    is_method = isinstance(getattr(sys.modules.get(package), owner, None), type)
    return f"ftrans.{package}.{owner}" if is_method and _has_traced_form(f"{package}.{owner}") else None


def _has_traced_form(name: str) -> bool:
    """Whether `ftrans.scipy` has something else than SciPy's own under a name."""
    return _is_public(f"ftrans.{name}") and _looked_up(f"ftrans.{name}") is not _looked_up(name)


def _is_public(name: str) -> bool:
    """Whether there is a function of this full name in SciPy or in `ftrans.scipy`."""
    return _looked_up(name) is not None


def _looked_up(name: str) -> Any:
    """What has a full name in SciPy or in `ftrans.scipy`; None if there is nothing."""
    parts = name.split(".")
    count = parts.index("scipy") + 2
    try:
        found: Any = importlib.import_module(".".join(parts[:count]))
        for part in parts[count:]:
            found = getattr(found, part)
    except (ImportError, AttributeError, NotImplementedError):
        return None
    return found
