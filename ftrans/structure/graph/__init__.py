"""The graph of a program, and what its edges are computed with."""
