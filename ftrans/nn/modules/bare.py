"""BareModule: what the files below `Module` know of one: attributes, a path, and forward code."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ...base.cell import CellOwner
from ...base.source import at_line, user_line

# What a module remembers about itself, which copies do not have.
REMEMBERED = ("_graph", "_graphs", "_parent")


class BareModule(CellOwner):
    """The base class of `Module`."""

    training: bool = True
    # Attributes with modules that belong to somebody else, so that their paths do not begin here.
    _borrowed: tuple[str, ...] = ()
    # Whether the forward code is the user's, where arrays have torch's methods.
    _is_of_user = False
    # Whether the subclass defines `backward` beside `forward`.
    _overrides_backward = False

    @property
    def path(self) -> str:
        """The path from the outermost module, such as `encoder.0`; empty for that one."""
        parent = self.__dict__.get("_parent")
        above = None if parent is None else parent()
        return "" if above is None else joined(above.path, self.__dict__["_name"])

    def described(self) -> str:
        """Path and description, for messages: `encoder.0: Linear(in_features=3, out_features=2)`."""
        path, what = self.path, f"{type(self).__name__}({self.extra_repr()})"
        return f"{path}: {what}" if path else what

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result; every subclass defines it."""
        raise NotImplementedError(
            f"{type(self).__name__} has no forward(self, ...) method to compute its result{at_line(user_line())}"
        )

    def extra_repr(self) -> str:
        """The arguments that `repr` shows; subclasses override it."""
        return ""


def joined(path: str, name: Any) -> str:
    """The path of a part."""
    return f"{path}.{name}" if path else str(name)


# What runs each module, while somebody wants to see it: takes the module and the call, and returns its result.
capturing: ContextVar[Callable[[Any, Callable[[], Any]], Any] | None] = ContextVar("capturing", default=None)
