"""Cost: about how much an equation has to do, which profiles show and by which loops and budgets of memory choose."""

from __future__ import annotations

from typing import NamedTuple

# A function such as exp takes about as long as so many additions of numbers in memory.
_FUNCTION = 10
# So many operations of a matrix product take as long as one addition of numbers in memory.
_PRODUCTS = 16


class Cost(NamedTuple):
    """An estimate for one equation, or several.

    Attributes:
        flops: operations on numbers.  An addition, a comparison and a sine count as one each.
        time: how long it takes, relative to the addition of two numbers that lie in memory.
    """

    flops: float = 0.0
    time: float = 0.0

    @classmethod
    def arithmetic(cls, count: float) -> Cost:
        """Additions, multiplications, comparisons: what takes one instruction."""
        return cls(count, count)

    @classmethod
    def functions(cls, count: float) -> Cost:
        """Functions of numbers such as exp."""
        return cls(count, _FUNCTION * count)

    @classmethod
    def products(cls, count: float, size: float) -> Cost:
        """The operations of matrix products, between arrays of up to `size` elements."""
        return cls(count, size + count / _PRODUCTS)

    @classmethod
    def moves(cls, count: float) -> Cost:
        """Elements that are written to another place."""
        return cls(0.0, count / 2)

    def times(self, count: float) -> Cost:
        """The same, so many times."""
        return Cost(self.flops * count, self.time * count)
