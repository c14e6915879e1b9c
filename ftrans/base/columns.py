"""Columns: what a `pandas.Series` of traced values holds, by pandas' protocol for arrays of other libraries.

pandas aligns, selects and names; a column computes, by one operation of NumPy on the traced array.  Comparisons, and
questions which values are missing, are answered by values, as Python branches are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .source import at_line, user_line

_REDUCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (np.nansum, np.sum),
    "prod": (np.nanprod, np.prod),
    "mean": (np.nanmean, np.mean),
    "median": (np.nanmedian, np.median),
    "std": (np.nanstd, np.std),
    "var": (np.nanvar, np.var),
    "min": (np.nanmin, np.min),
    "max": (np.nanmax, np.max),
}


class Column(NDArrayOperatorsMixin):
    """An array of traced values along one axis; the class that pandas knows adds its methods to these.

    Attributes:
        values: the traced array.
    """

    def __init__(self, values: Any) -> None:
        self.values = values

    @property
    def dtype(self) -> Any:
        return _classes()[1]()

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, int | np.integer):
            return self.values[int(item)]
        return type(self)(self.values[_pandas().api.indexers.check_array_indexer(self, item)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.values[key] = value.values if isinstance(value, Column) else value

    @classmethod
    def _from_sequence(cls, scalars: Sequence[Any], *, dtype: Any = None, copy: bool = False) -> Column:
        return cls(np.stack(list(scalars)))

    @classmethod
    def _concat_same_type(cls, to_concat: Sequence[Column]) -> Column:
        return cls(np.concatenate([x.values for x in to_concat]))

    def isna(self) -> Any:
        return _seen(np.isnan(self.values))

    def take(self, indices: Any, *, allow_fill: bool = False, fill_value: Any = None) -> Column:
        places = np.asarray(indices)
        if not allow_fill:
            return type(self)(self.values[places])
        taken = self.values[np.where(places < 0, 0, places)]
        return type(self)(np.where(places < 0, np.nan, taken) if np.any(places < 0) else taken)

    def copy(self) -> Column:
        return type(self)(self.values.copy())

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        if dtype == self.dtype or dtype is object:
            return self.copy() if copy else self
        return type(self)(self.values.astype(dtype))

    def to_numpy(self, dtype: Any = None, copy: bool = False, na_value: Any = None) -> Any:
        return self.values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.values, dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        pandas = _pandas()
        if any(isinstance(x, pandas.Series | pandas.DataFrame | pandas.Index) for x in inputs):
            return NotImplemented
        found = getattr(ufunc, method)(*map(_values_of, inputs), **kwargs)
        if np.ndim(found) != 1:
            return found
        # pandas selects by masks that it looks at.
        return _seen(found) if found.dtype == bool else type(self)(found)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*map(_values_of, args), **{name: _values_of(x) for name, x in kwargs.items()})

    def _reduce(self, name: str, *, skipna: bool = True, keepdims: bool = False, **kwargs: Any) -> Any:
        if name not in _REDUCTIONS or kwargs.get("min_count", 0) > 0:
            raise TypeError(
                f"the method {name} of a Series of traced values is not known; take the function of NumPy or "
                f"ftrans.scipy.stats on its numbers, x.to_numpy(){at_line(user_line())}"
            )
        options = {"ddof": kwargs["ddof"]} if "ddof" in kwargs and name in ("std", "var") else {}
        found = _REDUCTIONS[name][0 if skipna else 1](self.values, **options)
        return type(self)(found.reshape(1)) if keepdims else found

    def _accumulate(self, name: str, *, skipna: bool = True, **kwargs: Any) -> Any:
        if name not in ("cumsum", "cumprod"):
            raise TypeError(
                f"the method {name} of a Series of traced values is not known; take the numbers by .to_numpy()"
                + at_line(user_line())
            )
        return type(self)(getattr(np, name)(self.values))


def _seen(mask: Any) -> Any:
    """The values of a traced mask: Python looks at them, as at the condition of a branch."""
    return np.array([bool(x) for x in mask], bool) if bool(np.any(mask)) else np.zeros(len(mask), bool)


def _values_of(x: Any) -> Any:
    if isinstance(x, Column):
        return x.values
    return [_values_of(y) for y in x] if isinstance(x, list | tuple) else x


def _pandas() -> Any:
    return sys.modules["pandas"]


@lru_cache(maxsize=1)
def _classes() -> tuple[Any, Any]:
    """The classes of columns and of their dtype that pandas knows."""
    extensions = _pandas().api.extensions
    names: dict[str, Any] = {"name": "traced", "type": float, "kind": "f", "na_value": np.nan, "_is_numeric": True}
    names["construct_array_type"] = classmethod(lambda cls: column)
    dtype = type("TracedDtype", (extensions.ExtensionDtype,), names)
    column = type("TracedColumn", (Column, extensions.ExtensionArray), {})
    return column, dtype


def column(values: Any) -> Any:
    """A column of a traced array with one axis."""
    return _classes()[0](values)


def is_labelled(x: Any) -> bool:
    """Whether `x` is a `pandas.Series` or a `pandas.DataFrame`."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(x, pandas.Series | pandas.DataFrame)


def on_labelled(function: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """A ufunc of traced values and labelled ones: what pandas makes of it with columns for the traced values."""
    frame = next((x for x in operands if isinstance(x, _pandas().DataFrame)), None)
    if frame is None:
        length = next(len(x) for x in operands if is_labelled(x))
        return function(*[_as_column(x, length) for x in operands])
    if not all(x is frame or _meets(x, frame) for x in operands):
        raise ValueError(
            f"a DataFrame of shape {frame.shape} meets a traced value that does not fit, or a Series; take its columns "
            f"one by one, or their numbers by .to_numpy(){at_line(user_line())}"
        )
    parts = [[_part(x, frame, j) for x in operands] for j in range(frame.shape[1])]
    found = [function(*[_as_column(x, len(frame)) for x in row]) for row in parts]
    return _pandas().concat(found, axis=1)


def numbers_of(x: Any) -> Any:
    """A Series with the numbers of one that may mark values as missing, which are then not a number."""
    is_number = getattr(x.dtype, "kind", "O") in "fiu" and not isinstance(x.dtype, np.dtype)
    return x.astype(float) if is_number and not isinstance(x.array, Column) else x


def _as_column(x: Any, length: int) -> Any:
    if is_labelled(x):
        return numbers_of(x)
    if not hasattr(x, "atom"):
        return x
    if np.ndim(x) > 1:
        raise ValueError(
            f"a Series meets a traced value of type {x.type}, which is no column; take the numbers of the Series by "
            f".to_numpy(){at_line(user_line())}"
        )
    return column(np.broadcast_to(x, (length,)) if np.ndim(x) == 0 else x)


def _meets(x: Any, frame: Any) -> bool:
    return hasattr(x, "atom") and np.shape(x) in ((), frame.shape[1:], frame.shape)


def _part(x: Any, frame: Any, j: int) -> Any:
    """What belongs to a column of the frame: NumPy's rules say how arrays meet it."""
    if x is frame:
        return frame.iloc[:, j]
    return x if np.ndim(x) == 0 else x[j] if np.ndim(x) == 1 else x[:, j]
