"""Programs: types, equations, primitives and tracing.  Depends on NumPy alone."""
