"""The operators of cells, for type checkers: `operands` gives them to the class when it is imported.

A result is what the arrays give: an array, a tensor or a traced value.
"""

# fmt: off
from typing import Any

from .inplace import ChangedInPlace

class Declared(ChangedInPlace):
    """A cell with the operators of its array."""

    def _operation(self, other: Any) -> Any: ...
    def _negation(self) -> Any: ...

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _operation
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _operation
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = _operation
    __rrshift__ = _operation
    __lt__ = __le__ = __gt__ = __ge__ = _operation
    __neg__ = __pos__ = __abs__ = __invert__ = _negation

    def __eq__(self, other: object) -> Any: ...
    def __ne__(self, other: object) -> Any: ...
    def __hash__(self) -> int: ...
    def __getitem__(self, index: Any) -> Any: ...
