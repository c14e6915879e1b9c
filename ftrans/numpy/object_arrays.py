"""Arrays of Python objects, which NumPy's own `np.asarray(x)` makes of a traced array: its elements, one by one.

The elements are read from the array when somebody uses them.  So an array of objects that nobody has touched costs no
equations, and is the traced array again where ftrans meets it.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..base.source import at_line, user_line
from ..core.program import Atom, Var
from ..core.trace import Tracer, leak_error, recording_in
from ..core.types import ArrayType
from .indexing import getitem
from .layouts import blank, layout
from .promotion import asarray, reshaped, same_value

# Elements from which on a warning says that they are computed with one by one.
_MANY = 64
# Where it was said, as `warnings` notes it.
_said: dict[Any, Any] = {}


class ObjectArrayWarning(RuntimeWarning):
    """NumPy has made an array of Python objects of a large traced array, so that each element has its own equations."""


class _Element:
    """Stands in the place of a view, for an element of an array of objects, which is read when it is used.

    NumPy's `asarray` returns the array itself, so that it would hold the new element after an assignment: an element
    that was lent must not be used then.

    Attributes:
        array: the traced array.
        source: what it stood for.
        place: of the element, in row-major order.
        is_lent: whether it is an element of the array itself, and not of a copy.
    """

    __slots__ = ("array", "is_lent", "is_read", "place", "source")
    is_of_number = True

    def __init__(self, array: Tracer, place: int, is_lent: bool) -> None:
        self.array = array
        self.source = array.atom
        self.place = place
        self.is_lent = is_lent
        self.is_read = False

    def require_unchanged(self) -> None:
        """Raise if the array of which the element was lent has been assigned to since."""
        if not self.is_lent:
            return
        self.array.builder.atom(self.array)
        if self.array.atom is not self.source:
            raise ValueError(
                f"np.asarray of a traced array ({self.array.type}) was used after an assignment to the array: it holds "
                "the elements from before. Use the array itself, or ftrans.numpy.asarray, which returns it"
                + at_line(user_line())
            )

    def array_of(self, objects: Any) -> Tracer | None:
        """The array of which NumPy has made `objects`, maybe in another order; None if they are not all of one."""
        places = []
        for x in objects.flat:
            memory = x.memory if type(x) is Tracer else None
            if not isinstance(memory, _Element) or memory.array is not self.array or memory.source is not self.source:
                return None
            places.append(memory.place)
        self.require_unchanged()
        whole = Tracer(self.array.builder, self.source)
        if places == list(range(whole.size)):
            return reshaped(whole, objects.shape)
        return getitem(reshaped(whole, (whole.size,)), np.reshape(places, objects.shape))

    def refresh(self, tracer: Tracer) -> None:
        """Read the element, if nobody has used it before."""
        self.require_unchanged()
        if not self.is_read:
            if not tracer.builder.is_open:
                raise leak_error(tracer)
            whole = Tracer(tracer.builder, self.source)
            index = np.unravel_index(self.place, whole.shape)
            with recording_in(tracer.builder):
                tracer.atom = getitem(whole, tuple([int(i) for i in index])).atom
            self.is_read = True


def objects_of(x: Tracer, copy: bool) -> Any:
    """What NumPy's `asarray`, or `array` if it copies, makes of a traced value: an array of objects."""
    x = asarray(x)
    if x.size > _MANY:
        _warn()
    array = same_value(x, "=") if copy else x
    found = np.fromiter([_element(array, i, not copy) for i in range(x.size)], object, x.size).reshape(x.shape)
    strides = layout(x)
    if strides is not None and x.ndim > 1:
        # In the order of NumPy's array, np.asfortranarray and its like copy if they copy there, and np.array keeps it.
        ordered = np.empty_like(blank(x.type, strides), object)
        ordered[...] = found
        found = ordered
    # Here NumPy's own arrays stay what they are, so that whoever changes the result changes the array.
    found.flags.writeable = copy
    return found


def _element(array: Tracer, place: int, is_lent: bool) -> Tracer:
    # A variable of its own, until it is read.
    unread: Atom = Var(ArrayType((), array.dtype))
    found = Tracer(array.builder, unread)
    found.memory = _Element(array, place, is_lent)
    return found


def _warn() -> None:
    line = user_line()
    if line is not None:
        warnings.warn_explicit(
            f"NumPy makes a Python object of each element of a large traced array here{at_line(line)}\n  Each is "
            "computed with by itself. Write ftrans.numpy.asarray, which keeps it one array; for a package that cannot "
            "be changed, call ftrans.patch before",
            ObjectArrayWarning,
            line.filename,
            line.number,
            registry=_said,
        )
