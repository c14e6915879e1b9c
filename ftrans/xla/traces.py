"""Whether JAX is tracing, and how to compute meanwhile what does not depend on anything that it traces."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager, nullcontext
from typing import Any


def is_in_trace() -> bool:
    """Whether JAX is tracing, so that what is called becomes part of an executable of others."""
    state, none = _states()
    return bool(state(convention="nnx") != none)


@functools.cache
def _states() -> tuple[Any, Any]:
    """The function that tells what JAX is tracing, and its result if that is nothing."""
    import jax
    from jax.extend.core import get_opaque_trace_state

    with jax.core.eval_context():
        return get_opaque_trace_state, get_opaque_trace_state(convention="nnx")


def outside_of_traces() -> AbstractContextManager[Any]:
    """A context in which JAX computes at once on arrays that have values, as NumPy does, whatever is being traced."""
    import jax

    return jax.ensure_compile_time_eval() if is_in_trace() else nullcontext()  # type: ignore[no-any-return, unused-ignore]
