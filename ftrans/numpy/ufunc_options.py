"""The options of NumPy's ufuncs on tracers: `out=`, `where=`, `dtype=` and `casting=`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.source import at_line, user_line
from ..core.trace import Tracer
from .delivery import deliver
from .promotion import asarray, cast, is_number, kind_of
from .ufunc_entry import dtypes_or_types

# A value that is harmless to a ufunc, for operands of which `where` leaves the result out.
_HARMLESS = {np.arccosh: 2, np.arcsin: 0, np.arccos: 0, np.arctanh: 0, np.log1p: 0}


def call_with_options(ufunc: np.ufunc, implementation: Callable[..., Any], xs: Sequence[Any], options: Any) -> Any:
    """A ufunc called with `out`, `where`, `dtype` or other options."""
    out, where, dtype = options.pop("out", None), options.pop("where", True), options.pop("dtype", None)
    is_cast = dtype is not None or "casting" in options
    casting = options.pop("casting", "same_kind")
    plain = (("order", "K"), ("order", "C"), ("subok", True), ("subok", False))
    unknown = {k: v for k, v in options.items() if (k, v) not in plain}
    taken = inspect.signature(implementation).parameters if unknown and ufunc.signature is not None else ()
    for name, value in unknown.items():
        if name in taken:
            continue
        raise TypeError(f"{ufunc.__name__} on traced values does not take {name}={value!r}{at_line(user_line())}")
    if is_cast:
        xs = _cast_for(ufunc, xs, None if dtype is None else np.dtype(dtype), casting)
    outs = out if type(out) is tuple else (out,) * (1 if out is None else ufunc.nout)
    if len(outs) > ufunc.nout:
        raise TypeError(
            f"{ufunc.__name__} takes {ufunc.nin} operands and {ufunc.nout} results, {len(outs)} arrays were given for "
            f"results{at_line(user_line())}"
        )
    outs = (*outs, *(None,) * (ufunc.nout - len(outs)))
    if where is not True:
        if any(o is None for o in outs):
            raise ValueError(
                f"np.{ufunc.__name__} with where= leaves the other elements undefined; give out=, for instance "
                f"out=np.zeros_like(x), or write np.where(condition, ..., ...){at_line(user_line())}"
            )
        mask, harmless = asarray(where), _HARMLESS.get(ufunc, 1)
        xs = [x if is_number(x) else np.where(mask, x, harmless) for x in xs]
    results = implementation(*xs, **unknown)
    if where is not True:
        pairs = zip(results if ufunc.nout > 1 else (results,), outs, strict=True)
        results = tuple(np.where(mask, cast(asarray(y), o.dtype), o) for y, o in pairs)
        results = results if ufunc.nout > 1 else results[0]
    if ufunc.nout > 1:
        return tuple(deliver(y, o, ufunc.__name__, casting) for y, o in zip(results, outs, strict=True))
    return deliver(results, outs[0], ufunc.__name__, casting)


def _cast_for(ufunc: np.ufunc, xs: Sequence[Any], dtype: np.dtype[Any] | None, casting: Any) -> list[Tracer]:
    """Operands in the dtypes of the loop that computes a result of `dtype`, or of that which NumPy takes by default."""
    operands = [asarray(x) for x in xs]
    try:
        dtypes = ufunc.resolve_dtypes(
            (*dtypes_or_types([kind_of(x) for x in operands]), *(None,) * ufunc.nout),
            signature=(*(None,) * ufunc.nin, *(dtype,) * ufunc.nout),
            # The two differ in byte orders only, and NumPy crashes on "equiv" with a number of Python.
            casting="no" if casting == "equiv" else casting,
        )
    except (TypeError, ValueError) as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"{error}{at_line(user_line())}") from None
    return [cast(x, d) for x, d in zip(operands, dtypes[: ufunc.nin], strict=True)]
