"""Extrema along an axis: their derivatives by the index of the one element that was chosen."""
