"""Decompositions into eigenvalues or singular values and vectors; where values are equal, derivatives are limits.

The primitives are `eigh`, `eig` and `svd`; `limit` is what stands behind them in a program that is differentiated.
"""

from .decomposition import inverse_gap
from .eigen import eig, eigh
from .limit import limit
from .singular import svd

__all__ = ["eig", "eigh", "inverse_gap", "limit", "svd"]
