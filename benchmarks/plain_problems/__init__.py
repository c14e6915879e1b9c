"""The problems of the measure `plain`, file by file."""

from . import algebra, loops, lstm, simulation, statistics, vision
from .problem import Problem

FILES = (algebra, loops, statistics, vision, lstm, simulation)


def problems() -> list[Problem]:
    return [problem for file in FILES for problem in file.problems()]


def small_problems() -> list[Problem]:
    """The same in sizes that take no time."""
    return [problem for file in FILES for problem in file.small_problems()]
