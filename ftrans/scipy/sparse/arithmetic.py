"""Operators of sparse arrays that meet traced values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from ...base.source import at_line, user_line
from ...numpy.promotion import asarray, has_tracer
from .arrays import TracedSparse, made, made_like
from .entries import Entries, common_entries, dense, entries_of, product, sparse_times_sparse, sum_of


def is_sparse(x: Any) -> bool:
    """Whether `x` is a sparse array or matrix, of SciPy or with traced entries."""
    return isinstance(x, scipy.sparse.sparray | scipy.sparse.spmatrix)


def combined(ufunc: Callable[..., Any], x: Any, y: Any) -> Any:
    """The result of an operator one of whose operands is sparse, and one traced."""
    rule = _RULES.get(ufunc)
    return NotImplemented if rule is None else rule(x, y)


def _made_of_both(x: Any, y: Any, entries: Entries) -> Any:
    """A sparse array made of two: of their format, or in rows where they differ."""
    if x.format == y.format:
        return made_like(x, entries)
    return made("csr", isinstance(x, scipy.sparse.sparray), entries)


def _matmul(x: Any, y: Any) -> Any:
    if not is_sparse(x):
        x = asarray(x)
        turned = product(entries_of(y).T, x if x.ndim < 2 else x.T)
        return turned if x.ndim < 2 else turned.T
    if is_sparse(y):
        return _made_of_both(x, y, sparse_times_sparse(entries_of(x), entries_of(y)))
    return product(entries_of(x), y)


def _multiply(x: Any, y: Any) -> Any:
    if isinstance(x if is_sparse(x) else y, scipy.sparse.spmatrix) and np.ndim(x) and np.ndim(y):
        return _matmul(x, y)
    return multiply_elements(x, y)


def multiply_elements(x: Any, y: Any) -> Any:
    """The products of elements, where at least one operand is sparse."""
    if not is_sparse(x):
        x, y = y, x
    if is_sparse(y):
        a, b = common_entries(entries_of(x), entries_of(y))
        return _made_of_both(x, y, a.with_data(a.data * b.data))
    return _scaled(x, y, np.multiply)


def _scaled(x: Any, y: Any, ufunc: Callable[..., Any]) -> Any:
    """Each entry combined with the element of `y` at its place; `y` is broadcast."""
    a, y = entries_of(x), asarray(y) if has_tracer(y) else np.asarray(y)
    if y.ndim > 2 or np.broadcast_shapes(y.shape, a.shape) != a.shape:
        raise ValueError(
            f"a sparse array {a.shape} cannot be multiplied by elements {y.shape}; write A.toarray() for another shape"
            + at_line(user_line())
        )
    if y.ndim:
        y = np.broadcast_to(y, a.shape)[a.row, a.col]
    return made_like(x, a.with_data(ufunc(asarray(a.data), y)))


def _divide(x: Any, y: Any) -> Any:
    if not is_sparse(x) or is_sparse(y):
        raise TypeError(
            "with traced values a sparse array can be divided, and cannot divide; write A.toarray() for the divisor"
            + at_line(user_line())
        )
    return _scaled(x, y, np.divide)


def _power(x: Any, y: Any) -> Any:
    if not is_sparse(x) or np.ndim(y):
        return NotImplemented
    a = entries_of(x).summed()
    return made_like(x, a.with_data(asarray(a.data) ** y))


def _add(x: Any, y: Any) -> Any:
    return _total(x, y, np.add)


def _subtract(x: Any, y: Any) -> Any:
    return _total(x, y, np.subtract)


def _total(x: Any, y: Any, ufunc: Callable[..., Any]) -> Any:
    if is_sparse(x) and is_sparse(y):
        b = entries_of(y)
        return _made_of_both(x, y, sum_of(entries_of(x), b if ufunc is np.add else b.with_data(-b.data)))
    if not np.ndim(y if is_sparse(x) else x):
        raise NotImplementedError(
            "adding a number to a sparse array is not supported; write A.toarray() for the dense array"
            + at_line(user_line())
        )
    return ufunc(*(dense(entries_of(v)) if is_sparse(v) else v for v in (x, y)))


_RULES: dict[Any, Callable[[Any, Any], Any]] = {
    np.matmul: _matmul,
    np.multiply: _multiply,
    np.divide: _divide,
    np.power: _power,
    np.add: _add,
    np.subtract: _subtract,
}


def _operator(ufunc: Any, reflected: bool) -> Callable[[Any, Any], Any]:
    return lambda self, other: combined(ufunc, *((other, self) if reflected else (self, other)))


for _name, _ufunc in (
    ("matmul", np.matmul), ("mul", np.multiply), ("truediv", np.divide), ("add", np.add), ("sub", np.subtract),
):  # fmt: skip
    setattr(TracedSparse, f"__{_name}__", _operator(_ufunc, False))
    setattr(TracedSparse, f"__r{_name}__", _operator(_ufunc, True))
TracedSparse.multiply = multiply_elements
