"""How NumPy runs a primitive: where its results are in memory, and Python source that replaces a call of its rule.

The rule `numpy` defines the meaning of a primitive; the attributes here make it faster, and have safe defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any

from .program import Params
from .types import ArrayType


class Memory(Enum):
    """The memory in which the results of the rule `numpy` are.

    Attributes:
        NEW: new memory; each result is an array that nothing else refers to.
        VIEW: the first operand's, if possible; writing to the result writes to the operand.
        WRITES: new memory; but the rule `overwrite` writes the result to the first operand.
        ANY: unknown; it may be that of an operand, or of another array.
    """

    NEW = auto()
    VIEW = auto()
    WRITES = auto()
    ANY = auto()


class OnNumpy:
    """What the NumPy evaluator needs to know about a primitive.

    Attributes:
        memory: the memory in which the results are.
        broadcasts: whether NumPy broadcasts the operands by itself.
        choices: the operands of which the result takes only some elements.
    """

    memory = Memory.ANY
    broadcasts = False
    choices: tuple[int, ...] = ()

    @property
    def aliases(self) -> bool:
        """Whether a result may share memory with an operand."""
        return self.memory in (Memory.VIEW, Memory.ANY)

    def python(self, operands: Sequence[str], params: Params) -> str | None:
        """A Python expression that equals the rule `numpy`, or None to call the rule."""
        return None

    def bound(self, types: Sequence[ArrayType], params: Params) -> Callable[..., Any] | None:
        """A function of operands of these types that equals the rule `numpy` with these parameters, or None to call it.

        It is worth writing where the rule finds out from shapes and parameters what to do.
        """
        return None

    def python_thin(self, operand: str, params: Params) -> str | None:
        """A Python expression that NumPy broadcasts to the result when it is combined with a full array, or None."""
        return None

    def overwrite(self, *arrays: Any, **params: Any) -> None:
        """Write the result to the first of the NumPy arrays."""
        raise NotImplementedError

    def python_overwriting(self, operands: Sequence[str], params: Params) -> str | None:
        """A Python statement that does the same, or None to call `overwrite`."""
        return None
