"""Derivatives where eigenvalues or singular values are equal, as limits."""
