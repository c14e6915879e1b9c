"""Assignment to traced values, and views: values that share their elements with another one, as in NumPy.

A tracer is assigned to by making it stand for another variable.  A *view* knows its base and how its elements are
read from it and written to it.  It reads again when the base has changed, so nobody has to tell it; and an
assignment to a view is one to its base.

Whether a reshaped array is a view depends in NumPy on how its base lies in memory.  Where that is not certain,
using both after one was assigned to is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ..core.program import Atom, Const
from ..core.source import Line, at_line, user_line
from ..core.trace import Tracer, current_builder, definition, recording_in
from ..core.types import Shape
from ..ops.elementwise import Elementwise, complex_, imag, real
from ..ops.shapes import transpose
from .promotion import asarray, reshaped

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
            tracer.memory = None
            return
        with recording_in(tracer.builder):
            tracer.atom = self.access.read(base).atom
        self.atom = base.atom

    def write(self, tracer: Tracer, new: Tracer) -> None:
        """Assign `new` to the base."""
        base = self.base
        sharing = self.sharing()
        if sharing is _SHARED:
            assign(base, self.access.write(base, new))
            self.atom = base.atom
            return
        tracer.memory = None
        while isinstance(base.memory, View):
            base = base.memory.base
        if sharing is _UNCLEAR:
            base.memory = _Unclear(user_line())

    def sharing(self) -> str:
        """Whether NumPy's array would share memory with its base, be a copy, or whether one cannot tell."""
        if self.is_shared:
            return _SHARED
        accesses: list[Access] = [self.access]
        root = self.base
        while isinstance(root.memory, View):
            accesses.append(root.memory.access)
            root = root.memory.base

        def is_view(array: Any) -> bool:
            base = array
            for access in reversed(accesses):
                base, array = array, access.numpy(array)
            return array.size < 2 or np.may_share_memory(base, array)

        in_any_order = is_view(np.empty([2 * n for n in root.shape], bool)[(np.s_[::2],) * root.ndim])
        if in_any_order:
            return _SHARED
        origin = root.memory.origin if isinstance(root.memory, _Owner) else root.atom
        if _is_row_major(root, origin):
            return _SHARED if is_view(np.empty(root.shape, bool)) else _COPIED
        return _UNCLEAR


class _Owner:
    """Stands in the place of a view, for an array that has been assigned to: an assignment keeps its memory layout.

    Attributes:
        origin: what the array stood for at first.
    """

    __slots__ = ("origin",)

    def __init__(self, origin: Atom) -> None:
        self.origin = origin

    def refresh(self, tracer: Tracer) -> None:
        """An owner is never out of date."""


class _Unclear:
    """Stands in the place of a view, for a base that may or may not have been assigned to."""

    def __init__(self, line: Line | None) -> None:
        self.line = line

    def refresh(self, tracer: Tracer) -> None:
        raise _unclear_error(tracer, self.line)


def _unclear_error(tracer: Tracer, line: Line | None) -> ValueError:
    return ValueError(
        f"a traced array ({tracer.type}) was used after an assignment that may or may not have changed it: one of the "
        "two is a reshaped form of the other, which NumPy makes a view or a copy depending on memory layout. Assign "
        "before reshaping, or write .copy() after it" + at_line(line)
    )


def _is_row_major(root: Tracer, atom: Atom) -> bool:
    """Whether NumPy would hold an array in row-major order, as far as one can tell."""
    builder = root.builder
    if isinstance(atom, Const):
        return True
    if atom in builder.root.inputs or atom in builder.capture_vars:
        # A program that is kept for later calls must not depend on how the arguments of this one lie in memory.
        if not builder.shared:
            return atom.type.ndim < 2
        value = builder.witness(Tracer(builder, atom))
        return isinstance(value, np.ndarray) and bool(value.flags.c_contiguous)
    eqn = definition(Tracer(root.builder, atom))
    if eqn is None:
        return False
    if isinstance(eqn.primitive, Elementwise):
        return all(_is_row_major(root, a) for a in eqn.operands)
    if eqn.primitive.name in ("set_slice", "scatter_set", "scatter_add"):
        return _is_row_major(root, eqn.operands[0])
    return atom.type.ndim < 2


def view_of(base: Tracer, access: Access) -> Tracer:
    """A view of `base`."""
    base = asarray(base)
    read = access.read(base)
    tracer = Tracer(read.builder, read.atom)
    if not is_scalar(base):
        tracer.memory = View(base, access)
    return tracer


def is_scalar(x: Tracer) -> bool:
    """Whether NumPy has an immutable number in the place of `x`, of which there are no views."""
    return not x.atom.type.shape and x.memory is None


def with_memory(x: Tracer) -> Tracer:
    """`x` as an array that is about to be assigned to through a view, which it is even if it has no axes."""
    if x.memory is None:
        x.memory = _Owner(x.atom)
    return x


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
    elif target.memory is None:
        target.memory = _Owner(target.atom)
    target.atom = atom
    target.weak = False


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
        return base


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
