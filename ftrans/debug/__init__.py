"""Debugging tools: pictures of programs, profiles, costs of compiled functions, retraces, and the origin of a NaN."""

from ..api.anomaly import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from ..api.anomaly.report import AnomalyError
from ..base.source import scope
from ..base.tracebacks import full_tracebacks
from . import plots
from .cost import CostReport, cost
from .draw import draw
from .explain import explain
from .explanation import Explanation
from .profile import Profile, profile
from .retraces import Retraces, retraces

__all__ = [
    "AnomalyError",
    "CostReport",
    "Explanation",
    "Profile",
    "Retraces",
    "cost",
    "detect_anomaly",
    "draw",
    "explain",
    "full_tracebacks",
    "is_anomaly_enabled",
    "plots",
    "profile",
    "retraces",
    "scope",
    "set_detect_anomaly",
]


def __dir__() -> list[str]:
    return sorted(__all__)
