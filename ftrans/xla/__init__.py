"""The compiled evaluator: programs lowered to XLA through public JAX calls.  Importing this does not import JAX."""

from .execute import Compiled, is_jax, is_jax_tracer, run_function, run_program, to_numpy

__all__ = ["Compiled", "is_jax", "is_jax_tracer", "run_function", "run_program", "to_numpy"]
