"""SciPy's solvers with derivatives filled in: SciPy's results, and an account of what was used."""

from __future__ import annotations

import inspect
import math
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from scipy.optimize import rosen, rosen_der, rosen_hess
from scipy.sparse import issparse, linalg

import ftrans as ft
from ftrans.scipy import optimize
from ftrans.scipy.optimize.constraints import with_derivatives

START = np.array([1.3, 0.7, 0.8, 1.9, 1.2])
NEAR = np.full(5, 1.1)
GRADIENTS = ["CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP"]
HESSIANS = ["Newton-CG", "trust-ncg", "trust-krylov", "trust-exact", "dogleg", "trust-constr"]


def valley(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def circle(x: Any) -> Any:
    return x[0] ** 2 + x[1] ** 2


def plane(x: Any) -> Any:
    return x[0] + 2 * x[1]


CONSTRAINTS = [optimize.NonlinearConstraint, scipy.optimize.NonlinearConstraint]
LOWEST = -np.array([1.0, 2.0]) / math.sqrt(5)


FUNCTIONS = [
    "minimize", "least_squares", "root", "fsolve", "curve_fit", "differential_evolution", "NonlinearConstraint",
]  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_are_those_of_scipy(name: str) -> None:
    ours = inspect.signature(getattr(optimize, name)).parameters
    theirs = inspect.signature(getattr(scipy.optimize, name)).parameters
    added = [parameter for key, parameter in ours.items() if key not in theirs]
    assert [key for key in ours if key in theirs] == list(theirs)
    for key, parameter in theirs.items():
        assert (ours[key].default, ours[key].kind) == (parameter.default, parameter.kind)
    assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in added)


def test_other_names_are_those_of_scipy() -> None:
    assert optimize.linear_sum_assignment is scipy.optimize.linear_sum_assignment
    with pytest.raises(AttributeError):
        _ = optimize.no_such_solver


@pytest.mark.parametrize("method", [*GRADIENTS, *HESSIANS])
def test_results_are_those_of_scipy_with_derivatives_by_hand(method: str) -> None:
    start = NEAR if method == "dogleg" else START
    by_hand = {"jac": rosen_der, **({"hess": rosen_hess} if method in HESSIANS else {})}
    theirs = scipy.optimize.minimize(rosen, start, method=method, **by_hand)
    ours = optimize.minimize(valley, start, method=method)
    # The number of CG's steps depends on the last bits.
    assert np.allclose(ours.x, theirs.x, rtol=0, atol=1e-4)
    assert ours.nfev == pytest.approx(theirs.nfev, rel=0.2)
    assert 0 < ours.ftrans["jac"].evaluations <= ours.nfev
    assert ("hess" in ours.ftrans) == (method in HESSIANS)
    # What the solver knows of its last point; two return the gradient of an earlier one.
    gradient = ours["grad" if method == "trust-constr" else "jac"]
    assert method in ("SLSQP", "Newton-CG") or np.allclose(gradient, rosen_der(ours.x), rtol=1e-9, atol=1e-9)
    if "hess" in ours:
        assert np.allclose(ours.hess, rosen_hess(ours.x), rtol=1e-9)


def test_results_can_be_pickled() -> None:
    result = optimize.minimize(valley, START, method="Newton-CG")
    again = pickle.loads(pickle.dumps(result))
    assert again.ftrans == result.ftrans
    assert np.array_equal(again.x, result.x)


@pytest.mark.parametrize("method", ["BFGS", "trust-exact", "Newton-CG"])
def test_compiled(method: str) -> None:
    plain = optimize.minimize(valley, START, method=method, compile=False)
    compiled = optimize.minimize(valley, START, method=method, compile=True)
    assert np.allclose(plain.x, compiled.x, rtol=0, atol=1e-6)
    assert all(used.is_compiled for used in compiled.ftrans.values())
    assert not any(used.is_compiled for used in plain.ftrans.values())


def test_what_the_user_gives_wins() -> None:
    calls = []

    def gradient(x: Any) -> Any:
        calls.append(x)
        return rosen_der(x)

    result = optimize.minimize(valley, START, jac=gradient)
    assert result.njev == len(calls)
    assert result.ftrans == {}
    result = optimize.minimize(valley, START, jac="2-point")
    assert result.nfev > 5 * result.njev
    result = optimize.minimize(valley, START, method="trust-constr", hess=optimize.BFGS())
    assert set(result.ftrans) == {"jac"}
    result = optimize.minimize(lambda x: (rosen(x), rosen_der(x)), START, method="Newton-CG", jac=True)
    assert "jac" not in result.ftrans


def test_value_and_gradient_by_the_user_and_the_hessian_by_ftrans() -> None:
    def both(x: Any) -> Any:
        return np.sum((x - 1) ** 4 + x**2), 4 * (x - 1) ** 3 + 2 * x

    result = optimize.minimize(both, np.zeros(3), method="trust-exact", jac=True)
    assert set(result.ftrans) == {"hess"}
    assert result.success


def test_arguments_and_callbacks() -> None:
    seen: list[Any] = []
    result = optimize.minimize(lambda x, a, b: np.sum(a * (x - b) ** 2), np.zeros(2), (2.0, np.array([1.0, 3.0])),
                               callback=lambda xk: seen.append(xk))  # fmt: skip
    assert np.allclose(result.x, [1, 3])
    assert len(seen) == result.nit
    result = optimize.minimize(lambda x, a: np.sum((x - a) ** 2), 0.0, 5.0, method="Newton-CG")
    assert np.allclose(result.x, [5])


def test_large_dense_hessians_become_products() -> None:
    result = optimize.minimize(lambda x: np.sum(np.cosh(x)) + np.sum(x) ** 2, np.ones(80), method="trust-ncg")
    assert np.allclose(result.x, 0, atol=1e-5)
    assert set(result.ftrans) == {"jac", "hessp"}


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
@pytest.mark.parametrize(
    "constraint",
    [
        {"type": "eq", "fun": lambda x: circle(x) - 1},
        {"type": "eq", "fun": lambda x, r: [circle(x) - r], "args": (1.0,)},
        optimize.NonlinearConstraint(circle, 1.0, 1.0),
        scipy.optimize.NonlinearConstraint(circle, 1.0, 1.0),
    ],
    ids=["dictionary", "arguments", "ours", "SciPy's"],
)
def test_constraints(method: str, constraint: Any) -> None:
    result = optimize.minimize(plane, [-1.0, 0.5], method=method, constraints=constraint)
    assert np.allclose(result.x, LOWEST, atol=1e-4)
    assert result.ftrans["jac of constraint"].evaluations > 0
    assert ("hess of constraint" in result.ftrans) == (method == "trust-constr")


@pytest.mark.parametrize("n", [4, 120])
def test_derivatives_of_constraints(n: int) -> None:
    def f(x: Any) -> Any:
        return x[1:] * x[:-1] ** 2

    def total(x: Any, v: Any) -> Any:
        return np.sum(v * f(x))

    x, v = np.linspace(1, 2, n), np.cos(np.arange(n - 1.0))
    account: dict[str, Any] = {}
    filled, is_sparse = with_derivatives([optimize.NonlinearConstraint(f, 0, 1)], np.ones(n), True, account, None)
    assert is_sparse == (n == 120)
    for at in (x, x + 1):
        J, H = filled[0].jac(at), filled[0].hess(at, v)
        assert np.allclose(J.toarray() if is_sparse else J, ft.jacobian(f)(at), rtol=1e-12)
        assert np.allclose(H.toarray() if is_sparse else H, ft.hessian(total)(at, v), rtol=1e-12)
    assert account["hess of constraint 0"].evaluations == 2


def test_dense_hessians_of_constraints_become_products() -> None:
    def f(x: Any) -> Any:
        return np.stack([np.sum(x) ** 3, np.sum(x**4)])

    x, v, p = np.linspace(1, 2, 60), np.array([2.0, -3.0]), np.sin(np.arange(60.0))
    filled, _ = with_derivatives(optimize.NonlinearConstraint(f, 0, 1), x, True, {}, None)
    exact = ft.hessian(lambda x: np.sum(v * f(x)))(x)
    assert np.allclose(filled.hess(x, v) @ p, exact @ p, rtol=1e-12)


def test_derivatives_of_constraints_that_are_given_are_used() -> None:
    calls = []

    def jac(x: Any) -> Any:
        calls.append(x)
        return 2 * x

    explicit = optimize.NonlinearConstraint(circle, 1.0, 1.0, jac=jac, hess=optimize.BFGS())
    result = optimize.minimize(plane, [-1.0, 0.5], method="trust-constr", constraints=explicit)
    assert calls
    assert not any("constraint" in name for name in result.ftrans)
    differences = optimize.NonlinearConstraint(circle, 1.0, 1.0, jac="2-point")
    stepped = [c(circle, 1.0, 1.0, finite_diff_rel_step=1e-7) for c in CONSTRAINTS]
    for constraint in (differences, *stepped):
        # SciPy warns that this method ignores the step.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optimize.OptimizeWarning)
            result = optimize.minimize(plane, [-1.0, 0.5], method="SLSQP", constraints=[constraint])
        assert set(result.ftrans) == {"jac"}


def test_a_pattern_asks_for_a_sparse_jacobian() -> None:
    for kind in CONSTRAINTS:
        constraint = kind(circle, 1.0, 1.0, finite_diff_jac_sparsity=np.ones((1, 2)))
        result = optimize.minimize(plane, [-1.0, 0.5], method="trust-constr", constraints=constraint)
        assert np.allclose(result.x, LOWEST, atol=1e-4)
        assert result.ftrans["jac of constraint"].entries == 2


def test_linear_constraints_and_bounds() -> None:
    constraints = [optimize.LinearConstraint([[1.0, 1.0]], 1.0, 1.0), optimize.NonlinearConstraint(circle, 0.0, 4.0)]
    result = optimize.minimize(
        lambda x: np.sum((x - 2) ** 2), [0.5, 0.5], method="trust-constr", constraints=constraints,
        bounds=optimize.Bounds([0.0, 0.7], [2.0, 2.0]),
    )  # fmt: skip
    assert np.allclose(result.x, [0.3, 0.7], atol=1e-3)


def test_functions_that_cannot_be_traced_are_left_to_scipy() -> None:
    def cosine(x: Any) -> float:
        return math.cos(x[0])

    theirs, ours = scipy.optimize.minimize(cosine, [1.0]), optimize.minimize(cosine, [1.0])
    assert np.array_equal(ours.x, theirs.x)
    assert "float() of a traced value" in str(ours.ftrans["jac"])
    assert ours.ftrans["jac"].engine == ""


def test_errors_say_why_a_derivative_is_missing() -> None:
    with pytest.raises(ValueError, match="Jacobian is required") as caught:
        optimize.minimize(lambda x: math.cos(x[0]), [1.0], method="Newton-CG")
    assert any("ftrans found no jac for minimize: TypeError: float()" in note for note in caught.value.__notes__)


def test_paths_that_depend_on_values_are_followed() -> None:
    def bent(x: Any) -> Any:
        return (x[0] - 1) ** 2 if x[0] > 0.5 else (x[0] - 1) ** 2 + 10 * (0.5 - x[0]) ** 2

    for compile in (False, True):
        result = optimize.minimize(bent, [-2.0], compile=compile)
        assert np.allclose(result.x, [1], atol=1e-6)


def test_functions_that_change_while_they_are_minimized() -> None:
    center = np.zeros(2)

    def f(x: Any) -> Any:
        return np.sum((x - center) ** 4 + (x - center) ** 2)

    def move(_: Any) -> None:
        center[:] = 1.0

    followed = optimize.minimize(f, [3.0, 4.0], callback=move)
    assert np.allclose(followed.x, 1, atol=1e-3)
    center[:] = 0.0
    with pytest.warns(RuntimeWarning, match="the function behind jac depends on something that has changed"):
        optimize.minimize(f, [3.0, 4.0], callback=move, compile=True)


def test_rounding_is_not_taken_for_a_change() -> None:
    def chaotic(p: Any) -> Any:
        x, orbit = 0.3, []
        for _ in range(200):
            x = np.sin(p[0] * x) * np.exp(-0.1 * x) * p[0] / 2
            orbit.append(x)
        return np.array(orbit)

    # A warning would be an error.
    assert optimize.least_squares(chaotic, [3.9], compile=True, max_nfev=5).ftrans["jac"].is_compiled


def test_errors_are_those_of_scipy() -> None:
    with pytest.raises(ValueError, match="'x0' must only have one dimension"):
        optimize.minimize(valley, np.ones((2, 2)))
    with pytest.raises(ValueError, match="Unknown solver"):
        optimize.minimize(valley, START, method="no such method")
    with pytest.raises(ZeroDivisionError):
        optimize.minimize(lambda x: 1 / 0, START)


def test_a_start_by_names_is_for_argmin() -> None:
    def minimum(center: Any) -> Any:
        return optimize.minimize(lambda p: (p["x"] - center) ** 2, {"x": 1.0}).x

    for call in (minimum, ft.grad(minimum)):
        with pytest.raises(TypeError, match=r"not a dict; ft.argmin\(f, x0\) minimises .*\n  at .*test_scipy_optimize"):
            call(2.0)


def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    result = optimize.minimize(valley, START, progress="down")
    shown = capsys.readouterr().err
    assert "down" in shown
    assert f"{result.nfev}it" in shown


# Least squares and roots

TIMES = np.linspace(0, 4, 50)
DATA = 2.5 * np.exp(-1.3 * TIMES) + 0.5 + 0.05 * np.cos(40 * TIMES)


def decay(t: Any, a: Any, b: Any, c: Any) -> Any:
    return a * np.exp(-b * t) + c


def residuals(p: Any, data: Any = DATA) -> Any:
    return decay(TIMES, *p) - data


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize(
    "options",
    [{}, {"method": "lm"}, {"method": "dogbox", "bounds": ([0, 0, 0], [3, 2, 1])}, {"loss": "huber"},
     {"tr_solver": "lsmr"}, {"args": (DATA,)}, {"kwargs": {"data": DATA}}],
    ids=lambda options: next(iter(options), "default"),
)  # fmt: skip
def test_least_squares(options: dict[str, Any], compile: bool) -> None:
    theirs = scipy.optimize.least_squares(residuals, np.ones(3), **options)
    ours = optimize.least_squares(residuals, np.ones(3), compile=compile, **options)
    assert np.allclose(ours.x, theirs.x, rtol=1e-6)
    assert ours.nfev <= theirs.nfev + 1
    if options.get("loss") is None:
        a, b, _ = ours.x
        exact = np.stack([np.exp(-b * TIMES), -a * TIMES * np.exp(-b * TIMES), np.ones(50)], axis=1)
        found = ours.jac.toarray() if issparse(ours.jac) else ours.jac
        assert np.allclose(found, exact, rtol=1e-12, atol=1e-12)
    assert ours.ftrans["jac"].is_compiled == compile
    assert ours.ftrans["jac"].evaluations >= 1


@pytest.mark.parametrize("options", [{"jac": "2-point"}, {"jac": "3-point"}, {"diff_step": 1e-7}], ids=str)
def test_differences_that_are_asked_for(options: dict[str, Any]) -> None:
    theirs = scipy.optimize.least_squares(residuals, np.ones(3), **options)
    ours = optimize.least_squares(residuals, np.ones(3), **options)
    assert np.array_equal(ours.x, theirs.x)
    assert ours.ftrans == {}


@pytest.mark.parametrize("method", ["hybr", "lm", "krylov"])
@pytest.mark.parametrize("transposed", [False, True])
def test_root(method: str, transposed: bool) -> None:
    def f(x: Any, a: float) -> list[Any]:
        return [x[0] * np.cos(x[1]) - a, x[1] * x[0] - x[1] - 5]

    options = {"col_deriv": transposed} if method != "krylov" else {}
    theirs = scipy.optimize.root(f, [1.0, 1.0], (4.0,), method=method)
    ours = optimize.root(f, [1, 1], (4.0,), method=method, options=options)
    assert np.allclose(ours.x, theirs.x)
    assert ("jac" in ours.ftrans) == (method != "krylov")
    assert method == "krylov" or ours.nfev < theirs.nfev
    if method == "hybr":
        x, info, flag, _ = optimize.fsolve(f, [1, 1], 4.0, full_output=True, col_deriv=transposed)
        assert flag == 1
        assert np.allclose(x, theirs.x)
        assert info["ftrans"]["jac"].evaluations > 0


def test_fsolve_with_what_the_user_gives() -> None:
    def f(x: Any) -> Any:
        return x**2 - 2

    assert np.allclose(optimize.fsolve(f, 1.0), np.sqrt(2))
    _, info, *_ = optimize.fsolve(f, [1.0], fprime=lambda x: np.diag(2 * x), full_output=True)
    assert info["ftrans"] == {}
    _, info, *_ = optimize.fsolve(f, [1.0], epsfcn=1e-10, full_output=True)
    assert info["ftrans"] == {}


@pytest.mark.parametrize(
    "options",
    [{}, {"method": "trf"}, {"bounds": (0, [3, 2, 1])}, {"sigma": 0.1}, {"sigma": [0.1]},
     {"sigma": np.full(50, 0.1), "absolute_sigma": True}, {"sigma": 0.01 * np.eye(50)}, {"p0": [1, 1, 1]}],
    ids=lambda options: "-".join(options) or "default",
)  # fmt: skip
def test_curve_fit(options: dict[str, Any]) -> None:
    theirs = scipy.optimize.curve_fit(decay, TIMES, DATA, **options)
    ours = optimize.curve_fit(decay, list(TIMES), DATA, full_output=True, **options)
    assert np.allclose(ours[0], theirs[0], rtol=1e-6)
    assert np.allclose(ours[1], theirs[1], rtol=1e-5)
    assert ours[2]["ftrans"]["jac"].evaluations > 0


@pytest.mark.parametrize("compile", [False, True])
def test_curve_fit_leaves_out_missing_data(compile: bool) -> None:
    data = DATA.copy()
    data[3] = np.nan
    theirs = scipy.optimize.curve_fit(decay, TIMES, data, nan_policy="omit")
    ours = optimize.curve_fit(decay, TIMES, data, nan_policy="omit", compile=compile, progress=True)
    assert np.allclose(ours[0], theirs[0], rtol=1e-6)


def test_curve_fit_of_what_cannot_be_differentiated() -> None:
    def rounded(t: Any, a: float) -> Any:
        return np.array([math.sin(a) * float(s) for s in t])

    *_, info, _, _ = optimize.curve_fit(rounded, TIMES, 0.3 * TIMES, full_output=True)
    assert "float() of a traced value" in info["ftrans"]["jac"].reason
    *_, info, _, _ = optimize.curve_fit(lambda t, a: a, TIMES, DATA, full_output=True)
    assert "1 results for 50 data" in info["ftrans"]["jac"].reason


@pytest.mark.filterwarnings("ignore:delta_grad == 0.0")
def test_differential_evolution() -> None:
    bounds = [(0, 2)] * 3
    theirs = scipy.optimize.differential_evolution(rosen, bounds, rng=1, maxiter=20)
    for vectorized in (False, True):
        ours = optimize.differential_evolution(
            lambda x: np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2, axis=0),
            bounds, rng=1, maxiter=20, vectorized=vectorized, updating="deferred" if vectorized else "immediate",
        )  # fmt: skip
        assert np.allclose(ours.x, 1, atol=1e-4)
        assert np.allclose(theirs.x, 1, atol=1e-3)
    for seeded in ({"rng": 1}, {"seed": 1}):
        theirs, ours = (
            module.differential_evolution(rosen, bounds, maxiter=3, polish=False, **seeded)
            for module in (scipy.optimize, optimize)
        )
        assert np.array_equal(ours.x, theirs.x)
    constrained = optimize.differential_evolution(
        plane, [(-2, 2), (-2, 2)], rng=1, maxiter=5, constraints=optimize.NonlinearConstraint(circle, 0.9, 1.0)
    )
    assert np.allclose(constrained.x, LOWEST, atol=1e-3)


# Sparse derivatives


def chain(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.parametrize("method", ["Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"])
def test_sparse_hessians(method: str) -> None:
    start = np.full(80, 1.1)
    result = optimize.minimize(chain, start, method=method)
    theirs = scipy.optimize.minimize(rosen, start, method=method, jac=rosen_der, hess=rosen_hess)
    assert np.allclose(result.x, theirs.x, atol=1e-3)
    assert abs(result.nit - theirs.nit) <= 2
    assert result.ftrans["hess"].entries == 3 * 80 - 2
    assert result.ftrans["hess"].shape == (80, 80)


def test_sparse_hessians_of_compiled_functions_and_loops() -> None:
    def looped(x: Any) -> Any:
        return np.sum(ft.map(lambda a: (a - 1) ** 4, x)) + np.sum((x[1:] - x[:-1]) ** 2)

    for f in (ft.jit(chain), looped):
        result = optimize.minimize(f, np.full(60, 1.1), method="Newton-CG")
        assert result.success
        assert result.ftrans["hess"].entries == 3 * 60 - 2


def test_a_large_dense_hessian_is_never_made() -> None:
    # Its pattern alone would take gigabytes.
    result = optimize.minimize(lambda x: np.sum(x) ** 2 + np.sum(x**2), np.ones(30_000), method="Newton-CG")
    assert np.allclose(result.x, 0, atol=1e-5)
    assert "hess" not in result.ftrans


def test_sparse_jacobians_of_least_squares() -> None:
    def f(x: Any) -> Any:
        return np.concatenate([x[1:] - x[:-1] ** 2, x - 1])

    start = np.full(40, 0.5)
    dense = optimize.least_squares(f, start)
    assert dense.ftrans["jac"].entries is None
    for options in ({"tr_solver": "lsmr"}, {"jac_sparsity": np.ones((79, 40))}):
        sparse = optimize.least_squares(f, start, **options)
        assert sparse.ftrans["jac"].entries == 39 * 2 + 40
        assert np.allclose(sparse.x, dense.x, atol=1e-6)


def test_sparse_constraints_beside_linear_ones() -> None:
    n = 120
    curve = optimize.NonlinearConstraint(lambda x: x[1:] - np.sin(x[:-1]), 0.0, 0.0)
    ends = optimize.LinearConstraint(np.eye(n)[:1], 0.5, 0.5)
    result = optimize.minimize(
        lambda x: np.sum(np.cosh(x)), np.full(n, 0.3), method="trust-constr", constraints=[curve, ends]
    )
    expected = [0.5]
    for _ in range(n - 1):
        expected.append(math.sin(expected[-1]))
    assert np.allclose(result.x, expected, atol=1e-6)
    assert result.ftrans["jac of constraint 0"].entries == 2 * (n - 1)
    assert result.ftrans["hess of constraint 0"].entries == n - 1


def test_operators_serve_the_solvers_of_scipy() -> None:
    n = 60
    x, b = np.linspace(0.5, 1.5, n), np.sin(np.arange(n))

    def energy(x: Any) -> Any:
        return np.sum(np.cosh(x)) + np.sum((x[1:] - x[:-1]) ** 2)

    def f(x: Any) -> Any:
        return np.concatenate([x[1:] * x[:-1], 3 * x + x**3])

    H, J = ft.hessian(energy)(x), ft.jacobian(f)(x)
    of_energy, of_f = ft.sparse_hessian(energy).operator(x), ft.sparse_jacobian(f).operator(x)
    solution, flag = linalg.cg(of_energy, b, rtol=1e-12)
    assert flag == 0
    assert np.allclose(solution, np.linalg.solve(H, b))
    square = ft.sparse_jacobian(lambda x: f(x)[n - 1 :]).operator(x)
    solution, flag = linalg.gmres(square, b, rtol=1e-12)
    assert flag == 0
    assert np.allclose(solution, np.linalg.solve(J[n - 1 :], b))
    fit = linalg.lsmr(of_f, f(x), atol=1e-14, btol=1e-14)[0]
    assert np.allclose(fit, np.linalg.lstsq(J, f(x))[0])
    largest = linalg.eigsh(of_energy, k=2, return_eigenvectors=False)
    assert np.allclose(np.sort(largest), np.linalg.eigvalsh(H)[-2:])
