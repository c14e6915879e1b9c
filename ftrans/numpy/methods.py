"""What a tracer can do by itself: Python's operators and the methods of a NumPy array, installed on `Tracer`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from ..base.foreign import is_within_vectorize, leaves_to_other_operand, requires_properties, shuffles
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..core.trace import Tracer
from ..core.witness import ConcretizationError, concretize, constant_of, refuse
from .array_api import array_namespace, device, no_memory, to_device
from .attributes import MissingAttribute
from .delivery import assign_cast, deliver
from .dispatch import TABLE
from .indexing import getitem, setitem
from .layouts import blank, layout
from .promotion import asarray, cast, same_value
from .protocols import array_function, array_ufunc
from .selection import Selection
from .texts import formatted, representation, text
from .views import Flat, assignable, converted, in_order, is_scalar, lent_element, view_of

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


# Python's numbers


def _to_bool(self: Tracer) -> bool:
    if self.size != 1:
        raise ValueError(
            f"the truth value of a traced array with {self.size} elements is ambiguous; use .any() or .all()"
            + at_line(user_line())
        )
    nonzero = self if self.dtype.kind == "b" else self != 0
    return bool(concretize(nonzero, "a Python branch on"))


def _to_index(self: Tracer) -> int:
    if self.dtype.kind not in "biu" and not self.ndim:
        error = TypeError(
            f"a traced value of type {self.type} is no integer, so it cannot be an index or a length; write int(x), or "
            f"x.astype(int) to stay traced{at_line(user_line())}"
        )
        raise refuse(error)
    if self.dtype.kind not in "iu" or self.ndim:
        instead = "compress(mask, table, axis=0)" if self.dtype.kind == "b" else "take(table, i, axis=0)"
        error = TypeError(
            f"only a traced integer scalar can be an index of a plain NumPy array, not {self.type}; write "
            f"ftrans.numpy.{instead}{at_line(user_line())}"
        )
        raise refuse(error)
    try:
        return int(concretize(self, "a Python integer from"))
    except ConcretizationError as error:
        error.add_note("  To index a plain NumPy array by a traced integer, write ftrans.numpy.take(table, i, axis=0).")
        raise


def _to_int(self: Tracer) -> int:
    if self.size != 1:
        raise TypeError(f"only a traced array of one element becomes an int, not {self.type}{at_line(user_line())}")
    whole = self if self.dtype.kind in "iub" else cast(TABLE[np.trunc](self), np.dtype(np.int64))
    return int(concretize(whole, "a Python integer from").item())


def _to_float(self: Tracer, target: str = "float") -> float:
    known = constant_of(self)
    if known is not None:
        return float(known) if target == "float" else complex(known)  # type: ignore[return-value]
    error = TypeError(
        f"{target}() of a traced value ({self.type}) would cut it off from its derivative. Keep it as it is; for "
        "functions of the math module take those of numpy (np.sin instead of math.sin), for np.asarray(x, dtype=float) "
        "write x.astype(float), to fill an array with traced values start from np.zeros_like(x) or "
        "ftrans.numpy.zeros(shape), for a list of traced values write ftrans.numpy.array([...]), and for np.arange(n) "
        "ftrans.numpy.arange(n). For what needs the number itself, such as struct.pack or array.array, "
        "return it from the traced function and use the result, or hand it over by ftrans.tap or ftrans.black_box"
        + at_line(user_line())
    )
    if is_within_vectorize(sys._getframe(1)):
        error.add_note("  np.vectorize with otypes= makes numbers of the results; write ftrans.numpy.vectorize")
    raise refuse(error)


def _to_complex(self: Tracer) -> complex:
    return _to_float(self, "complex")


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
        _to_float(self)
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
    if not self.shape:
        array = np.empty((), object)
        array[()] = same_value(self) if copy else lent_element(asarray(self), self)
        array.flags.writeable = copy is True
        return array
    # In the order of NumPy's array, np.asfortranarray and its like copy if they copy there, and np.array keeps it.
    strides = layout(self)
    array = np.empty(self.shape, object) if strides is None else np.empty_like(blank(self.type, strides), object)
    for index in np.ndindex(self.shape):
        element = getitem(self, index)
        array[index] = element if copy else lent_element(element, self)
    # Here NumPy's own arrays stay what they are, so that whoever changes the result changes the array.
    array.flags.writeable = copy is True
    return array


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


def _item(self: Tracer, *index: Any) -> Any:
    """The value as a Python number, for integers and booleans."""
    if len(index) == 1 and isinstance(index[0], tuple):
        index = index[0]
    if not index and self.size != 1:
        raise ValueError(
            f"can only convert an array of size 1 to a Python number, not {self.type}{at_line(user_line())}"
        )
    element = getitem(self, index) if len(index) > 1 else getitem(view_of(self, Flat()), index[0] if index else 0)
    if element.dtype.kind not in "biu":
        return _to_float(element, "complex" if element.dtype.kind == "c" else "float")
    return concretize(element, "a Python integer from").item()


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


def _tolist(self: Tracer) -> Any:
    """The elements as nested lists of 0-d values."""
    return [_tolist(x) for x in _iter(self)] if self.ndim else same_value(self)


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
    if type is not None or (dtype is not None and np.dtype(dtype) != self.dtype):
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
        "__array_priority__": 100.0,
        "__hash__": None,
        "__getattr__": _missing_attribute,
        "__bool__": _to_bool,
        "__index__": _to_index,
        "__int__": _to_int,
        "__float__": _to_float,
        "__complex__": _to_complex,
        "__repr__": representation,
        "__str__": text,
        "__format__": formatted,
        "__len__": _len,
        "__iter__": _iter,
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
        "item": _item,
        "partition": _partition,
        "reshape": _reshape,
        "sort": _sort,
        "to_device": to_device,
        "tolist": _tolist,
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
        if name.startswith("__") and name not in vars(Selection) and callable(method):
            setattr(Selection, name, _of_taken(name))
    name_methods(Tracer, methods)
    for name in ("add", "sub", "mul", "truediv"):
        setattr(Selection, f"__i{name}__", _in_place_on_selection(BINARY[name]))
