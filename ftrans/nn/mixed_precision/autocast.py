"""Mixed precision: a block of code whose products and convolutions are computed in bfloat16 or float16."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ...base.narrow_products import settings
from ...base.source import at_line, user_line
from .loss_scale import floating_dtype

Function = TypeVar("Function", bound=Callable[..., Any])

_NAMES = ("bfloat16", "float16", "float32")


class autocast:
    """Mixed precision in a `with` block, or in a function that it decorates.

    Products of float32 arrays (`@`, `np.einsum` and the like, `nn.Linear`, attention, recurrent layers) and the
    convolutions of `nn.functional` round their operands to another dtype, for which GPUs have units; their results are
    float32 again.  So are all other operations: sums, normalization, softmax, losses, and so are parameters, gradients
    and the state of the optimizer.  Arrays of other dtypes, such as float64, are left alone.  So nothing has to be
    converted, inputs neither.

    bfloat16 has the range of float32.  float16 does not, so small gradients become 0: train with an `nn.LossScale`, or
    by `nn.fit(precision="float16")`.

    The block may be around a compiled function, around what it calls, or inside: another precision is another program.
    It is for the thread or task that it is in, and can be used again.  `@` of plain NumPy arrays, outside of
    transformations, is NumPy's and stays exact; so is what JAX code computes.

    Args:
        dtype: "bfloat16" or "float16"; "float32" inside of another block for what has to be exact.
        enabled: whether it does anything; if not, it is as with "float32".

    Raises:
        ValueError: there is no such dtype.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> model = nn.Linear(2, 1, bias=False)
        >>> model.weight.value = np.array([[1.001, 0]], np.float32)
        >>> with nn.autocast("bfloat16"):
        ...     loss, gradients = nn.value_and_grad(lambda model, x: model(x).sum())(model, np.ones((1, 2), np.float32))
        >>> loss, gradients["weight"].dtype
        (np.float32(1.0), dtype('float32'))
    """

    def __init__(self, dtype: Any = "bfloat16", enabled: bool = True) -> None:
        self.dtype = precision_named(dtype, "autocast")
        self.enabled = enabled

    def __enter__(self) -> None:
        name = self.dtype if self.enabled and self.dtype != "float32" else None
        settings.set((*settings.get(), name))

    def __exit__(self, *_: object) -> None:
        settings.set(settings.get()[:-1])

    def __call__(self, f: Function) -> Function:
        @functools.wraps(f)
        def f_in_block(*args: Any, **kwargs: Any) -> Any:
            with self:
                return f(*args, **kwargs)

        return f_in_block  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"autocast({self.dtype!r}, enabled={self.enabled})"


def precision_named(precision: Any, what: str) -> str:
    """The name of a dtype that products may have.

    Raises:
        ValueError: there is none.
    """
    if precision is None:
        return "float32"
    # The dtypes of torch have their names behind that of their package.
    text = str(precision).removeprefix("torch.")
    known = {"bf16": "bfloat16", "bf16-mixed": "bfloat16", "fp16": "float16", "16-mixed": "float16", "32": "float32"}
    hint = ""
    if text in ("cpu", "cuda", "gpu", "tpu", "mps"):
        hint = "; it is for the device that the arrays are on, so name no device"
    elif text in known:
        hint = f"; write {known[text]!r}"
    elif text not in _NAMES:
        try:
            text = floating_dtype(precision).name
        except ValueError:
            text = ""
    if hint or text not in _NAMES:
        raise ValueError(
            f"the precision of {what} is one of {', '.join(map(repr, _NAMES))}, not {precision!r}{hint}"
            + at_line(user_line())
        )
    return text
