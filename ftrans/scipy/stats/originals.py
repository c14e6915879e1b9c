"""SciPy's own distributions on traced values: their methods, those of frozen ones, and freezing itself.

Several distributions share the methods of one class of SciPy; which one it is is looked up in the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import scipy.stats

from ...base.source import at_line, user_line
from ...core.primitive import MissingRule
from ...numpy.dispatch import TABLE, implements
from .distribution import Distribution
from .frozen import class_of_frozen
from .multivariate import Multivariate

__all__ = ["enter"]


def enter(distributions: Iterable[Distribution | Multivariate]) -> None:
    """Enter the methods of SciPy's distributions, by their functions in its classes."""
    by_name = {d.name: d for d in distributions}
    by_class = {type(getattr(scipy.stats, d.name)): d for d in by_name.values()}

    def mirror(original: Any) -> Distribution | Multivariate:
        found = by_class.get(type(original))
        if found is None:
            raise MissingRule(
                f"the distribution {getattr(original, 'name', type(original).__name__)} has no traced form; "
                f"ftrans.scipy.stats has {', '.join(sorted(by_name))}. Write the formula of its logarithmic density"
                f"{at_line(user_line())}"
            )
        return found

    def with_parameters(frozen: Any) -> Any:
        if hasattr(frozen, "dist"):
            return mirror(frozen.dist)(*frozen.args, **frozen.kwds)
        dist = by_frozen[type(frozen)]
        return dist(**{name: getattr(frozen, name) for name in dist.parameters})

    by_frozen: dict[type, Any] = {}
    for dist in by_name.values():
        original, frozen = type(getattr(scipy.stats, dist.name)), class_of_frozen(dist)
        by_frozen[frozen] = dist
        _enter(original, "__call__", mirror)
        for method in _methods(dist):
            _enter(original, method, mirror)
            _enter(frozen, method, with_parameters)


def _methods(dist: Distribution | Multivariate) -> list[str]:
    return [name for name, method in vars(dist).items() if callable(method)]


def _enter(owner: type, name: str, mirror: Callable[[Any], Any]) -> None:
    function = getattr(owner, name, None)
    if function is None or function in TABLE:
        return

    def call(original: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(mirror(original), name)(*args, **kwargs)

    implements(function)(call)
