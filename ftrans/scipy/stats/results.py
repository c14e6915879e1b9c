"""What functions of samples return: several results under their names, of which the first ones can be unpacked."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar

__all__ = ["DescribeResult", "LinregressResult", "PearsonRResult", "SignificanceResult", "TtestResult"]


class Results:
    """Results under their names.

    Attributes:
        unpacked: how many of them there are where they are taken apart.
    """

    unpacked: ClassVar[int] = 2

    def __iter__(self) -> Iterator[Any]:
        return iter(tuple(vars(self).values())[: self.unpacked])

    def __len__(self) -> int:
        return self.unpacked

    def __getitem__(self, index: Any) -> Any:
        return tuple(self)[index]


@dataclasses.dataclass
class SignificanceResult(Results):
    """A test statistic and its probability."""

    statistic: Any
    pvalue: Any


@dataclasses.dataclass
class TtestResult(SignificanceResult):
    """The statistic of a t test, its probability, and the degrees of freedom."""

    df: Any


@dataclasses.dataclass
class PearsonRResult(SignificanceResult):
    """A coefficient of correlation and its probability."""

    @property
    def correlation(self) -> Any:
        """The coefficient."""
        return self.statistic


@dataclasses.dataclass
class LinregressResult(Results):
    """A line through points, and how well it fits."""

    unpacked: ClassVar[int] = 5

    slope: Any
    intercept: Any
    rvalue: Any
    pvalue: Any
    stderr: Any
    intercept_stderr: Any


@dataclasses.dataclass
class DescribeResult(Results):
    """The size, the range and the first moments of a sample."""

    unpacked: ClassVar[int] = 6

    nobs: Any
    minmax: Any
    mean: Any
    variance: Any
    skewness: Any
    kurtosis: Any
