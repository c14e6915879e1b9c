"""Loops, as primitives that hold their bodies."""
