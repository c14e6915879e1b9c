"""Assignment to traced values, and views: values that share their elements with another one, as in NumPy.

A tracer is assigned to by making it stand for another variable.  A *view* knows its base and how its elements are
read from it and written to it.  It reads again when the base has changed, so nobody has to tell it; and an
assignment to a view is one to its base.

Whether a reshaped array is a view depends in NumPy on how its base lies in memory (`layouts`).  Where that is not
certain, using both after one was assigned to is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from ..base.source import Line, at_line, user_line
from ..base.type_questions import is_scalar as is_scalar
from ..core.program import Const
from ..core.trace import Tracer, current_builder, definition, recording_in
from ..core.types import Shape
from ..ops.elementwise import complex_, imag, real
from ..ops.shapes import transpose
from .layouts import Layout, Owner, blank, gapped, is_write, layout, note, own, strides_of
from .promotion import asarray, cast, reshaped, same_value

_SHARED, _COPIED, _UNCLEAR = "shared", "copied", "unclear"


class Access(Protocol):
    """How the elements of a view are read from its base, and written to it."""

    def read(self, base: Tracer) -> Tracer:
        """The elements of the view."""

    def write(self, base: Tracer, new: Tracer) -> Tracer:
        """The base, after `new` has been assigned to the view."""

    def numpy(self, base: Any) -> Any:
        """The same view of a NumPy array, which may turn out to be a copy."""


class View:
    """What makes a tracer a view.

    Attributes:
        base: the tracer that it is a view of.
        access: how to get from one to the other.
        atom: what the base stood for when the view read it.
        is_shared: whether NumPy's array is known to share memory with its base.
    """

    __slots__ = ("access", "atom", "base", "is_shared")
    is_of_number = False

    def __init__(self, base: Tracer, access: Access) -> None:
        self.base = base
        self.access = access
        self.atom = base.atom
        self.is_shared = not isinstance(access, Reshaped)

    def refresh(self, tracer: Tracer) -> None:
        """Read the base again, if it has been assigned to since."""
        base = self.base
        if base.memory is not None:
            base.memory.refresh(base)
        if base.atom is self.atom:
            return
        sharing = self.sharing()
        if sharing is _UNCLEAR:
            raise _unclear_error(tracer, user_line())
        if sharing is _COPIED:
            self.part(tracer)
            return
        with recording_in(tracer.builder):
            tracer.atom = self.access.read(base).atom
        self.atom = base.atom
        note(tracer)

    def write(self, tracer: Tracer, new: Tracer) -> None:
        """Assign `new` to the base."""
        base = self.base
        sharing = self.sharing()
        if sharing is _SHARED:
            assign(base, self.access.write(base, new))
            self.atom = base.atom
            return
        self.part(tracer)
        while isinstance(base.memory, View):
            base = base.memory.base
        if sharing is _UNCLEAR:
            base.memory = _Unclear(user_line())

    def part(self, tracer: Tracer) -> None:
        """Make of a view that NumPy makes a copy an array of its own."""
        tracer.memory = Owner(Tracer(tracer.builder, tracer.atom), "=")
        tracer.memory.source.memory = self

    def sharing(self) -> str:
        """Whether NumPy's array would share memory with its base, be a copy, or whether one cannot tell."""
        if self.is_shared:
            return _SHARED
        root = self._root()
        whole, *_, array = self._like(root, gapped(root.shape))
        if _is_view(whole, array):
            # Of an array with gaps between all its elements; so it is one of any array.
            self.is_shared = True
            return _SHARED
        strides = layout(root)
        if strides is None:
            return _UNCLEAR
        self.is_shared = _is_view(*self._like(root, strides)[-2:])
        return _SHARED if self.is_shared else _COPIED

    def layout(self, tracer: Tracer) -> Layout:
        """The strides of the array."""
        root = self._root()
        strides = layout(root)
        return None if strides is None else strides_of(self._like(root, strides)[-1])

    def _root(self) -> Tracer:
        *_, root = chain(self.base)
        return root

    def _like(self, root: Tracer, strides: Any) -> list[Any]:
        """In NumPy: the array that owns the elements, with these strides, and the views of it up to this one."""
        accesses = [self.access, *(x.memory.access for x in chain(self.base) if isinstance(x.memory, View))]
        arrays = [blank(root.type, strides)]
        for access in reversed(accesses):
            arrays.append(access.numpy(arrays[-1]))
        return arrays


def chain(x: Tracer) -> Iterator[Tracer]:
    """A view, what it is a view of, and so on to the array that owns the elements."""
    while isinstance(x.memory, View):
        yield x
        x = x.memory.base
    yield x


def owner(x: Any) -> Any:
    """The array whose elements `x` may share, which is itself where NumPy has made a copy."""
    while type(x) is Tracer and isinstance(x.memory, View) and x.memory.sharing() is not _COPIED:
        x = x.memory.base
    return x


def _is_view(base: Any, array: Any) -> bool:
    return array.size < 2 or np.may_share_memory(base, array)


class _Unclear:
    """Stands in the place of a view, for a base that may or may not have been assigned to."""

    __slots__ = ("line",)
    is_of_number = False

    def __init__(self, line: Line | None) -> None:
        self.line = line

    def refresh(self, tracer: Tracer) -> None:
        raise _unclear_error(tracer, self.line)

    def layout(self, tracer: Tracer) -> Layout:
        """Whoever asks how the array lies in memory is about to use it."""
        raise _unclear_error(tracer, self.line)


def _unclear_error(tracer: Tracer, line: Line | None) -> ValueError:
    return ValueError(
        f"a traced array ({tracer.type}) was used after an assignment that may or may not have changed it: one of the "
        "two is a reshaped form of the other, which NumPy makes a view or a copy depending on memory layout. Assign "
        "before reshaping, or write .copy() after it" + at_line(line)
    )


def view_of(base: Tracer, access: Access) -> Tracer:
    """A view of `base`."""
    base = asarray(base)
    if isinstance(base.memory, View) and isinstance(base.memory.access, Flat):
        # Other functions of NumPy make an array of an iterator, which is a view or a copy as `ravel` is.
        base = view_of(base.memory.base, Reshaped((base.size,), np.ravel))
    if isinstance(access, ReadOnly) and is_scalar(base):
        # What is repeated of a number cannot be written to either.
        base = own(Tracer(base.builder, base.atom), None)
    read = access.read(base)
    tracer = Tracer(read.builder, read.atom)
    return tracer if is_scalar(base) else sharing(tracer, base, access)


def sharing(tracer: Tracer, base: Tracer, access: Access) -> Tracer:
    """Make a tracer for what was read from `base` a view of it."""
    tracer.memory = View(base, access)
    # What is read may be what was written before, which lies in memory in its own way.
    note(tracer)
    return tracer


def as_array(x: Tracer) -> Tracer:
    """`x` as an array that can be assigned to, which it may be even if it has no axes."""
    if x.memory is None or x.memory.is_of_number:
        x.memory = Owner(Tracer(x.builder, x.atom), "=")
    return x


def assignable(x: Tracer) -> Tracer:
    """`x` as an array that is about to be assigned to, maybe through a view.

    Raises:
        TypeError: NumPy has a number in its place.
    """
    if is_scalar(x):
        raise TypeError(
            f"assignment to a number ({x.type}): NumPy's numbers, such as x[0] and np.sum(x), are no arrays and keep "
            "their value. Compute a new one, or make an array of it by ftrans.numpy.array(x)" + at_line(user_line())
        )
    return as_array(x)


def assign(target: Tracer, new: Tracer) -> None:
    """Make `target` stand for `new`, of the same type, and with it everything that it shares elements with."""
    if target.builder is not current_builder():
        raise ValueError(
            f"assignment to a value ({target.type}) of an enclosing function that is being traced; the function inside "
            "must be pure: pass the value in, assign to a copy, and return it" + at_line(user_line())
        )
    # What is assigned may be the very base of the target, which is about to change.
    atom = target.builder.atom(new)
    if isinstance(target.memory, View):
        target.memory.write(target, Tracer(target.builder, atom))
    else:
        assignable(target)
    before, target.atom = target.atom, atom
    target.weak = False
    if atom.type.ndim > 1:
        eqn = definition(target)
        if eqn is None or not is_write(eqn) or eqn.operands[0] is not before:
            note(target)


# Kinds of access


class Permuted:
    """Axes in another order."""

    __slots__ = ("axes",)

    def __init__(self, axes: Shape) -> None:
        self.axes = axes

    def read(self, base: Tracer) -> Tracer:
        return transpose(base, axes=self.axes) if self.axes != tuple(range(len(self.axes))) else base

    def write(self, base: Tracer, new: Tracer) -> Tracer:
        return transpose(new, axes=tuple(self.axes.index(i) for i in range(len(self.axes))))

    def numpy(self, base: Any) -> Any:
        return base.transpose(self.axes)


class Reshaped:
    """The same elements in another shape, by a function of NumPy that may copy: reshape or ravel."""

    __slots__ = ("numpy", "shape")

    def __init__(self, shape: Shape, numpy: Callable[[Any], Any] | None = None) -> None:
        self.shape = shape
        self.numpy = numpy or (lambda base: base.reshape(shape))

    def read(self, base: Tracer) -> Tracer:
        return reshaped(base, self.shape)

    def write(self, base: Tracer, new: Tracer) -> Tracer:
        return reshaped(new, base.shape)


def in_order(x: Tracer, order: str, numpy: Callable[..., Any] = np.asarray) -> Tracer:
    """`x` as an array that lies in memory in an order of NumPy: itself, or a copy where `numpy` makes one."""
    return x if order == "K" else view_of(x, Reshaped(x.shape, lambda base: numpy(base, base.dtype, order=order)))


def converted(x: Tracer, dtype: Any = None, copy: bool | None = True, order: Any = "K") -> Any:
    """`x` as an array of NumPy's `dtype` and `order`: a copy, or itself if that is enough and `copy` allows it."""
    dtype = x.dtype if dtype is None else np.dtype(dtype)
    order = order or "K"
    is_new = dtype != x.dtype
    if is_new and copy is False:
        raise ValueError(f"Unable to avoid copy while creating an array as requested.{at_line(user_line())}")
    if not is_new and not copy:
        return in_order(x, order)
    found = cast(x, dtype) if is_new else same_value(x, order)
    if not x.shape:
        return found if is_scalar(x) else own(found, None)
    return own(found, x, order) if is_new and (order != "K" or isinstance(found.atom, Const)) else found


class Flat:
    """`x.flat`: the elements in row-major order, which are never a copy."""

    def read(self, base: Tracer) -> Tracer:
        return reshaped(base, (base.size,))

    def write(self, base: Tracer, new: Tracer) -> Tracer:
        return reshaped(new, base.shape)

    def numpy(self, base: Any) -> Any:
        return base.reshape(-1)


class Part:
    """The real or imaginary part of complex elements."""

    def __init__(self, is_real: bool) -> None:
        self.is_real = is_real

    def read(self, base: Tracer) -> Tracer:
        return real(base) if self.is_real else imag(base)

    def write(self, base: Tracer, new: Tracer) -> Tracer:
        return complex_(new, imag(base)) if self.is_real else complex_(real(base), new)

    def numpy(self, base: Any) -> Any:
        return base.real if self.is_real else base.imag


class ReadOnly:
    """Elements that NumPy lends for reading only."""

    def __init__(self, read: Callable[[Any], Any], numpy: Callable[[Any], Any]) -> None:
        self.read = read
        self.numpy = numpy

    def write(self, base: Tracer, new: Tracer) -> Tracer:
        raise ValueError(
            "assignment destination is read-only: NumPy's diagonal, broadcast_to, broadcast_arrays and imag of real "
            "numbers only lend their elements; assign to the array itself, or write .copy() first"
            + at_line(user_line())
        )
