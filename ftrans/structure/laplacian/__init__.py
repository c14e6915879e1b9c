"""Laplacians and other sums of second derivatives, forwards in one pass."""
