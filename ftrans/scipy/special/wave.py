"""Mathieu, parabolic cylinder and spheroidal wave functions, differentiable in their last argument."""

from ...ops.special import wave as _wave
from .entry import ufunc as _ufunc

mathieu_a = _ufunc("mathieu_a", _wave.mathieu_a)
mathieu_b = _ufunc("mathieu_b", _wave.mathieu_b)
mathieu_cem = _ufunc("mathieu_cem", _wave.mathieu_cem)
mathieu_modcem1 = _ufunc("mathieu_modcem1", _wave.mathieu_modcem1)
mathieu_modcem2 = _ufunc("mathieu_modcem2", _wave.mathieu_modcem2)
mathieu_modsem1 = _ufunc("mathieu_modsem1", _wave.mathieu_modsem1)
mathieu_modsem2 = _ufunc("mathieu_modsem2", _wave.mathieu_modsem2)
mathieu_sem = _ufunc("mathieu_sem", _wave.mathieu_sem)
obl_ang1 = _ufunc("obl_ang1", _wave.obl_ang1)
obl_ang1_cv = _ufunc("obl_ang1_cv", _wave.obl_ang1_cv)
obl_cv = _ufunc("obl_cv", _wave.obl_cv)
obl_rad1 = _ufunc("obl_rad1", _wave.obl_rad1)
obl_rad1_cv = _ufunc("obl_rad1_cv", _wave.obl_rad1_cv)
pbdv = _ufunc("pbdv", _wave.pbdv)
pbvv = _ufunc("pbvv", _wave.pbvv)
pbwa = _ufunc("pbwa", _wave.pbwa)
pro_ang1 = _ufunc("pro_ang1", _wave.pro_ang1)
pro_ang1_cv = _ufunc("pro_ang1_cv", _wave.pro_ang1_cv)
pro_cv = _ufunc("pro_cv", _wave.pro_cv)
pro_rad1 = _ufunc("pro_rad1", _wave.pro_rad1)
pro_rad1_cv = _ufunc("pro_rad1_cv", _wave.pro_rad1_cv)
pro_rad2 = _ufunc("pro_rad2", _wave.pro_rad2)
pro_rad2_cv = _ufunc("pro_rad2_cv", _wave.pro_rad2_cv)
