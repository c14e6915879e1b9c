"""What a tracer can do by itself: Python's operators and the methods of a NumPy array, installed on `Tracer`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.source import at_line, user_line
from ..core.trace import Tracer
from ..ops import elementwise as e
from .dispatch import TABLE, array_function, array_ufunc


def _binary(ufunc: np.ufunc, primitive: Any = None) -> tuple[Any, Any]:
    """The operator of a ufunc and its reflected form.  Operands of one type take a short cut."""
    call = TABLE[ufunc]

    def operator(self: Tracer, other: Any) -> Any:
        if primitive is not None and other.__class__ is Tracer and not self.weak and not other.weak:
            type = self.atom.type
            if other.atom.type is type and type.dtype.kind == "f":
                return primitive(self, other)
        return call(self, other)

    def reflected(self: Tracer, other: Any) -> Any:
        return call(other, self)

    return operator, reflected


def _unary(ufunc: np.ufunc) -> Any:
    call = TABLE[ufunc]
    return lambda self: call(self)


_OPERATORS = {
    "add": (np.add, e.add),
    "sub": (np.subtract, e.sub),
    "mul": (np.multiply, e.mul),
    "truediv": (np.divide, e.div),
    "floordiv": (np.floor_divide, None),
    "mod": (np.remainder, None),
    "pow": (np.power, None),
    "and": (np.bitwise_and, None),
    "or": (np.bitwise_or, None),
    "xor": (np.bitwise_xor, None),
    "lshift": (np.left_shift, None),
    "rshift": (np.right_shift, None),
}
_COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def _to_bool(self: Tracer) -> bool:
    if self.size != 1:
        raise ValueError(
            f"the truth value of a traced array with {self.size} elements is ambiguous; use .any() or .all()"
            + at_line(user_line())
        )
    nonzero = self if self.dtype.kind == "b" else self != 0
    return bool(nonzero.builder.concretize(nonzero.reshape(()), "a branch on the value"))  # type: ignore[attr-defined]


def _to_index(self: Tracer) -> int:
    if self.dtype.kind not in "iu" or self.size != 1:
        raise TypeError(f"only a traced integer scalar can be an index, not {self.type}{at_line(user_line())}")
    return int(self.builder.concretize(self.reshape(()), "the integer value"))  # type: ignore[attr-defined]


def _to_int(self: Tracer) -> int:
    whole = self if self.dtype.kind in "iub" else TABLE[np.trunc](self).astype(np.int64)
    return int(whole.builder.concretize(whole.reshape(()), "the integer value"))


def _to_float(self: Tracer) -> float:
    raise TypeError(
        f"float() of a traced value ({self.type}) would cut it off from its derivative. Keep it as it is; for "
        "functions of the math module take those of numpy (np.sin instead of math.sin), for np.asarray(x, dtype=float) "
        "write x.astype(float), and to fill an array with traced values start from np.zeros_like(x) or "
        "ftrans.numpy.zeros(shape)" + at_line(user_line())
    )


def _repr(self: Tracer) -> str:
    value = self.builder.witness(self) if self.builder.is_open else None
    if value is None:
        return f"Traced({self.type})"
    text = np.array2string(np.asarray(value), separator=", ", prefix=f"Traced({self.type} = ")
    return f"Traced({self.type} = {text})"


def _len(self: Tracer) -> int:
    if self.ndim == 0:
        raise TypeError(f"len() of unsized object{at_line(user_line())}")
    return self.shape[0]


def _iter(self: Tracer) -> Any:
    if self.ndim == 0:
        raise TypeError(f"iteration over a 0-d traced value{at_line(user_line())}")
    return (self[i] for i in range(self.shape[0]))  # type: ignore[index]


def install() -> None:
    """Give `Tracer` its operators and methods."""
    methods: dict[str, Any] = {
        "__array_ufunc__": array_ufunc,
        "__array_function__": array_function,
        "__bool__": _to_bool,
        "__index__": _to_index,
        "__int__": _to_int,
        "__float__": _to_float,
        "__complex__": _to_float,
        "__repr__": _repr,
        "__len__": _len,
        "__iter__": _iter,
        "__neg__": _unary(np.negative),
        "__abs__": _unary(np.absolute),
        "__invert__": _unary(np.invert),
        "__pos__": lambda self: self,
        "__hash__": None,
    }
    for name, (ufunc, primitive) in _OPERATORS.items():
        methods[f"__{name}__"], methods[f"__r{name}__"] = _binary(ufunc, primitive)
    for name, ufunc in _COMPARISONS.items():
        methods[f"__{name}__"] = _binary(ufunc)[0]
    for name, method in methods.items():
        setattr(Tracer, name, method)
