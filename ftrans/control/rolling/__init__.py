"""Repetition in a program that was written as a loop of Python, turned back into `scan`."""
