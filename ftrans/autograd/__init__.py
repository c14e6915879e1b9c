"""Define-by-run differentiation: functions with a context object."""

from .function import Context, Function

__all__ = ["Context", "Function"]
