"""Lookalikes: objects with a shape and a dtype whose arithmetic is not that of NumPy's arrays.

A program knows arrays only.  It would multiply the elements of a `numpy.matrix`, which multiplies as matrices do, and
forget a mask, a unit or the labels of rows.  So such objects are refused, by their class.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .foreign_arrays import ForeignArrays, is_class_of_tensors, is_foreign, is_foreign_class
from .forward_code import ForwardArray
from .source import at_line, user_line

_OPERATORS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift",
)  # fmt: skip
# What a subclass of NumPy's array defines if its arithmetic is not that of arrays.
_ARITHMETIC = (
    "__array_ufunc__", "__array_function__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__neg__",
    "__abs__", "__invert__", *(f"__{prefix}{name}__" for name in _OPERATORS for prefix in ("", "r", "i")),
)  # fmt: skip


class Lookalike(NamedTuple):
    """Why objects of a class are not arrays.

    Attributes:
        name: what they are, with an article.
        why: what about them a program cannot keep, as a verb phrase.
        instead: what to write.
    """

    name: str
    why: str
    instead: str

    def __str__(self) -> str:
        return f"{self.name} {self.why}; {self.instead}"


_MASKED = Lookalike(
    "a masked array (numpy.ma)",
    "would lose its mask",
    "pass x.filled(0.0) and the mask as two arrays, and write np.sum(x, where=~mask) or np.where(mask, 0.0, x)",
)
_MATRIX = Lookalike(
    "a numpy.matrix",
    "has products of matrices for * and **, and two axes whatever the index, unlike the array of its elements",
    "pass np.asarray(M), and write M @ x for a product; a sparse matrix gives an array by .toarray() in place of "
    ".todense()",
)
_QUANTITY = Lookalike(
    "a Quantity",
    "has a unit, which a program would lose",
    "write q.to_value(unit), and compute with the numbers",
)

_KEY = Lookalike(
    "a random key of JAX",
    "has no numbers that a program could compute with",
    "close over it in a function of ft.from_jax, or pass jax.random.key_data(key), of which jax.random.wrap_key_data "
    "makes a key there",
)

_TENSOR = Lookalike(
    "a tensor of torch",
    "belongs to torch, which would lose its gradient in a program",
    "pass it as an argument of ft.to_torch(f), or its array, x.detach().numpy()",
)


@lru_cache(maxsize=1000)
def lookalike(cls: Any) -> Lookalike | None:
    """Why objects of a class are not arrays though they have a shape and a dtype; None where they are arrays.

    Subclasses of NumPy's array are arrays, unless they have arithmetic of their own.
    """
    if issubclass(cls, np.ndarray):
        return _of_subclass(cls)
    if issubclass(cls, np.generic):
        return None
    if is_foreign_class(cls):
        return _TENSOR if is_class_of_tensors(cls) else _of_other_library(cls)
    if hasattr(cls, "to_numpy"):
        why = "has labels beside its numbers, which a program would lose"
        return Lookalike(f"a {cls.__name__}", why, "take the numbers of it by .to_numpy()")
    if hasattr(cls, "toarray"):
        why = "is sparse, and arrays in a program are not"
        return Lookalike(f"a {cls.__name__}", why, "pass A.toarray(), and write A @ x for a product")
    if hasattr(cls, "matvec"):
        why = "multiplies vectors, and has no elements"
        return Lookalike(f"a {cls.__name__}", why, "pass the matrix as an array, or a function that multiplies by it")
    return None


def refuse_lookalike(x: Any) -> None:
    """Raise if `x` looks like an array and means something else, before its numbers are taken for an array.

    Raises:
        TypeError: it is a matrix, a masked array, or of another class whose arithmetic is not that of arrays.
    """
    if type(x) is not np.ndarray and (hasattr(x, "dtype") or hasattr(x, "to_numpy")):
        cls: Any = type(x)
        found = _KEY if _is_key(x) else lookalike(cls)
        if found is not None:
            raise (ForeignArrays if is_foreign(x) else TypeError)(f"{found}{at_line(user_line())}")


def _is_key(x: Any) -> bool:
    dtype = getattr(x, "dtype", None)
    return not isinstance(dtype, np.dtype) and str(dtype).startswith("key<")


def _of_other_library(cls: type) -> Lookalike:
    why = f"is an array of {cls.__module__.partition('.')[0]}, which does not compute with traced values"
    instead = "pass it as an argument of ft.grad, ft.vmap or ft.jit, which take it, or np.from_dlpack(x)"
    return Lookalike(f"a {cls.__name__}", why, instead)


def _of_subclass(cls: Any) -> Lookalike | None:
    if issubclass(cls, np.ma.MaskedArray):
        return _MASKED
    if issubclass(cls, np.matrix):
        return _MATRIX
    if cls is ForwardArray:
        return None
    if hasattr(cls, "to_value"):
        return _QUANTITY
    if all(getattr(cls, name, None) is getattr(np.ndarray, name, None) for name in _ARITHMETIC):
        return None
    why = "has arithmetic of its own, which a program would lose"
    return Lookalike(f"an array of the class {cls.__name__}", why, "pass np.asarray(x)")
