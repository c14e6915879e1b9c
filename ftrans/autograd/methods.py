"""Operators and methods of tensors: Python's operators, the methods of a NumPy array, and names of torch."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import numpy as np

from ..api.call import call_on_recorded
from ..base.foreign import assigns_element, without_name_of_method
from ..base.narrow_products import product_dtype
from ..base.source import at_line, user_line
from ..base.tracebacks import short_tracebacks
from ..base.type_questions import is_plain
from ..core.program import Program
from ..core.trace import Tracer
from ..numpy.array_api import array_namespace, device, to_device
from ..numpy.indexing import require_kept
from ..numpy.methods import BINARY, COMPARISONS, UNARY, name_methods
from ..numpy.promotion import is_number
from ..numpy.torch_names import advise
from .backward import backward as go_back
from .changes import call, change, settle
from .frequent import recorded, recorded_pair
from .indexing import Flat, getitem, set_flat, setitem
from .operations import PLACE, Static, node_name
from .recording import PRODUCTS, apply, apply_program
from .tensor import INTERNAL, Tensor
from .torch_methods import METHODS
from .torch_methods.pointwise import OWN, UFUNCS
from .torch_methods.shared import RULES, shared, size_or_shape
from .traced_methods import changing_methods
from .tracing import program_of

_METHODS = (
    "sum", "prod", "mean", "std", "var", "any", "all", "max", "min", "argmax", "argmin", "cumsum", "cumprod", "clip",
    "round", "conj", "conjugate", "repeat", "take", "squeeze", "swapaxes", "diagonal", "trace", "dot", "argsort",
    "argpartition", "searchsorted", "nonzero", "ravel", "choose", "compress", "reshape", "transpose", "flatten",
    "astype",
)  # fmt: skip
_IN_PLACE_METHODS = ("fill", "sort", "put")
_ATTRIBUTES = ("T", "mT", "real", "imag")


def _elementwise(ufunc: np.ufunc) -> Callable[..., Any]:
    name, is_product = node_name(ufunc.__name__), ufunc in PRODUCTS

    def method(x: Any, *others: Any, **options: Any) -> Any:
        if not options and not (is_product and product_dtype() is not None):
            known = recorded_pair(ufunc, x, others[0]) if len(others) == 1 else recorded(ufunc, x)
            if known is not None:
                return known
        operands = (x, *others)
        for y in operands:
            if type(y) not in _USUAL_OPERANDS and not _is_operand(y):
                return NotImplemented
        return call(ufunc, operands, options, name) if options else apply(ufunc, operands, {}, name)

    method.__name__ = ufunc.__name__
    method.__doc__ = f"`numpy.{ufunc.__name__}`."
    return method


def _named_elementwise(ufunc: np.ufunc) -> Callable[..., Any]:
    """A ufunc as a method with a name: as the operator, but there is no other operand to ask where it gives up."""
    operator = _elementwise(ufunc)

    def method(self: Any, *others: Any, **options: Any) -> Any:
        result = operator(self, *others, **options)
        return ufunc(self, *others, **options) if result is NotImplemented else result

    method.__doc__ = operator.__doc__
    return method


def _reflected(call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: call(other, self)


def _power(self: Any, other: Any) -> Any:
    """`self ** other`, for which NumPy has shorter ways than `numpy.power`."""
    if not (_is_operand(self) and _is_operand(other)):
        return NotImplemented
    return apply(operator.pow, (self, other), {}, "Pow")


def _in_place(ufunc: np.ufunc) -> Callable[..., Any]:
    """An in-place operator."""
    name = node_name(ufunc.__name__)

    def assign(self: Tensor, *others: Any) -> Tensor:
        change(ufunc, self, (PLACE, *others), {"out": PLACE}, name)
        return self

    assign.__name__ = assign.__qualname__ = f"{ufunc.__name__}_"
    assign.__doc__ = f"`numpy.{ufunc.__name__}` in place."
    return assign


# Ufuncs whose vectorised loops forget what was combined before, in NumPy 2.4 on CPUs with AVX-512.
_FORGETFUL = (np.power, np.arctan2)


def _reduced_by_program(function: Callable[..., Any], inputs: Any, out: Any = (None,), **options: Any) -> Any:
    """A reduction that runs as a program, because NumPy's own may be wrong."""
    result = call_on_recorded(function, inputs, options)
    (target,) = out if isinstance(out, tuple) else (out,)
    if target is None:
        return result
    np.copyto(target, result, casting="same_kind")
    return target


def _array_ufunc(self: Tensor, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """`__array_ufunc__`: a NumPy ufunc was called with a tensor among its operands."""
    if any(type(x) is Tracer for x in inputs):
        return NotImplemented
    if method == "__call__":
        return call(ufunc, inputs, kwargs, node_name(ufunc.__name__))
    name = f"{node_name(ufunc.__name__)}{method.capitalize()}"
    function = getattr(ufunc, method)
    if ufunc in _FORGETFUL and method in ("reduce", "reduceat"):
        return _reduced_by_program(function, inputs, **kwargs)
    if method == "at":
        return change(function, inputs[0], (PLACE, *inputs[1:]), kwargs, name)
    return call(function, inputs, kwargs, name)


def _array_function(self: Tensor, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
    """`__array_function__`: a NumPy function was called with a tensor among its arguments."""
    if any(issubclass(t, Tracer) for t in types):
        return NotImplemented
    return call(function, args, kwargs, node_name(function.__name__))


class _Method(Static):
    """A method of arrays, by its name, as a function."""

    __slots__ = ("__name__",)

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return getattr(x, self.__name__)(*args, **kwargs)
        except TypeError as error:
            said = without_name_of_method(self.__name__, str(error))
            if said is None:
                raise
            raise TypeError(f"{self.__name__}() {said}{at_line(user_line())}") from None


class _Setting(_Method):
    """Assignment to an attribute of arrays, by its name, as a function."""

    __slots__ = ()

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        setattr(x, self.__name__, *args)


class _Attribute(_Method):
    """An attribute of arrays, by its name, as a function."""

    __slots__ = ()

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(x, self.__name__)


_USUAL_OPERANDS = frozenset((Tensor, np.ndarray, float, int))


def _is_operand(x: Any) -> bool:
    return is_plain(x, Tensor | np.ndarray | list | tuple) or is_number(x)


def _method(name: str) -> Callable[..., Any]:
    function, node = _Method(name), node_name(name)

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return call(function, (self, *args), kwargs, node)

    method.__doc__ = f"`numpy.ndarray.{name}`."
    return method


def _changing_method(name: str) -> Callable[..., Any]:
    function, node = _Method(name), node_name(name)

    def method(self: Tensor, *args: Any, **kwargs: Any) -> None:
        change(function, self, (PLACE, *args), kwargs, node)

    method.__doc__ = f"`numpy.ndarray.{name}`, in place."
    return method


def _changing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that changes its first argument as a method."""
    node = node_name(name)

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        change(function, self, (PLACE, *args), kwargs, node)
        return self

    method.__doc__ = function.__doc__
    return method


def _attribute(name: str) -> property:
    function, node = _Attribute(name), node_name(name)
    setting = _Setting(name)

    def assign(self: Tensor, value: Any) -> None:
        change(setting, self, (PLACE, value), {}, "IndexPut")

    return property(
        lambda self: apply(function, (self,), {}, node),
        assign if name in ("real", "imag") else None,
        doc=f"`numpy.ndarray.{name}`.",
    )


# Python's numbers and containers


def _only(self: Tensor, what: str, frame: FrameType | None = None) -> Any:
    if frame is not None and self.requires_grad and assigns_element(frame):
        raise RuntimeError(
            f"a tensor that requires a gradient ({self.array_type}) would lose it as an element of a NumPy array; make "
            "the array a tensor (ftrans.autograd.zeros), or write float(x) or x.detach() if that is meant"
            + at_line(user_line())
        )
    if self.array_type.size != 1:
        raise ValueError(
            f"only a tensor of one element has {what}, not {self.array_type}; use .any(), .all() or .tolist()"
            + at_line(user_line())
        )
    return self.item()


def _len(self: Tensor) -> int:
    if not self.ndim:
        raise TypeError(f"len() of a tensor without axes{at_line(user_line())}")
    return self.shape[0]


def _iter(self: Tensor) -> Iterator[Any]:
    if not self.ndim:
        raise TypeError(f"iteration over a tensor without axes{at_line(user_line())}")
    return (getitem(self, i) for i in range(self.shape[0]))


def _repr(self: Tensor) -> str:
    text = np.array2string(np.asarray(self.array), separator=", ", prefix="tensor(")
    if self.dtype not in (np.float64, np.int64, np.bool_, np.complex128):
        text += f", dtype={self.dtype}"
    if self.requires_grad:
        text += f", grad_fn={self.node!r}" if self.node is not None else ", requires_grad=True"
    return f"tensor({text})"


def _format(self: Tensor, spec: str) -> str:
    is_number = self.array_type.size == 1 and (spec or not self.ndim)
    return format(self.item(), spec) if is_number else repr(self)


_COPYING = _Method("copy")


def _copy(self: Tensor) -> Any:
    """A copy in memory of its own, through which gradients flow."""
    return apply(_COPYING, (self,), {}, "Clone")


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if self.node is not None and self.requires_grad:
        raise RuntimeError(
            "only a leaf can be copied by copy.deepcopy; write x.clone() or x.detach().clone()" + at_line(user_line())
        )
    found = memo[id(self)] = _unpickled(self.array.copy(), bool(self.asked))
    if self.grad is not None:
        found.grad = _deepcopy(self.grad, memo)
    return found


def _reduce(self: Tensor) -> Any:
    if self.node is not None and self.requires_grad:
        raise RuntimeError(f"only a leaf can be pickled; write x.detach(){at_line(user_line())}")
    return _unpickled, (np.asarray(self.array), bool(self.asked))


def _unpickled(array: Any, requires_grad: bool) -> Tensor:
    found = Tensor.of(array)
    return found.requires_grad_() if requires_grad else found


@short_tracebacks
def backward(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Compute the gradients of this tensor with respect to the leaves of its graph, and accumulate them in `grad`.

    Args:
        gradient: the gradient of the objective with respect to this tensor, of the same shape; may be left out for a
            tensor of one element.
        retain_graph: whether to keep the graph for another backward pass; by default only if `create_graph`.
        create_graph: whether to record the backward pass, so that the gradients can be differentiated.
        inputs: the tensors whose `grad` to compute; all leaves by default.

    Raises:
        RuntimeError: as `ftrans.autograd.backward`.

    Example:
        >>> import ftrans as ft
        >>> x = ft.autograd.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).backward([1.0, 10.0])
        >>> x.grad
        tensor([ 2., 40.])
    """
    go_back([self], None if gradient is None else [gradient], retain_graph, create_graph, inputs)


def apply_function(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`Eager.apply_function`."""
    return call(function, args, kwargs, node_name(function.__name__))


def _program(self: Tensor) -> tuple[Program, Sequence[int]]:
    """The graph as a program, and which of its inputs are leaves, for `ftrans.debug.draw`."""
    program, values = program_of([self])
    return program, [i for i, x in enumerate(values) if isinstance(x, Tensor) and x.requires_grad]


# Names known from elsewhere


def _one_operation(name: str) -> Callable[[Tensor], Any]:
    """A method of torch as one operation of the graph."""
    function, node = METHODS[name], node_name(name)

    def method(self: Tensor) -> Any:
        known = recorded(function, self)
        return apply(function, (self,), {}, node) if known is None else known

    method.__doc__ = function.__doc__
    return method


def _copied(self: Tensor, source: Any) -> Tensor:
    """Copy the values of another tensor or array into this one, converted to its dtype."""
    require_kept(source, self.dtype)
    change(operator.setitem, self, (PLACE, Ellipsis, source), {}, "Copy")
    return self


def _no_view(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    raise TypeError(
        f"a tensor has no bytes that could be read as another type; convert it by .astype{at_line(user_line())}"
    )


def install() -> None:
    """Give `Tensor` its operators and methods."""
    divided = _elementwise(np.divmod)
    methods: dict[str, Any] = {
        "__array_namespace__": array_namespace,
        "__array_ufunc__": _array_ufunc,
        "__array_function__": _array_function,
        "__array_priority__": 50.0,
        "__bool__": lambda self: bool(_only(self, "a truth value")),
        "__int__": lambda self: int(_only(self, "an integer")),
        "__index__": lambda self: operator.index(_only(self, "an index")),
        "__float__": lambda self: float(_only(self, "a value as a float", sys._getframe(1))),
        "__complex__": lambda self: complex(_only(self, "a value as a complex number", sys._getframe(1))),
        "__len__": _len,
        "__iter__": _iter,
        "__contains__": lambda self, value: bool((self == value).any()),
        "__hash__": object.__hash__,
        "__repr__": _repr,
        "__format__": _format,
        "__getitem__": getitem,
        "__setitem__": setitem,
        "__copy__": _copy,
        "__deepcopy__": _deepcopy,
        "__reduce__": _reduce,
        "__round__": lambda self, digits=None: self.round(digits) if digits is not None else self.round().long(),
        "__ftrans_program__": _program,
        "apply_program": staticmethod(apply_program),
        "apply_function": staticmethod(apply_function),
        "_settle": settle,
        "__dlpack__": lambda self, **options: self.numpy().__dlpack__(**options),
        "__dlpack_device__": lambda self: self.numpy().__dlpack_device__(),
        "__divmod__": divided,
        "__rdivmod__": _reflected(divided),
        "itemsize": property(lambda self: self.dtype.itemsize, doc="Bytes of one element."),
        "nbytes": property(lambda self: self.array_type.nbytes, doc="Bytes of all elements."),
        "flat": property(Flat, set_flat, doc="`numpy.ndarray.flat`."),
        "device": property(device, doc='Where the tensor is: "cpu".'),
        "to_device": to_device,
    }
    for name, ufunc in BINARY.items():
        methods[f"__{name}__"] = _power if ufunc is np.power else _elementwise(ufunc)
        methods[f"__r{name}__"] = _reflected(methods[f"__{name}__"])
        methods[f"__i{name}__"] = _in_place(ufunc)
    methods |= {f"__{name}__": _elementwise(ufunc) for name, ufunc in (COMPARISONS | UNARY).items()}
    methods |= _named_methods()
    methods |= {name: _attribute(name) for name in _ATTRIBUTES}
    for name, method in methods.items():
        setattr(Tensor, name, method)
    name_methods(Tensor, methods)
    advise(Tensor, lambda x: f"a tensor ({x.array_type})", INTERNAL)


def _named_methods() -> dict[str, Any]:
    """The methods of NumPy and torch that compute."""
    own = {name for name in vars(Tensor) if not name.startswith("__")}
    methods: dict[str, Any] = {name: method for name, method in METHODS.items() if name not in own}
    changing = {name: _changing(name, method) for name, method in changing_methods().items()}
    for name, ufunc in UFUNCS.items():
        if name in OWN and name not in RULES:
            continue
        methods[name] = shared(name, _named_elementwise(ufunc))
        if any(t.endswith("d->d") for t in ufunc.types):
            changing[f"{name}_"] = shared(name, _in_place(ufunc), changing[f"{name}_"])
    methods |= changing
    methods |= {name: shared(name, _method(name)) for name in _METHODS}
    methods |= {name: shared(name, _changing_method(name)) for name in _IN_PLACE_METHODS}
    methods |= {name: _one_operation(name) for name in ("relu", "sigmoid")}
    return methods | {
        "view": shared("view", _no_view),
        "backward": backward,
        "clone": _copy,
        "copy": _copy,
        "copy_": _copied,
        "size": property(size_or_shape, doc="Number of elements; called as a method, the shape."),
    }
