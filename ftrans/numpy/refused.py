"""The functions of NumPy that have no traced form, by full name: why, and what to write instead."""

from __future__ import annotations

_FILES = (
    "it writes numbers to a file, and a traced value has none. Return the value from the traced function and write it"
    " outside, or collect it with ftrans.tap"
)
_DATES = "dates have no derivative. Convert them to numbers of days or seconds first"
_BYTES = "it splits values into bits, which have no derivative. Apply it outside the traced function"
_MATRICES = "a numpy.matrix cannot hold traced values. Use arrays with two axes, and @ for their product"
_ITERATORS = (
    "it iterates over the memory of an array, and a traced value has none. Loop over indices, or over the array"
)

REFUSED: dict[str, str] = {
    **{f"numpy.{name}": _FILES for name in ("save", "savetxt", "savez", "savez_compressed")},
    **{
        f"numpy.{name}": _DATES
        for name in ("busday_count", "busday_offset", "datetime_as_string", "is_busday", "isnat")
    },
    **{f"numpy.{name}": _BYTES for name in ("packbits", "unpackbits")},
    **{f"numpy.{name}": _MATRICES for name in ("asmatrix", "bmat", "matrix")},
    **{f"numpy.{name}": _ITERATORS for name in ("broadcast", "flatiter", "nditer", "nested_iters")},
    "numpy.isfortran": "it asks for the memory layout of an array, and a traced value has no memory",
    "numpy.in1d": "it is the old name of numpy.isin; use numpy.isin",
}
