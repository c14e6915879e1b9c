"""Linear algebra as it is written without matrix products, and the cofactors of a determinant."""

from __future__ import annotations

import itertools
from typing import Any

from numpy.random import Generator

from .problem import Problem, Targets


def kernel(np, weights, points, centres):
    """Weighted inner products, summed over broadcast axes."""
    return np.sum(np.tanh(np.sum(weights * points[:, None, :] * centres[None, :, :], axis=2)))


def kernel_with_care(jax, weights, points, centres):
    return jax.numpy.sum(jax.numpy.tanh((points * weights) @ centres.T))


def kernel_problem(count: int, size: int) -> Problem:
    def arguments(random: Generator) -> tuple[Any, ...]:
        return random.normal(size=size), random.normal(size=(count, size)), random.normal(size=(count, size))

    label = f"inner products as broadcast sums, {count} by {count} of {size}"
    return Problem(label, kernel, kernel_with_care, arguments, Targets(careful=1.1))


def residuals(np, x, matrix, target):
    """Least squares, row by row."""
    total = 0.0
    for i in range(len(target)):
        total = total + (np.dot(matrix[i], x) - target[i]) ** 2
    return total


def residuals_with_care(jax, x, matrix, target):
    return jax.numpy.sum((matrix @ x - target) ** 2)


def residuals_problem(rows: int, columns: int) -> Problem:
    def arguments(random: Generator) -> tuple[Any, ...]:
        return random.normal(size=columns), random.normal(size=(rows, columns)), random.normal(size=rows)

    label = f"least squares in a loop over rows, {rows} by {columns}"
    return Problem(label, residuals, residuals_with_care, arguments, Targets(careful=1.1))


def determinant(np, matrix):
    """By the cofactors of the first row."""
    if len(matrix) == 1:
        return matrix[0, 0]
    total = 0.0
    for j in range(len(matrix)):
        minor = np.concatenate([matrix[1:, :j], matrix[1:, j + 1 :]], axis=1)
        total = total + (-1) ** j * matrix[0, j] * determinant(np, minor)
    return total


def determinant_with_care(jax, matrix):
    """Each minor of the last rows once, by the set of its columns."""
    minors = {(j,): matrix[-1, j] for j in range(len(matrix))}
    for row in range(len(matrix) - 2, -1, -1):
        minors = {
            columns: sum(
                (-1) ** place * matrix[row, j] * minors[columns[:place] + columns[place + 1 :]]
                for place, j in enumerate(columns)
            )
            for columns in _subsets(len(matrix), len(matrix) - row)
        }
    (result,) = minors.values()
    return result


def _subsets(count: int, size: int) -> list[tuple[int, ...]]:
    return list(itertools.combinations(range(count), size))


def determinant_problem(size: int) -> Problem:
    label = f"determinant by cofactors, {size} by {size}"
    return Problem(
        label,
        determinant,
        determinant_with_care,
        lambda random: (random.normal(size=(size, size)),),
        Targets(careful=1.1),
        is_for_jax=size < 5,
    )


def problems() -> list[Problem]:
    return [kernel_problem(300, 50), residuals_problem(100, 50), determinant_problem(6)]


def small_problems() -> list[Problem]:
    return [kernel_problem(5, 3), residuals_problem(4, 3), determinant_problem(3)]
