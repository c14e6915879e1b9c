"""What notebooks show as HTML.

The package that writes it is above all that it shows, and is imported when something is first shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar


class Displayed:
    """Base class of what a notebook shows as HTML."""

    __slots__ = ()

    # Writes the HTML of an object.
    _page_of: ClassVar[Callable[[Any], str]]

    def _repr_html_(self) -> str:
        return Displayed._page_of(self)
