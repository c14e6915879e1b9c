"""`scipy.spatial.transform.Slerp`: rotations between rotations, at a constant speed."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.spatial.transform

from ....base.source import at_line, user_line
from ....core.trace import Tracer
from ....numpy.dispatch import implements, refused
from ....numpy.promotion import asarray, has_tracer, value_in_hand
from ....run.places import live_in_trace
from . import quaternions
from .rotation import SCIPY, TracedRotation, quaternion_of


class TracedSlerp(scipy.spatial.transform.Slerp):
    """Interpolation between traced rotations, or at traced times of these.

    Attributes:
        times: the times of the rotations.
        rotations: all of them but the last, as SciPy has them.
        rotvecs: from each to the next, the axis times the angle.
    """

    def __init__(self, times: Any, rotations: Any) -> None:
        q = quaternion_of(rotations)
        times = asarray(times) if has_tracer(times) else np.asarray(times, np.float64)
        if q.ndim != 2 or q.shape[0] < 2 or times.shape != q.shape[:1]:
            raise ValueError(
                f"Slerp takes at least 2 rotations and as many times, not {q.shape[:-1]} and {times.shape}"
                + at_line(user_line())
            )
        known = value_in_hand(times)
        if known is not None and np.any(np.diff(known) <= 0):
            raise ValueError(f"Times must be in strictly increasing order{at_line(user_line())}")
        self.times, self.timedelta = times, np.diff(times)
        self.rotations = TracedRotation(q[:-1])
        self.rotvecs = quaternions.as_rotvec(quaternions.product(quaternions.inverse(q[:-1]), q[1:]))

    def __call__(self, times: Any) -> Any:
        """The rotations at times, of which those out of range are NaN where their values are not known."""
        return _interpolated(self, times)


live_in_trace(TracedSlerp)


def _interpolated(slerp: Any, times: Any) -> Any:
    times = asarray(times)
    if times.ndim > 1:
        raise ValueError(f"`times` must be at most 1-dimensional{at_line(user_line())}")
    knots = slerp.times
    first, last = knots[0], knots[-1]
    is_outside = (times < first) | (times > last)
    known = value_in_hand(is_outside) if isinstance(is_outside, Tracer) else is_outside
    if known is not None and np.any(known):
        raise ValueError(
            f"Interpolation times must be within the range of the times of the rotations, both inclusive"
            f"{at_line(user_line())}"
        )
    count = slerp.timedelta.shape[0]
    place = np.clip(np.searchsorted(knots, times) - 1, 0, count - 1)
    share = (times - asarray(knots)[place]) / asarray(slerp.timedelta)[place]
    share = np.where(is_outside, np.nan, share)
    step = quaternions.from_rotvec(asarray(slerp.rotvecs)[place] * share[..., None])
    return TracedRotation(quaternions.normalized(quaternions.product(quaternion_of(slerp.rotations)[place], step)))


@implements(scipy.spatial.transform.Slerp)
def Slerp(times: Any, rotations: Any) -> Any:
    """Interpolation between rotations at times, a function of the time."""
    if not isinstance(rotations, SCIPY):
        raise TypeError(f"`rotations` must be a `Rotation` instance{at_line(user_line())}")
    return TracedSlerp(times, rotations)


@implements(scipy.spatial.transform.Slerp.__call__)
def interpolate(slerp: Any, times: Any) -> Any:
    """`Slerp.__call__` at traced times."""
    return _interpolated(slerp, times)


RotationSpline = refused(
    scipy.spatial.transform.RotationSpline,
    "scipy.spatial.transform.RotationSpline",
    "use Slerp, or a spline of rotation vectors",
)
RigidTransform = refused(
    scipy.spatial.transform.RigidTransform,
    "scipy.spatial.transform.RigidTransform",
    "use a Rotation and a translation, R.apply(x) + t",
)
