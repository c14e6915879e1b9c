"""How NumPy runs a primitive: what it does with memory, and Python text that the evaluator writes in place of a call.

A primitive states its meaning by the rule `numpy`; all else here makes that faster, and has a safe default.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any

from .program import Params


class Memory(Enum):
    """Whose memory the results of the rule `numpy` are in.

    Attributes:
        NEW: their own; each result is an array that nothing else holds.
        VIEW: the first operand's, if it can be; who writes to the result writes to the operand.
        WRITES: their own; but the rule `overwrite` makes the first operand the result.
        ANY: unknown; it may be that of an operand, or of what somebody else holds.
    """

    NEW = auto()
    VIEW = auto()
    WRITES = auto()
    ANY = auto()


class OnNumpy:
    """What the NumPy evaluator asks of a primitive.

    Attributes:
        memory: whose memory the results are in.
        broadcasts: whether NumPy broadcasts the operands by itself.
        choices: the operands of which the result takes some elements and leaves out others.
    """

    memory = Memory.ANY
    broadcasts = False
    choices: tuple[int, ...] = ()

    @property
    def aliases(self) -> bool:
        """Whether a result may share memory with an operand."""
        return self.memory in (Memory.VIEW, Memory.ANY)

    def python(self, operands: Sequence[str], params: Params) -> str | None:
        """A Python expression for what the rule `numpy` computes, or None to call it."""
        return None

    def python_thin(self, operand: str, params: Params) -> str | None:
        """A Python expression that NumPy broadcasts to the result where it meets a full array, or None."""
        return None

    def overwrite(self, *arrays: Any, **params: Any) -> None:
        """Make the first of the NumPy arrays the result, by writing to it."""
        raise NotImplementedError

    def python_overwriting(self, operands: Sequence[str], params: Params) -> str | None:
        """A Python statement that does the same, or None to call `overwrite`."""
        return None
