"""Functions of Mathieu, of the parabolic cylinder and of the spheroids, in their last argument."""

from __future__ import annotations

from ...ops.special import wave as _wave
from .entry import ufunc

mathieu_a = ufunc("mathieu_a", _wave.mathieu_a)
mathieu_b = ufunc("mathieu_b", _wave.mathieu_b)
mathieu_cem = ufunc("mathieu_cem", _wave.mathieu_cem)
mathieu_modcem1 = ufunc("mathieu_modcem1", _wave.mathieu_modcem1)
mathieu_modcem2 = ufunc("mathieu_modcem2", _wave.mathieu_modcem2)
mathieu_modsem1 = ufunc("mathieu_modsem1", _wave.mathieu_modsem1)
mathieu_modsem2 = ufunc("mathieu_modsem2", _wave.mathieu_modsem2)
mathieu_sem = ufunc("mathieu_sem", _wave.mathieu_sem)
obl_ang1 = ufunc("obl_ang1", _wave.obl_ang1)
obl_ang1_cv = ufunc("obl_ang1_cv", _wave.obl_ang1_cv)
obl_cv = ufunc("obl_cv", _wave.obl_cv)
obl_rad1 = ufunc("obl_rad1", _wave.obl_rad1)
obl_rad1_cv = ufunc("obl_rad1_cv", _wave.obl_rad1_cv)
pbdv = ufunc("pbdv", _wave.pbdv)
pbvv = ufunc("pbvv", _wave.pbvv)
pbwa = ufunc("pbwa", _wave.pbwa)
pro_ang1 = ufunc("pro_ang1", _wave.pro_ang1)
pro_ang1_cv = ufunc("pro_ang1_cv", _wave.pro_ang1_cv)
pro_cv = ufunc("pro_cv", _wave.pro_cv)
pro_rad1 = ufunc("pro_rad1", _wave.pro_rad1)
pro_rad1_cv = ufunc("pro_rad1_cv", _wave.pro_rad1_cv)
pro_rad2 = ufunc("pro_rad2", _wave.pro_rad2)
pro_rad2_cv = ufunc("pro_rad2_cv", _wave.pro_rad2_cv)

__all__ = [
    "mathieu_a",
    "mathieu_b",
    "mathieu_cem",
    "mathieu_modcem1",
    "mathieu_modcem2",
    "mathieu_modsem1",
    "mathieu_modsem2",
    "mathieu_sem",
    "obl_ang1",
    "obl_ang1_cv",
    "obl_cv",
    "obl_rad1",
    "obl_rad1_cv",
    "pbdv",
    "pbvv",
    "pbwa",
    "pro_ang1",
    "pro_ang1_cv",
    "pro_cv",
    "pro_rad1",
    "pro_rad1_cv",
    "pro_rad2",
    "pro_rad2_cv",
]
