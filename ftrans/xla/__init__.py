"""The compiled evaluator: programs lowered to XLA through public JAX calls.  Importing this does not import JAX."""

from .execute import Compiled, is_jax, is_jax_tracer, run_program

__all__ = ["Compiled", "is_jax", "is_jax_tracer", "run_program"]
