"""show_progress: whether long work says what it is doing."""

from __future__ import annotations

from ..base.progress import Progress
from ..base.source import at_line, user_line


def show_progress(wanted: bool | None) -> Progress:
    """Set whether the library shows what it does while that takes more than two seconds.

    Compiling, tracing, loops, solvers, derivatives with a `chunk_size`, `prepare` and `check_grads` say what they do,
    and for how long, in one line, which goes when they are done: on stderr in a terminal, below the cell in a notebook.
    Where the output is a file or a pipe, they do so only if that is asked for.  Outside of notebooks it needs tqdm
    (`pip install 'ftrans[progress]'`).  Loops have bars of their own by `progress=`, and `nn.fit` by its argument.

    Args:
        wanted: True to show it everywhere, False nowhere, None for the default.

    Returns:
        What can be used in a `with` statement: then the setting is for that block and this thread.  Otherwise, it is
        for the process; where a block is open, that goes first.

    Raises:
        TypeError: `wanted` is none of these.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> with ft.show_progress(False):
        ...     ft.jit(np.sin)(0.0)
        np.float64(0.0)
    """
    if wanted is not None and type(wanted) is not bool:
        raise TypeError(f"show_progress takes True, False or None, not {wanted!r}{at_line(user_line())}")
    return Progress(wanted)
