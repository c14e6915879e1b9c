"""What a tracer can do by itself: Python's operators and the methods of a NumPy array, installed on `Tracer`."""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from ..base.foreign import leaves_to_other_operand, reads_attribute, requires_properties, shuffles
from ..base.lookalikes import lookalike
from ..base.source import at_line, user_line
from ..base.type_questions import MethodOfArrays, is_plain
from ..core.trace import Tracer
from ..core.witness import constant_of, refuse
from .array_api import array_namespace, device, no_memory, to_device
from .attributes import MissingAttribute
from .delivery import assign_cast, deliver
from .dispatch import TABLE
from .indexing import getitem, setitem
from .object_arrays import objects_of
from .promotion import asarray, cast, same_value
from .protocols import array_function, array_ufunc
from .selection import Selection
from .texts import formatted, representation, text
from .to_numbers import item, to_bool, to_complex, to_float, to_index, to_int, tolist
from .views import Flat, assignable, converted, in_order, is_scalar, view_of

# Python's operators, by the names of their methods without underscores.
BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "matmul": np.matmul,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}
COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
UNARY = {"neg": np.negative, "abs": np.absolute, "invert": np.invert, "pos": np.positive}


def ufuncs_by_name() -> dict[str, np.ufunc]:
    """NumPy's ufuncs of single elements that have a traced form, by every name that NumPy has for them."""
    return {name: x for name, x in vars(np).items() if isinstance(x, np.ufunc) and not x.signature and x in TABLE}


def _reflected(call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: call(other, self)


def _in_place(ufunc: np.ufunc) -> Callable[..., Any]:
    """An in-place operator.  NumPy's scalars are immutable, so a 0-d value that is no view becomes a new one."""
    call = TABLE[ufunc]

    def operator(self: Tracer, other: Any) -> Any:
        result = call(self, other)
        if result is NotImplemented or is_scalar(self):
            return result
        assign_cast(self, result, ufunc.__name__)
        return self

    return operator


def _of_taken(name: str) -> Callable[..., Any]:
    """A special method of a selection: that of the elements which are selected."""
    return lambda self, *args, **kwargs: getattr(self.read(), name)(*args, **kwargs)


def _in_place_on_selection(ufunc: np.ufunc) -> Callable[..., Any]:
    call = TABLE[ufunc]

    def operator(self: Selection, other: Any) -> Any:
        self.update(call, other, functools.partial(assign_cast, name=ufunc.__name__))
        return self

    return operator


# Conversions


def _to_array(self: Tracer, dtype: Any = None, copy: bool | None = None) -> Any:
    """What np.asarray and np.array make of a traced value: an array of Python objects, its elements.

    What depends on no argument of the trace is an array of numbers.  Nobody would see what is written to it.
    """
    known = constant_of(self)
    if known is not None:
        array = np.array(known, dtype)
        array.flags.writeable = copy is True
        return array
    if dtype is not None and np.dtype(dtype) != object:
        to_float(self, of_each=True)
    caller = sys._getframe(1)
    if caller.f_globals.get("__name__", "").startswith("scipy.sparse"):
        if leaves_to_other_operand(caller):
            return _as_object(self)
        raise refuse(
            TypeError(
                f"a sparse array of scipy.sparse cannot have traced elements ({self.type}): take the function of the "
                f"same name of ftrans.scipy.sparse{at_line(user_line())}"
            )
        )
    if requires_properties(caller):
        # It would copy what cannot be written to, and nobody would see what is written to the copy.
        error = f"np.require of a traced value ({self.type}) is ftrans.numpy.require{at_line(user_line())}"
        raise refuse(TypeError(error))
    return objects_of(self, copy is True)


def _as_object(self: Tracer) -> Any:
    """The traced value, whatever its shape, as one Python object."""
    array = np.empty((), object)
    array[()] = self
    return array


def _missing_attribute(self: Tracer, name: str) -> Any:
    raise MissingAttribute(self, name)


def _set_shape(self: Tracer, shape: Any) -> None:
    raise AttributeError(
        f"the shape of a traced value ({self.type}) cannot be changed in place; write y = y.reshape({shape})"
        + at_line(user_line())
    )


def _round(self: Tracer, ndigits: int | None = None) -> Any:
    """Rounded to a number of digits, or to an integer if none is given."""
    return _whole(np.round)(self) if ndigits is None else TABLE[np.round](self, ndigits)


def _whole(function: Callable[..., Any]) -> Callable[[Tracer], Tracer]:
    """What makes an integer of a number, for the functions of `math` and `round`; its derivative is zero."""

    def method(self: Tracer) -> Tracer:
        whole = cast(TABLE[function](self), np.dtype(np.int64))
        # NumPy makes a number of Python, which takes the dtype of an array that it meets.
        whole.weak = not self.ndim
        return whole

    return method


def _no_pickle(self: Tracer, protocol: Any) -> Any:
    raise TypeError(
        f"a traced value ({self.type}) cannot be pickled, or sent to another process: it stands for a value of the "
        "program that is being traced. Return it from the traced function, and pickle the result" + at_line(user_line())
    )


# Containers


def _len(self: Tracer) -> int:
    if self.ndim == 0:
        raise TypeError(f"len() of unsized object{at_line(user_line())}")
    return self.shape[0]


def _iter(self: Tracer) -> Iterator[Any]:
    if self.ndim == 0:
        raise TypeError(f"iteration over a 0-d traced value{at_line(user_line())}")
    return (getitem(self, i) for i in range(self.shape[0]))


def _contains(self: Tracer, value: Any) -> bool:
    return bool(np.any(self == value))


def _setitem(self: Tracer, index: Any, value: Any) -> None:
    if type(value) is Tracer and value.memory is not None and value.ndim:
        line = user_line()
        if line is not None and shuffles(line.expression):
            raise TypeError(
                "shuffle exchanges rows of a traced array, which are views that its next assignment changes; write "
                "x = x[rng.permutation(len(x))]" + at_line(line)
            )
    setitem(self, index, value)


def _fill(self: Tracer, value: Any) -> None:
    """Set every element to one number."""
    setitem(self, Ellipsis, value)


def _astype(
    self: Tracer, dtype: Any, order: str = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True
) -> Tracer:
    """A copy in another dtype."""
    dtype = np.dtype(dtype)
    if not np.can_cast(self.dtype, dtype, casting):
        raise TypeError(
            f"Cannot cast array data from {self.dtype!r} to {dtype!r} according to the rule '{casting}'"
            + at_line(user_line())
        )
    x = asarray(self)
    if not copy and dtype == x.dtype:
        return in_order(x, order, lambda base, dtype, order: np.asarray(base).astype(dtype, order, copy=False))
    return converted(x, dtype, True, order)


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose first argument is the array, as a method of it."""
    call = TABLE[function]

    def method(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        return call(self, *args, **kwargs)

    method.__name__ = function.__name__
    method.__doc__ = call.__doc__
    return method


# Methods of arrays whose arguments differ from those of NumPy's functions


def _reshape(self: Tracer, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
    """The same elements in another shape."""
    return TABLE[np.reshape](self, shape[0] if len(shape) == 1 else shape, order, copy=copy)


def _transpose(self: Tracer, *axes: Any) -> Any:
    """The axes in another order, reversed by default."""
    return TABLE[np.transpose](self, axes[0] if len(axes) == 1 else axes or None)


def _flatten(self: Tracer, order: str = "C") -> Any:
    """A copy of all elements along one axis."""
    return same_value(TABLE[np.ravel](self, order))


def _sort(self: Tracer, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
    """Sort in place."""
    setitem(self, Ellipsis, TABLE[np.sort](self, axis, kind, order, stable=stable))


def _partition(self: Tracer, kth: Any, axis: int = -1, kind: Any = "introselect", order: Any = None) -> None:
    """Put the `kth` element in its sorted place, in place; here all of them are."""
    setitem(self, Ellipsis, TABLE[np.partition](self, kth, axis, kind, order))


def _conj(self: Tracer, out: Any = None) -> Any:
    """The complex conjugate; the array itself if it is real."""
    result = TABLE[np.conjugate](self) if self.dtype.kind == "c" else self
    return deliver(result, out, "conjugate")


def _view(self: Tracer, dtype: Any = None, type: Any = None, *more: Any) -> Any:
    """The same elements as another array."""
    given = [x for x in (dtype, type, *more) if x is not None]
    sizes = given[0] if len(given) == 1 and isinstance(given[0], tuple | list) else given
    if sizes and all(is_plain(n, int | np.integer) for n in sizes):
        shape = ", ".join(str(int(n)) for n in sizes)
        raise TypeError(
            f"x.view of NumPy reads the bytes of x as another type; write x.reshape({shape}){at_line(user_line())}"
        )
    if more:
        raise TypeError(f"view() takes a dtype, not {len(given)} arguments{at_line(user_line())}")
    is_class = isinstance(dtype, builtins.type) and issubclass(dtype, np.ndarray)
    if dtype is np.ndarray or (type is np.ndarray and dtype is None):
        dtype = type = None
    elif type is not None or is_class or (dtype is not None and np.dtype(dtype) != self.dtype):
        known = constant_of(self)
        if known is not None:
            array = np.array(known)
            return array.view(dtype) if type is None else array.view(dtype or array.dtype, type)
        # NumPy's classes take a view of what they are made of.
        found = lookalike(dtype if is_class else type) if is_class or type is not None else None
        if found is not None:
            # Operators of units make something else of the error.
            raise refuse(TypeError(f"{found}{at_line(user_line())}"))
        raise TypeError(
            f"a traced value ({self.type}) has no bytes that could be read as another type; convert it by .astype"
            + at_line(user_line())
        )
    return same_value(self) if is_scalar(self) else getitem(self, Ellipsis)


def _copy(self: Tracer, order: str = "C") -> Tracer:
    """A copy: what is assigned to one is not seen by the other."""
    return converted(asarray(self), None, True, order)


_FUNCTIONS = (
    "sum", "prod", "mean", "std", "var", "any", "all", "max", "min", "argmax", "argmin", "cumsum", "cumprod", "clip",
    "round", "repeat", "take", "squeeze", "swapaxes", "diagonal", "trace", "dot", "argsort",
    "argpartition", "searchsorted", "nonzero", "ravel", "put", "choose",
)  # fmt: skip

_PROPERTIES: dict[str, Callable[[Tracer], Any]] = {
    "T": TABLE[np.transpose],
    "mT": TABLE[np.matrix_transpose],
    "real": TABLE[np.real],
    "imag": TABLE[np.imag],
    "flat": lambda self: view_of(self, Flat()),
    "device": device,
    "itemsize": lambda self: self.dtype.itemsize,
    "nbytes": lambda self: self.type.nbytes,
}


def _assignable(name: str) -> property:
    """A property that stands for elements of the array, to which one can assign."""
    read = _PROPERTIES[name]

    def write(self: Tracer, value: Any) -> None:
        target = read(assignable(self))
        setitem(target, Ellipsis, np.resize(asarray(value), target.shape) if name == "flat" else value)

    return property(read, write, doc=f"`numpy.ndarray.{name}`.")


def name_methods(owner: type, methods: dict[str, Any]) -> None:
    """Let methods that were installed on a class have the names that users call them by, which Python's errors say."""
    for name, method in methods.items():
        # Some have two names, of which the first one will do.
        if isinstance(method, FunctionType) and name[:2] != "__" and methods.get(method.__qualname__) is not method:
            method.__name__ = method.__qualname__ = name


def install() -> None:
    """Give `Tracer` its operators, methods and properties."""
    # NumPy looks for some ufuncs as methods of the elements of an object array.
    methods: dict[str, Any] = {name: _method(ufunc) for name, ufunc in ufuncs_by_name().items()}
    methods |= {
        "__array__": _to_array,
        "__array_namespace__": array_namespace,
        "__array_ufunc__": array_ufunc,
        "__array_function__": array_function,
        # pandas leaves ufuncs and operators to what is above its own data: 1000 for the former, 4000 for the latter.
        "__array_priority__": 2000.0,
        "__pandas_priority__": 5000,
        "__hash__": None,
        "__getattr__": _missing_attribute,
        "__dir__": lambda self: [name for name in dir(np.ndarray) if hasattr(Tracer, name)],
        "__bool__": to_bool,
        "__index__": to_index,
        "__int__": to_int,
        "__float__": to_float,
        "__complex__": to_complex,
        "__repr__": representation,
        "__str__": text,
        "__format__": formatted,
        "__len__": MethodOfArrays(_len, "len() of unsized object", lambda frame: True),
        "__iter__": MethodOfArrays(_iter, "a number is not iterable", lambda frame: reads_attribute(frame, "__iter__")),
        "__contains__": _contains,
        "__getitem__": getitem,
        "__setitem__": _setitem,
        "__dlpack__": no_memory,
        "__dlpack_device__": no_memory,
        "__divmod__": TABLE[np.divmod],
        "__rdivmod__": _reflected(TABLE[np.divmod]),
        "__round__": _round,
        "__floor__": _whole(np.floor),
        "__ceil__": _whole(np.ceil),
        "__trunc__": _whole(np.trunc),
        "__reduce_ex__": _no_pickle,
        "__copy__": lambda self: _copy(self, "K"),
        "__deepcopy__": lambda self, memo: _copy(self, "K"),
        "astype": _astype,
        "conj": _conj,
        "conjugate": _conj,
        "copy": _copy,
        "fill": _fill,
        "flatten": _flatten,
        "item": item,
        "partition": _partition,
        "reshape": _reshape,
        "sort": _sort,
        "to_device": to_device,
        "tolist": tolist,
        "transpose": _transpose,
        "view": _view,
    }
    methods |= {name: _method(getattr(np, name)) for name in _FUNCTIONS}
    methods["compress"] = lambda self, condition, axis=None, out=None: np.compress(condition, self, axis, out)
    for name, ufunc in BINARY.items():
        methods[f"__{name}__"] = TABLE[ufunc]
        methods[f"__r{name}__"] = _reflected(TABLE[ufunc])
        methods[f"__i{name}__"] = _in_place(ufunc)
    methods |= {f"__{name}__": TABLE[ufunc] for name, ufunc in (COMPARISONS | UNARY).items()}
    methods |= {name: property(read, doc=f"`numpy.ndarray.{name}`.") for name, read in _PROPERTIES.items()}
    methods |= {name: _assignable(name) for name in ("real", "imag", "flat")}
    methods["shape"] = vars(Tracer)["shape"].setter(_set_shape)
    for name, method in methods.items():
        setattr(Tracer, name, method)
        # Python looks up operators on the class, so `Selection.__getattr__` does not see them.
        if (
            name.startswith("__")
            and name not in vars(Selection)
            and (callable(method) or isinstance(method, MethodOfArrays))
        ):
            setattr(Selection, name, _of_taken(name))
    name_methods(Tracer, methods)
    for name in ("add", "sub", "mul", "truediv"):
        setattr(Selection, f"__i{name}__", _in_place_on_selection(BINARY[name]))
