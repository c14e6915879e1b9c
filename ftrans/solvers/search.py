"""Search: how `root`, `fixed_point` and `argmin` look for a solution, and what they say where there is none."""

from __future__ import annotations

from typing import NamedTuple

from .linear_primitive import LinearMethod


class Search(NamedTuple):
    """How a root is looked for.

    Attributes:
        what: the function that the user called, for messages.
        method: "newton"; "iteration" of x - residual(x); "program", of which the guide is one; "minimize", of which the
            guide is the objective; or the name of a solver of `scipy.optimize.root`, for which compiled programs take
            "newton".
        tol: accuracy of x, and of the residual relative to that at the start.
        atol: the norm of the residual that is accepted in any case, if there is one.
        maxiter: the most iterations.
        damping: the factor of the steps of "iteration".
        memory: over how many steps "iteration" is accelerated.
        minimizer: the solver of `scipy.optimize.minimize` for "minimize"; compiled programs have their own.
        linear: how the linear equations of Newton steps and derivatives are solved; None eliminates.
    """

    what: str
    method: str
    tol: float
    atol: float | None
    maxiter: int
    damping: float = 1.0
    memory: int = 0
    minimizer: str | None = None
    linear: LinearMethod | None = None

    def failure(self) -> str:
        """The message for a root that was not found."""
        equation = {"fixed_point": "x - f(x)", "argmin": "the gradient of f (and of its constraints)"}
        return (
            f"{self.what} did not find a solution: after {{iterations}} steps the norm of "
            f"{equation.get(self.what, 'f(x)')} is {{residual}} (tol={self.tol:g} relative to the start, "
            f"{'' if self.atol is None else f'atol={self.atol:g}, '}maxiter={self.maxiter}), and Newton steps do not "
            "lead to a root. Start closer with x0=, allow more with maxiter=, tol= or atol=, or ask with info=True "
            "what was reached"
            + (". It may be that f has no minimum there, but a saddle or no lower bound" * (self.what == "argmin"))
        )

    def singular(self) -> str:
        """The message for a root that has no derivative."""
        return (
            f"the derivative of {self.what} is not defined here: no solution was found, or the Jacobian at the "
            "solution is singular or jumps (a multiple root or a kink, where the implicit function theorem does not "
            "hold); the norm of the residual is {residual}. Give the problem a solution that is isolated and is "
            "smooth there, or stop the derivative with stop_gradient"
        )
