"""Solvers that can be differentiated: linear systems, roots, minima and differential equations."""
