"""Repetition in a program that was written as a loop of Python, turned back into `scan`."""

# A loop costs about as much to compile as so many equations; shorter programs stay as they are.
FEWEST_SAVED = 40
