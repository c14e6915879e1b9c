"""Truncated power series of the values of a program, whose coefficients are recorded when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...core.trace import Tracer
from ...core.types import ArrayType
from ...ops.elementwise import mul, select
from ...ops.literals import full_like
from ...transforms.masks import Condition, Mask, all_of, any_of, weight

Coefficient = Tracer | None
# The degree of series that are no polynomials.
UNBOUNDED = 1 << 30
# More choices than this are merged into one condition, and so are choices made of more conditions than that; other
# conditions are dropped.
_MOST_CHOICES = 8
_MOST_CONDITIONS = 64


class Support(NamedTuple):
    """Where a coefficient may be nonzero.

    Attributes:
        near: choices of the program.  No factor matters in elements that they leave out.
        far: further conditions, which matter where a factor may be infinite.
    """

    near: Mask = ()
    far: Mask = ()

    def zeros_in(self, x: Coefficient, is_singular: bool) -> Coefficient:
        """A product, with zeros where it is zero whatever its factors are."""
        mask = (*self.near, *self.far) if is_singular else self.near
        return x if x is None or not mask else select(all_of(mask), x, full_like(x, 0))

    def bounded(self) -> Support:
        """The same by few conditions, so that programs do not grow with the square of the number of choices."""
        near, far = self.near, self.far
        if len(near) > _MOST_CHOICES or weight(near) > _MOST_CONDITIONS:
            near = (Condition(all_of(near)),)
        return Support(near, far if weight(far) <= _MOST_CONDITIONS else ())

    def chosen(self) -> Support:
        """The same, all of it as choices: no factor matters any more, since one may have been infinite."""
        return Support((*self.near, *self.far))

    def whole(self) -> Tracer | None:
        """The support as one array; None for everywhere."""
        mask = (*self.near, *self.far)
        return all_of(mask) if mask else None


EVERYWHERE = Support()


def union(supports: Sequence[Support]) -> Support:
    """Where at least one of several coefficients may be nonzero."""
    if not supports:
        return EVERYWHERE
    near = any_of([s.near for s in supports])
    if near and not any([s.far for s in supports]):
        return Support(near)
    return Support(near, any_of([(*s.near, *s.far) for s in supports]))


def intersection(a: Support, b: Support) -> Support:
    """Where both of two coefficients may be nonzero."""
    return Support(tuple(dict.fromkeys((*a.near, *b.near))), tuple(dict.fromkeys((*a.far, *b.far))))


def everywhere() -> Support:
    """The support of a coefficient of which nothing is known."""
    return EVERYWHERE


class Series:
    """A value along a line: the coefficients of the powers of the parameter; None stands for zero.

    Attributes:
        type: type of each coefficient.
        degree: all coefficients above are zero.
        is_slope: whether it is linear in derivatives of series: its zeros may be those of choices.

    Args:
        type: type of each coefficient.
        make: makes a coefficient; called once for each.
        degree: see above.
        is_slope: see above.
        support: finds where the coefficients may be nonzero.
        moving: finds where those above 0 may be.
    """

    __slots__ = ("_derivative", "_find", "_known", "_make", "_supports", "degree", "is_slope", "type")

    def __init__(
        self,
        type: ArrayType,
        make: Callable[[int], Coefficient],
        degree: int = UNBOUNDED,
        is_slope: bool = False,
        support: Callable[[], Support] = everywhere,
        moving: Callable[[], Support] = everywhere,
    ) -> None:
        self.type = type
        self.degree = degree
        self.is_slope = is_slope
        self._make = make
        self._known: dict[int, Coefficient] = {}
        self._find = support, moving
        self._supports: list[Support | None] = [None, None]
        self._derivative: Series | None = None

    def __getitem__(self, k: int) -> Coefficient:
        """Coefficient `k`."""
        if k > self.degree:
            return None
        if k not in self._known:
            self._known[k] = self._make(k)
        return self._known[k]

    @property
    def is_constant(self) -> bool:
        """Whether only coefficient 0 may differ from zero."""
        return self.degree <= 0

    def at(self, k: int) -> Tracer:
        """Coefficient `k`, as an array of zeros where it is zero."""
        found = self[k]
        return full_like(self.type, 0) if found is None else found

    def support(self, k: int) -> Support:
        """Where coefficient `k` may be nonzero.  A value has no such zeros, even if it is chosen or padded."""
        if not k and not self.is_slope:
            return EVERYWHERE
        which = min(k, 1)
        found = self._supports[which]
        if found is None:
            found = self._supports[which] = self._find[which]().bounded()
        return found

    @property
    def derivative(self) -> Series:
        """The series of the derivative with respect to the parameter."""
        if self._derivative is None:
            self._derivative = Series(
                self.type,
                lambda k: scaled(self[k + 1], k + 1),
                self.degree - 1,
                True,
                support=lambda: self.support(1),
                moving=lambda: self.support(1),
            )
        return self._derivative


def series_of(row: Sequence[Coefficient], mask: Tracer | None = None) -> Series:
    """The series with given coefficients.

    Args:
        row: the coefficients, of which the first is not zero.
        mask: where those above may be nonzero.
    """
    degree = max(k for k, x in enumerate(row) if k == 0 or x is not None)
    support = EVERYWHERE if mask is None else Support((), (Condition(mask),))
    assert row[0] is not None
    return Series(row[0].type, lambda k: row[k], degree, moving=lambda: support)


def scaled(x: Coefficient, factor: float) -> Coefficient:
    """A coefficient times a number."""
    return x if x is None or factor == 1 else mul(x, full_like(x, factor))
