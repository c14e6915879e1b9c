"""What a package exports whose files say it each for themselves."""

from __future__ import annotations

from types import ModuleType
from typing import Any


def exported(namespace: dict[str, Any]) -> list[str]:
    """The names in the namespace of a package without those of its files, in order.

    Args:
        namespace: the package's globals.
    """
    return sorted(
        name for name, value in namespace.items() if not name.startswith("_") and not isinstance(value, ModuleType)
    )
