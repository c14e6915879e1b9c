"""Sparse Jacobians and Hessians, beside asdex, sparsejac, CasADi and, where they fit, the dense ones of JAX.

Each is called with arrays of its own library; ftrans with those of NumPy and, as peers on JAX are, with those of JAX.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Mapping
from typing import Any

import numpy

from .harness import (
    MISSING,
    Contender,
    Disagreement,
    Row,
    Table,
    Timings,
    Verdict,
    clock,
    show_seconds,
    time_side_by_side,
)
from .structured_libraries import (
    Derivative,
    Maker,
    asdex,
    casadi,
    ftrans,
    ftrans_on_jax,
    ftrans_unjitted,
    jax_dense,
    sparsejac,
)
from .structured_problems import (
    Structured,
    brusselator,
    bundle_adjustment,
    cart_pole_constraints,
    cart_pole_lagrangian,
    rosenbrock,
)

OURS: dict[str, Maker] = {"ftrans": ftrans, "ftrans, JAX arrays": ftrans_on_jax, "un-jitted": ftrans_unjitted}
CASADI: dict[str, Maker] = {"CasADi": casadi}
SPARSE: dict[str, Maker] = {**CASADI, "asdex": asdex, "sparsejac": sparsejac}
DENSE: dict[str, Maker] = {"jax": jax_dense}
TOLERANCE = 1e-9


def run() -> Table:
    rows = [
        *compare(brusselator(128), SPARSE, 0.2),
        *compare(rosenbrock(100_000), SPARSE, 0.25, prepared_in=1.0),
        # The colourings of the others take minutes.
        *compare(rosenbrock(1_000_000), CASADI, 0.25, prepared_in=8.0),
        *compare(cart_pole_constraints(100), SPARSE | DENSE, 0.9),
        *compare(cart_pole_constraints(2000), SPARSE, 0.5),
        *compare(cart_pole_lagrangian(100), SPARSE | DENSE, 0.4),
        *compare(cart_pole_lagrangian(2000), SPARSE, 0.2),
        *compare(bundle_adjustment(32_768), CASADI, 0.4, of_function=3.0),
    ]
    return Table("structure: entries of Jacobians and Hessians", rows)


def compare(
    problem: Structured,
    peers: Mapping[str, Maker],
    at_most: float,
    prepared_in: float | None = None,
    of_function: float | None = None,
) -> list[Row]:
    """One row for a call of what is prepared, and one for the preparation.

    Args:
        problem: what to differentiate.
        peers: who else does.
        at_most: the target, as a multiple of the quickest peer.
        prepared_in: a target for our preparation without compiling, in seconds.
        of_function: a target for a call, as a multiple of the function itself, compiled.
    """
    derivatives, prepared = prepare_all(problem, {**OURS, **peers})
    contenders = {name: Contender(d.entries, d.scope) for name, d in derivatives.items()}
    if of_function is not None:
        contenders["function"] = function_itself(problem)
    timings = time_side_by_side(contenders, seconds=4.0, patience=10.0)
    columns = {name: timings.typical(name) if name in contenders else prepared[name] for name in (*OURS, *peers)}
    best = quickest(timings, peers)
    subject = "ftrans" if best in CASADI else "ftrans, JAX arrays"
    verdicts = [timings.ratio(subject, best, at_most)]
    if of_function is not None:
        columns["function"] = timings.typical("function")
        verdicts.append(timings.ratio("ftrans", "function", of_function))
    return [Row(problem.label, columns, verdicts), Row("  preparation", prepared, preparation(prepared, prepared_in))]


def quickest(timings: Timings, peers: Mapping[str, Maker]) -> str:
    """The peer that takes least time."""
    there = [name for name in peers if name in timings.rounds]
    return min(there, key=lambda name: min(timings.rounds[name]), default=MISSING)


def prepare_all(
    problem: Structured, makers: Mapping[str, Maker]
) -> tuple[dict[str, Derivative], dict[str, float | str]]:
    """The derivatives of those that can do it and agree, and how long each took until its first entries."""
    derivatives: dict[str, Derivative] = {}
    seconds: dict[str, float | str] = {}
    reference: Any = None
    for name, maker in makers.items():
        gc.collect()
        found: list[Any] = []
        try:
            took = clock(functools.partial(until_first_entries, maker, problem, found), 1)
            derivative, entries = found
            if reference is None:
                reference = matrix_of(problem, derivative, entries)
            require_same(matrix_of(problem, derivative, entries), reference)
        except ModuleNotFoundError:
            seconds[name] = MISSING
        except Exception as error:
            seconds[name] = f"failed: {type(error).__name__}: {error}"
        else:
            derivatives[name], seconds[name] = derivative, took
    return derivatives, seconds


def until_first_entries(maker: Maker, problem: Structured, found: list[Any]) -> None:
    derivative = maker(problem)
    with derivative.scope():
        found[:] = derivative, numpy.asarray(derivative.entries()).ravel()


def preparation(prepared: Mapping[str, float | str], prepared_in: float | None) -> list[Verdict]:
    """With compiling, no longer than asdex; without, until the first entries, no longer than CasADi."""
    verdicts = [over(prepared, "ftrans", "asdex"), over(prepared, "un-jitted", "CasADi")]
    if prepared_in is not None:
        ours = prepared["un-jitted"]
        verdicts.append(Verdict(ours if isinstance(ours, float) else None, "un-jitted", prepared_in, show_seconds))
    return [verdict for verdict in verdicts if verdict.measured is not None]


def over(prepared: Mapping[str, float | str], ours: str, peer: str) -> Verdict:
    a, b = prepared.get(ours), prepared.get(peer)
    ratio = a / b if isinstance(a, float) and isinstance(b, float) else None
    return Verdict(ratio, f"{peer} ({ours})", 1.0, "{:.2f}x".format)


def matrix_of(problem: Structured, derivative: Derivative, entries: numpy.ndarray) -> Any:
    """The entries that are wanted and not zero, of which a dense matrix has many."""
    from scipy.sparse import coo_array, csr_array

    rows, cols = derivative.rows, derivative.cols
    kept = (entries != 0) & (rows >= cols) if problem.lower else entries != 0
    return csr_array(coo_array((entries[kept], (rows[kept], cols[kept]))))


def require_same(matrix: Any, reference: Any) -> None:
    error, scale = abs(matrix - reference).max(), abs(reference).max()
    if not error <= TOLERANCE * scale:
        raise Disagreement(f"off by {error:.2g} where entries are at most {scale:.2g}")


def function_itself(problem: Structured) -> Contender:
    """The function, compiled."""
    import ftrans as ft

    compiled = ft.jit(functools.partial(problem.function, numpy))
    return Contender(functools.partial(compiled, problem.start))
