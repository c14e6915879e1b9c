"""Entries: a program that computes the entries of a sparse matrix of derivatives, and where they are in it."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.program import Program


class NotStructured(ValueError):
    """A matrix of derivatives that an engine cannot find by structure; another engine can.

    Args:
        reason: why, as a clause for messages.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Entries(NamedTuple):
    """A program that computes the entries of a sparse matrix.

    Attributes:
        program: takes the inputs of the differentiated program; returns all of its outputs, then one vector with the
            entries.
        rows: row of each entry, of dtype int64; rows count the elements of the differentiated outputs, one output
            after the other, each in row-major order.
        cols: column of each entry, of dtype int64; columns count the elements of the active inputs in the same way.
            No position occurs twice; the order is that of the vector.
        shape: number of rows, and of columns.
        how: lines that say how the entries are computed: first the engine, then order, colours, bytes.
    """

    program: Program
    rows: Any
    cols: Any
    shape: tuple[int, int]
    how: tuple[str, ...]
