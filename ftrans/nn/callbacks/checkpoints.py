"""Files of the model after epochs, beside the checkpoints that `nn.fit` writes by itself."""

from __future__ import annotations

import os
from pathlib import Path

from ...base.source import at_line, user_line
from ..training.callbacks import Callback, FitState
from ..training.saving import save
from ..training.stopping import Best


class ModelCheckpoint(Callback):
    """Writes the model to a file after epochs, of which the best ones are kept.

    `nn.fit(directory=...)` writes the last and the best state by itself, with all that a training needs to go on; this
    writes models alone.

    Args:
        path: the file, with the entries of the epoch in braces, such as "run/{epoch:03}-{val_loss:.3f}.safetensors".
        monitor: the entry of the history by which models are kept; None keeps those written last.
        mode: "min" or "max", which values are better; needed unless it is a loss.
        save_top_k: number of files that are kept; None for all.
        every_n_epochs: number of epochs between two files.

    Attributes:
        kept: pairs of the value and the path of each file, the best one first.

    Raises:
        ValueError: an argument is out of range; in the training, an epoch has no entry of a name in `path`.

    Example:
        >>> import os, tempfile, numpy as np
        >>> from ftrans import nn
        >>> x = np.ones((8, 1), np.float32)
        >>> folder = tempfile.mkdtemp()
        >>> history = nn.fit(
        ...     nn.Linear(1, 1), nn.batches(x, x), loss=nn.functional.mse_loss, epochs=3, progress=False,
        ...     callbacks=nn.callbacks.ModelCheckpoint(os.path.join(folder, "{epoch}.safetensors"), save_top_k=2),
        ... )
        >>> sorted(os.listdir(folder))
        ['2.safetensors', '3.safetensors']
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        monitor: str | None = None,
        mode: str | None = None,
        save_top_k: int | None = 1,
        every_n_epochs: int = 1,
    ) -> None:
        if monitor is not None:
            # It checks the arguments.
            Best(monitor, mode, 0.0, None)
        for what, x in (("save_top_k", save_top_k), ("every_n_epochs", every_n_epochs)):
            if x is not None and x < 1:
                raise ValueError(f"{what} must be a positive integer, not {x!r}{at_line(user_line())}")
        self.path = os.fspath(path)
        self.monitor = monitor
        self.save_top_k = save_top_k
        self.every_n_epochs = every_n_epochs
        self.kept: list[tuple[float, Path]] = []
        self._sign = -1.0 if mode == "max" else 1.0

    def on_epoch_end(self, state: FitState) -> None:
        """Write a file, and remove those that are no longer among the best."""
        if state.epoch % self.every_n_epochs:
            return
        row = state.logs
        missing = self.monitor if self.monitor is not None and self.monitor not in row else None
        try:
            path = Path(self.path.format(**row))
        except KeyError as error:
            missing = str(error.args[0])
        if missing is not None:
            raise ValueError(
                f"ModelCheckpoint needs {missing!r}, but an epoch has {', '.join(row)}{at_line(user_line())}"
            )
        value = -state.epoch if self.monitor is None else self._sign * row[self.monitor]
        others = [(x, p) for x, p in self.kept if p != path]
        ranked = sorted([*others, (value, path)], key=lambda pair: pair[0])
        self.kept = ranked[: self.save_top_k]
        if (value, path) not in self.kept:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        save(path, state.model)
        for _, other in ranked[len(self.kept) :]:
            other.unlink(missing_ok=True)
