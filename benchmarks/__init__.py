"""Benchmarks of ftrans, side by side with what a user would pick instead.

`python -m benchmarks` runs every measure; `python -m benchmarks rosenbrock gmm` runs those two.
"""

import os

# Read when NumPy, JAX's LAPACK and torch are loaded, so it stands before any of them. Where another process keeps a
# core busy, threads that spin while they wait take up to a hundred times as long, and the table shows nothing else.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
