"""Derivatives by structure: which elements depend on which, and programs that compute only what is not zero."""
