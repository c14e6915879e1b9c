"""Modules whose parameters are not initialized, because they are overwritten anyway."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...base.source import at_line, user_line
from ..init import skipped
from ..modules.module import Module


def skip_init(module_cls: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Make a module without drawing initial values: what the functions of `nn.init` would fill is left as it is.

    Args:
        module_cls: a class of modules.
        args: its arguments.
        kwargs: its keyword arguments.

    Returns:
        The module, whose parameters hold arbitrary numbers.

    Raises:
        TypeError: `module_cls` is not a class of modules.

    Example:
        >>> from ftrans import nn
        >>> nn.utils.skip_init(nn.Linear, 3, 2).weight.shape
        (2, 3)
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise TypeError(
            f"skip_init takes a class of modules and its arguments, skip_init(nn.Linear, 3, 2), not {module_cls!r}"
            + at_line(user_line())
        )
    with skipped():
        return module_cls(*args, **kwargs)
