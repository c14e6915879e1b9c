"""What a traced value becomes where Python or NumPy asks for a number: a number, a traced number, or an error.

Integers and truth values are looked at, which leaves a guard.  A `float` would lose its derivative, so it is refused;
`.item()` and `.tolist()` give traced numbers instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.source import at_line, user_line
from ..core.trace import Tracer, leak_error
from ..core.witness import ConcretizationError, concretize, constant_of, refuse
from .dispatch import TABLE
from .indexing import getitem
from .number_advice import advice, advice_to_assign
from .promotion import asarray, cast
from .views import Flat, view_of

_OF_PYTHON = {"f": np.dtype(np.float64), "c": np.dtype(np.complex128)}


def to_bool(self: Tracer) -> bool:
    """`bool(x)`."""
    if self.size != 1:
        raise ValueError(
            f"the truth value of a traced array with {self.size} elements is ambiguous; use .any() or .all(), or "
            "np.where(condition, a, b) to choose for each element" + at_line(user_line())
        )
    nonzero = self if self.dtype.kind == "b" else self != 0
    return bool(concretize(nonzero, "a Python branch on"))


def to_index(self: Tracer) -> int:
    """`operator.index(x)`."""
    if self.dtype.kind not in "biu" and not self.ndim:
        error = TypeError(
            f"a traced value of type {self.type} is no integer, so it cannot be an index or a length; write int(x), or "
            f"x.astype(int) to stay traced{at_line(user_line())}"
        )
        raise refuse(error, as_plain=True)
    if self.dtype.kind not in "iu" or self.ndim:
        instead = "compress(mask, table, axis=0)" if self.dtype.kind == "b" else "take(table, i, axis=0)"
        error = TypeError(
            f"only a traced integer scalar can be an index of a plain NumPy array, not {self.type}; write "
            f"ftrans.numpy.{instead}{at_line(user_line())}"
        )
        raise refuse(error, as_plain=True)
    try:
        return int(concretize(self, "a Python integer from"))
    except ConcretizationError as error:
        error.add_note("  To index a plain NumPy array by a traced integer, write ftrans.numpy.take(table, i, axis=0).")
        raise


def to_int(self: Tracer) -> int:
    """`int(x)`."""
    if self.size != 1:
        raise TypeError(f"only a traced array of one element becomes an int, not {self.type}{at_line(user_line())}")
    whole = self if self.dtype.kind in "iub" else cast(TABLE[np.trunc](self), np.dtype(np.int64))
    return int(concretize(whole, "a Python integer from").item())


def to_float(self: Tracer, target: str = "float", of_each: bool = False) -> float:
    """`float(x)`, or of each element, which is an error unless `x` depends on no argument of the trace."""
    if not self.builder.is_open:
        raise leak_error(self)
    known = constant_of(self)
    if known is not None:
        return float(known) if target == "float" else complex(known)  # type: ignore[return-value]
    line = user_line()
    said = advice_to_assign(line)
    if said is None:
        cause, instead = advice(line)
        said = (
            f"{target}() of a traced value ({self.type}) would cut it off from its derivative"
            f"{'. ' + cause if cause else ''}; {instead}"
        )
    raise refuse(TypeError(f"{said}{at_line(line)}"), as_plain=self.size != 1 and not of_each)


def to_complex(self: Tracer) -> complex:
    """`complex(x)`, which is an error unless `x` depends on no argument of the trace."""
    return to_float(self, "complex")


def number_of_python(x: Any) -> Tracer:
    """A traced value of one element as a number of Python would be traced: it takes the dtype of what it meets."""
    x = asarray(x)
    found = cast(x.reshape(()), _OF_PYTHON.get(x.dtype.kind, x.dtype))
    return Tracer(found.builder, found.builder.atom(found), weak=True)


def item(self: Tracer, *index: Any) -> Any:
    """One element, traced as a number of Python would be; integers and booleans are numbers of Python."""
    if len(index) == 1 and isinstance(index[0], tuple):
        index = index[0]
    if not index and self.size != 1:
        raise ValueError(
            f"can only convert an array of size 1 to a Python number, not {self.type}{at_line(user_line())}"
        )
    element = getitem(self, index) if len(index) > 1 else getitem(view_of(self, Flat()), index[0] if index else 0)
    if element.dtype.kind in "biu":
        return concretize(element, "a Python integer from").item()
    return number_of_python(element)


def tolist(self: Tracer) -> Any:
    """The elements as nested lists of numbers, traced as those of Python would be."""
    if not self.ndim:
        return number_of_python(self)
    return [tolist(getitem(self, i)) for i in range(self.shape[0])]
