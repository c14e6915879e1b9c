"""matmul_precision: how exactly matrix products and convolutions of 32-bit numbers are computed."""

from __future__ import annotations

from ..base.source import at_line, user_line
from ..core.trace import current_builder
from ..xla import Precision
from .call import type_name

_NAMES = ("highest", "high", "default")


def matmul_precision(precision: str) -> Precision:
    """Set how exactly XLA computes matrix products and convolutions of float32 and complex64 arrays.

    Nothing else changes: float64 and operations on NumPy keep their precision.  This sets JAX's
    `jax_default_matmul_precision`, so it also applies to JAX's own products, and a program that was compiled with
    another setting is compiled again.  By default, products of ftrans have the precision "highest".

    Args:
        precision: "highest", the precision of the numbers; "high", on a GPU by its units for products of numbers of
            19 bits (TF32), on a TPU three products of bfloat16 numbers; "default", the fastest: TF32 on a GPU, one
            product of bfloat16 numbers on a TPU.  A CPU computes all three in float32.

    Returns:
        A context manager.  In a `with` statement, the setting applies to that block and this thread.  Otherwise it
        applies to the process, except inside such a block.

    Raises:
        ValueError: there is no such precision.
        TypeError: `precision` is not a string, or a function is being traced, which is compiled later.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> f = ft.jit(lambda a: a @ a)
        >>> with ft.matmul_precision("high"):
        ...     f(np.eye(2, dtype=np.float32))
        array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    if not isinstance(precision, str):
        raise TypeError(f"matmul_precision takes the name of a precision, not {type_name(precision)}" + _known())
    if precision not in _NAMES:
        raise ValueError(f"there is no precision {precision!r} for matmul_precision" + _known())
    if current_builder() is not None:
        raise TypeError(
            "matmul_precision was called inside a function that is being traced, and what is recorded is compiled "
            f"later; write it around the call of the function{at_line(user_line())}"
        )
    return Precision(precision)


def _known() -> str:
    return f'; write "highest", "high" or "default"{at_line(user_line())}'
