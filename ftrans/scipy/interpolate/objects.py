"""Interpolators as objects: SciPy's own where all data are plain, objects of ours where some are traced.

`enter` makes the public class of a class of SciPy.  An object of it that is made of plain data is SciPy's, computes as
SciPy does, and takes traced points as well: a copy of its data in a class of ours, its *form*, then answers.  Made of
traced data, an object is such a form from the start.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ...base.source import at_line, user_line
from ...core.primitive import MissingRule
from ...numpy.dispatch import implements
from ...run.places import CELLS, NUMPY, place_of_arguments

# What makes the form of an object of a class of SciPy.
_FORMS: dict[type, Callable[[Any], Any]] = {}


class Form:
    """An interpolator whose data may be traced, which answers for a class of SciPy.

    Attributes:
        stands_for: the public class, which is derived from SciPy's.
    """

    stands_for: type

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return self.stands_for

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self.stands_for, name):
            raise AttributeError(f"{self.stands_for.__name__!r} object has no attribute {name!r}")
        raise MissingRule(
            f"{self.stands_for.__name__}.{name} is not there for traced data; ask an interpolator of plain data, "
            f"outside of the traced function{at_line(user_line())}"
        )


def form_of(interpolator: Any) -> Any:
    """The form of an interpolator: itself, or of an object of SciPy one with the same data."""
    if isinstance_of_form(interpolator):
        return interpolator
    for cls in type(interpolator).__mro__:
        if cls in _FORMS:
            return _FORMS[cls](interpolator)
    raise TypeError(f"{type(interpolator).__name__} takes no traced values{at_line(user_line())}")


def isinstance_of_form(x: Any) -> bool:
    """Whether an object is a form, whatever it answers for."""
    return issubclass(type(x), Form)


def enter(
    original: type,
    make: Callable[..., Any],
    form: Callable[[Any], Any],
    methods: tuple[str, ...] = ("__call__",),
    alike: tuple[str, ...] = (),
) -> Any:
    """Enter a class of SciPy in the table of traced forms, and return its public class.

    Args:
        original: the class of SciPy.
        make: makes a form, given the arguments of the class.
        form: makes the form of an object of SciPy.
        methods: the methods of SciPy's objects that take traced values.
        alike: the methods of SciPy's objects that make objects of SciPy's class, whatever class they are called on.
    """
    _FORMS[original] = form
    implements(original)(make)
    namespace: dict[str, Any] = {
        "__doc__": make.__doc__,
        "__module__": __package__,
        "__signature__": inspect.signature(original),
    }
    for name in methods:
        implements(getattr(original, name))(_answered_by_form(name))
        namespace[name] = _wherever(original, name)

    for name in alike:
        namespace[name] = _adopting(original, name)

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        if cls is public and place_of_arguments(args, kwargs) is not NUMPY:
            return _standing_for(public, make(*args, **kwargs))
        return original.__new__(cls)

    public = type(original)(original.__name__, (original,), {**namespace, "__new__": new})
    return public


def _standing_for(public: type, made: Any) -> Any:
    made.stands_for = public
    return made


def _answered_by_form(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(type(form := form_of(self)), name)(form, *args, **kwargs)

    method.__name__ = name
    return method


def _wherever(original: type, name: str) -> Callable[..., Any]:
    """A method of SciPy's objects wherever its arguments live."""
    plain, traced = getattr(original, name), _answered_by_form(name)

    @functools.wraps(plain)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        place = place_of_arguments(args, kwargs)
        if place is NUMPY:
            return plain(self, *args, **kwargs)
        if place.is_jax or place is CELLS:
            return place.call(functools.partial(traced, self), args, kwargs)
        # Tensors record what the functions of NumPy do in which a form computes.
        return traced(self, *args, **kwargs)

    return method


def _adopting(original: type, name: str) -> Callable[..., Any]:
    """A method of SciPy's objects, whose result is of the public class."""
    plain = getattr(original, name)

    @functools.wraps(plain)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = plain(self, *args, **kwargs)
        made.__class__ = type(self)
        return made

    return method
