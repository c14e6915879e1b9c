"""show_progress: whether long work says what it is doing."""

from __future__ import annotations

from ..base.progress import Progress
from ..base.source import at_line, user_line


def show_progress(wanted: bool | None) -> Progress:
    """Set whether the library shows work that takes more than two seconds.

    Compiling, tracing, loops, solvers, derivatives with a `chunk_size`, `prepare` and `check_grads` show one line with
    what is running and for how long; the line disappears at the end.  It is on stderr in a terminal, and below the cell
    in a notebook.  If the output is a file or a pipe, nothing is shown by default.  Outside notebooks this needs tqdm
    (`pip install 'ftrans[progress]'`).  Loops and `nn.fit` show their own bars, with their argument `progress=`.

    Args:
        wanted: True to show the line everywhere, False to show it nowhere, None for the default.

    Returns:
        A context manager.  In a `with` statement, the setting applies to that block and this thread.  Otherwise it
        applies to the process, except inside such a block.

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
