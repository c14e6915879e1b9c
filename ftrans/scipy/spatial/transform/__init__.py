"""`scipy.spatial.transform` of plain and traced values: `Rotation` and `Slerp`."""

from .rotation import Rotation as Rotation
from .slerp import RigidTransform as RigidTransform
from .slerp import RotationSpline as RotationSpline
from .slerp import Slerp as Slerp

__all__ = ["RigidTransform", "Rotation", "RotationSpline", "Slerp"]


def __dir__() -> list[str]:
    return __all__
