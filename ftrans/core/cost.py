"""Cost: an estimate of the work of an equation, for profiles, loops and memory budgets."""

from __future__ import annotations

from typing import NamedTuple

# A function such as exp takes about as long as this many additions of numbers in memory.
_FUNCTION = 10
# This many operations of a matrix product take as long as one addition of numbers in memory.
_PRODUCTS = 16


class Cost(NamedTuple):
    """An estimate for one equation, or several.

    Attributes:
        flops: operations on numbers.  An addition, a comparison and a sine count as one each.
        time: relative to the addition of two numbers in memory.
    """

    flops: float = 0.0
    time: float = 0.0

    @classmethod
    def arithmetic(cls, count: float) -> Cost:
        """Additions, multiplications, comparisons: operations of one instruction."""
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
        """Elements that are copied."""
        return cls(0.0, count / 2)

    def times(self, count: float) -> Cost:
        """The cost of `count` repetitions."""
        return Cost(self.flops * count, self.time * count)
