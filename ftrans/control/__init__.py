"""Primitives that hold programs: branches, loops, calls, checkpoints and custom rules."""
