"""Progress of a training: on a terminal by rich, in a notebook below its cell, elsewhere as lines."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from typing import Any

from ...base.notebooks import Area, is_in_notebook, lines
from ...base.progress import is_watched
from .history import shown

# Seconds between two pictures of the bar, and between two lines within an epoch.
_BAR_EVERY, _PAGE_EVERY = 0.1, 0.25
_LINE_EVERY = 30.0
# So many of the last lines are below the cell of a notebook.
_MOST_LINES = 200
_NOT_SHOWN = ("epoch", "step", "seconds", "samples_per_second")


class Progress:
    """Shows nothing; the base class of progress displays."""

    def start(self, epochs: int) -> None:
        """The training begins."""

    def begin(self, epoch: int, total: int | None, done: int) -> None:
        """An epoch begins, with its number of batches, and how many of them are done already."""

    def step(self, samples: int, figures: dict[str, float]) -> None:
        """A batch is done.

        Args:
            samples: number of its samples.
            figures: means in this epoch, as far as they are known.
        """

    def end(self, row: dict[str, Any], is_best: bool) -> None:
        """An epoch has ended."""

    def notice(self, text: str) -> None:
        """Show a message to the user."""

    def close(self) -> None:
        """The training has ended, possibly by an exception."""


class Lines(Progress):
    """A line for each epoch on stderr, and occasional ones within a long epoch."""

    every = _LINE_EVERY

    def start(self, epochs: int) -> None:
        self._epochs = epochs
        # Batches and seconds, without the first steps of epochs, in which there is compiling.
        self._steps = 0
        self._seconds = 0.0

    def begin(self, epoch: int, total: int | None, done: int) -> None:
        self._epoch, self._total, self._done = epoch, total, done
        self._first: float | None = None
        self._steps_here = self._samples_here = 0
        self._shown_at = time.monotonic()

    def step(self, samples: int, figures: dict[str, float]) -> None:
        self._done += 1
        now = time.monotonic()
        if self._first is None:
            self._first = now
        else:
            self._steps_here += 1
            self._samples_here += samples
        if now - self._shown_at >= self.every:
            self._shown_at = now
            self._show(figures, now - self._first)

    def end(self, row: dict[str, Any], is_best: bool) -> None:
        if self._first is not None:
            self._steps += self._steps_here
            self._seconds += time.monotonic() - self._first
        figures = [f"{name} {shown(name, x)}" for name, x in row.items() if name not in _NOT_SHOWN]
        parts = [*figures, duration(row["seconds"]), f"{row['samples_per_second']:,.0f} samples/s"]
        self._line(f"epoch {row['epoch']}/{self._epochs}  " + "  ".join(parts) + ("  *" if is_best else ""))

    def notice(self, text: str) -> None:
        self._line(text)

    def _line(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def _show(self, figures: dict[str, float], seconds: float) -> None:
        done = f"{self._done}/{self._total}" if self._total is not None else f"{self._done}"
        self._line(f"epoch {self._epoch}/{self._epochs}  batch {done}  {self._text(figures, seconds)}")

    def _text(self, figures: dict[str, float], seconds: float) -> str:
        parts = [f"{name} {shown(name, x)}" for name, x in figures.items()]
        if seconds > 0 and self._steps_here:
            parts.append(f"{self._samples_here / seconds:,.0f} samples/s")
            left = self._steps_left()
            if left is not None:
                rate = (self._steps + self._steps_here) / (self._seconds + seconds)
                parts.append(f"{duration(left / rate)} left")
        return "  ".join(parts)

    def _steps_left(self) -> int | None:
        """Number of steps until the end of the training."""
        if self._total is None:
            return None
        return (self._epochs - self._epoch + 1) * self._total - self._done


class Page(Lines):
    """The lines in one output of a notebook's cell, with a bar for the current epoch below them."""

    every = _PAGE_EVERY

    def start(self, epochs: int) -> None:
        super().start(epochs)
        self._area = Area()
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)
        self._count = 0
        self._drawn_at = -math.inf

    def begin(self, epoch: int, total: int | None, done: int) -> None:
        super().begin(epoch, total, done)
        self._draw("compiling")

    def _show(self, figures: dict[str, float], seconds: float) -> None:
        done = "" if self._total is None else f"{self._done}/{self._total}  "
        self._draw(done + self._text(figures, seconds))

    def _line(self, text: str) -> None:
        self._lines.append(text)
        self._count += 1

    def close(self) -> None:
        self._drawn_at = -math.inf
        self._draw()

    def _draw(self, current: str = "") -> None:
        """Show the lines, and what there is of the current epoch, unless that has just been done."""
        if time.monotonic() - self._drawn_at < self.every:
            return
        self._drawn_at = time.monotonic()
        left = self._count - len(self._lines)
        shown = [*([f"earlier lines: {left:,}"] if left else []), *self._lines]
        page = lines("\n".join(shown)) if shown else ""
        if current:
            current = f"epoch {self._epoch}/{self._epochs}  {current}"
            shown.append(current)
            bar = "" if self._total is None else f'<progress value="{self._done}" max="{self._total}"></progress>'
            page += f'<div style="display:flex;align-items:center;gap:1ch">{bar}{lines(current)}</div>'
        self._area.show("\n".join(shown), page)


class Bar(Lines):
    """A bar for the current epoch, below the lines of the previous ones."""

    every = _BAR_EVERY

    def start(self, epochs: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        super().start(epochs)
        columns = TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[text]}")
        self._bar = RichProgress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
        self._bar.start()
        self._task: Any = None

    def begin(self, epoch: int, total: int | None, done: int) -> None:
        super().begin(epoch, total, done)
        if self._task is not None:
            self._bar.remove_task(self._task)
        name = f"epoch {epoch}/{self._epochs}"
        self._task = self._bar.add_task(name, total=total, completed=done, text="compiling")
        self._bar.refresh()

    def _show(self, figures: dict[str, float], seconds: float) -> None:
        done = "" if self._total is None else f"{self._done}/{self._total}  "
        text = done + self._text(figures, seconds)
        self._bar.update(self._task, completed=self._done, text=text, refresh=True)

    def _line(self, text: str) -> None:
        self._bar.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def close(self) -> None:
        self._bar.stop()


def progress_for(wanted: bool) -> Progress:
    """The progress display for this environment."""
    if not wanted:
        return Progress()
    if is_in_notebook():
        return Page()
    if not is_watched():
        return Lines()
    try:
        import rich.progress  # noqa: F401
    except ImportError:
        plain = Lines()
        plain.notice("a progress bar needs rich, which is not installed: pip install 'ftrans[nn]'")
        return plain
    return Bar()


def duration(seconds: float) -> str:
    """A time as text."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
