"""Refusals that traced code caught: it went on another way than with plain numbers, and nobody would know.

What caught an error is the frame at the beginning of its traceback.
"""

from __future__ import annotations

from ..base.source import Line, of_package
from ..core.trace import Builder
from ..numpy import to_numbers

# Their code asks for numbers to learn what it was given, and goes on with traced values.
_ASK_ON_PURPOSE = ("ftrans", "jax", "numpy", "pandas", "python", "scipy", "xarray")


def require_uncaught(builder: Builder) -> None:
    """Raise at the end of a trace if its code has caught an error that plain numbers would not have given.

    Args:
        builder: the builder of the trace.

    Raises:
        TypeError: it has; a ConcretizationError if that is what was caught.
    """
    for error, as_plain in builder.refused:
        trace = error.__traceback__
        if as_plain or trace is None:
            continue
        code = trace.tb_frame.f_code
        if code.co_filename == to_numbers.__file__:
            # Compiled code asked, which has no frame, and has replaced the error by its own.
            who = "Traced code"
        elif of_package(code.co_filename) in _ASK_ON_PURPOSE:
            continue
        else:
            who = f"{code.co_name}, at {Line(code, trace.tb_lasti).describe()},\n"
        said = type(error)(
            f"{who} caught an error that plain numbers do not give, and went on: the derivative would be that of "
            f"another path through the code. What it caught says what to write:\n{type(error).__name__}: {error}"
        )
        if builder.parent is not None:
            builder.parent.refused.append((said, False))
        raise said from None


def hand_up(error: BaseException, raised: Exception, builder: Builder) -> None:
    """Note in the enclosing trace, whose code may catch it, an error that comes from a refusal.

    Args:
        error: what the traced code raised.
        raised: what is raised in its place.
        builder: the builder of the inner trace.
    """
    outer = builder.parent
    refused = {id(e) for e, as_plain in builder.refused if not as_plain}
    cause: BaseException | None = error
    while outer is not None and refused and cause is not None:
        if id(cause) in refused and isinstance(raised, TypeError):
            outer.refused.append((raised, False))
            return
        cause = cause.__cause__ or cause.__context__
