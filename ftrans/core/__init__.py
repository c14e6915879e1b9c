"""What a program is: types, equations, tracing and evaluation.  Needs NumPy alone."""
