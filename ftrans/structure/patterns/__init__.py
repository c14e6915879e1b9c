"""Patterns: which elements of a derivative may differ from zero."""
