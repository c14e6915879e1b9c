"""Where fusion ends: which values of a program XLA computes once, where barriers are put in, and that results stay."""

import jax
import numpy as np
import pytest
from checks import assert_close

import ftrans as ft
from ftrans.core.program import Program
from ftrans.xla import Compiled, fastest, fusion

X = np.linspace(0.3, 1.7, 6)


def traced(f, *args) -> Program:
    return ft.trace(f)(*args)


def kept_names(f, limit: float, *args) -> list[str]:
    program = traced(f, *args)
    kept = fusion.kept_values(program, limit)
    return [eqn.primitive.name for eqn in program.eqns if eqn.outputs[0] in kept]


def barriers(program: Program, limit: float | None, *args) -> int:
    return str(Compiled(program, limit=limit).lower(*args).as_text()).count("optimization_barrier")


# Which values


def test_a_value_is_kept_if_what_its_users_repeat_exceeds_the_limit():
    def two_users(x):
        y = np.sin(x)
        return y * x, y + x

    def three_users(x):
        y = np.sin(x)
        return y * x, y + x, y

    # A function such as sin counts as ten additions.
    assert kept_names(two_users, 9, X) == ["sin"]
    assert kept_names(two_users, 10, X) == []
    assert kept_names(three_users, 19, X) == ["sin"]
    assert kept_names(three_users, 20, X) == []


def test_cheap_values_are_repeated():
    def cheap(x):
        y = x + 1.0
        return y * x, y / x

    assert kept_names(cheap, 0, X) == ["add"]
    assert kept_names(cheap, 1, X) == []


def test_an_equation_that_uses_a_value_twice_computes_it_once():
    assert kept_names(lambda x: np.sin(x) * np.sin(x), 0, X) == []


def test_work_adds_up_behind_a_value_until_one_is_kept():
    def chain(x):
        y = np.exp(np.sin(x))[1:]
        z = y * 2.0
        return z + 1.0, z - 1.0, y

    # The slice has the work of sin and exp and its own; z that of one product, since the slice is in memory.
    assert kept_names(chain, 20, X) == ["slice"]
    assert kept_names(chain, 0.9, X) == ["slice", "mul"]


def test_results_that_are_in_memory_anyway_are_no_work():
    def product(x):
        y = np.outer(x, x) @ x
        return y + 1.0, y - 1.0

    assert kept_names(product, 0, X) == []


def test_a_sum_is_as_much_work_as_its_elements():
    def total(x):
        y = np.sum(x, axis=1)
        return y + 1.0, y - 1.0

    assert kept_names(total, 99, np.ones((3, 100))) == ["reduce_sum"]
    assert kept_names(total, 101, np.ones((3, 100))) == []
    assert kept_names(lambda x: total(np.sin(x)), 1000, np.ones((3, 100))) == ["reduce_sum"]


def test_numbers_are_never_kept():
    def number(x):
        y = np.exp(np.sum(x))
        return y + x, y - x

    assert kept_names(number, 0, X) == []


# What is compiled


def shared(x):
    y = np.exp(np.sin(x))
    return y * x, y + x, np.cos(y)


def test_barriers_are_only_in_programs_with_a_limit():
    program = traced(shared, X)
    assert barriers(program, None, X) == 0
    assert barriers(program, 1e9, X) == 0
    assert barriers(program, 20, X) == 1


@pytest.mark.parametrize(("limit", "stays"), [(None, False), (20, True)])
def test_barriers_stay_in_the_executable(limit, stays):
    compiled = Compiled(traced(shared, X), limit=limit).lower(X).compile()
    assert ("opt-barrier" in compiled.as_text()) == stays


def test_what_is_called_has_barriers_and_loops_have_none():
    inner = ft.jit(lambda x: sum(shared(x)))

    def steps(x):
        return ft.fori_loop(0, 3, lambda i, y: sum(shared(y)) / 4.0, x) + inner(x)

    program = traced(steps, X)
    assert barriers(program, 20, X) == 1
    assert barriers(program, None, X) == 0
    assert_close(np.asarray(Compiled(program, limit=20)(X)[0]), np.asarray(Compiled(program)(X)[0]))


def test_programs_with_barriers_of_others_are_left_alone():
    """XLA cannot compile every loop with barriers that stay, and some end the process."""

    def steps(x):
        def step(carry, t):
            return ft.checkpoint(lambda y: np.sin(y) * t)(carry), None

        return sum(shared(ft.scan(step, x, np.linspace(0.5, 1.0, 4))[0]))

    gradient = traced(ft.grad(lambda x: np.sum(steps(x))), X)
    assert fusion.has_kept_values(gradient, 20)
    compiled, plain = Compiled(gradient, limit=20), Compiled(gradient)
    assert "opt-barrier" not in compiled.lower(X).compile().as_text()
    assert_close(np.asarray(compiled(X)[0]), np.asarray(plain(X)[0]))


def loss(x):
    def step(carry, t):
        carry = np.tanh(carry * t) + sum(shared(carry)) / 9.0
        return carry, np.sum(carry)

    carry, sums = ft.scan(step, x, np.linspace(0.5, 1.0, 4))
    chosen = ft.cond(np.sum(x) > 0, lambda x: sum(shared(x)), lambda x: x, x)
    kept = ft.checkpoint(lambda x: sum(shared(x)))(x)
    return np.sum(carry) + np.sum(sums**2) + np.sum(chosen * kept) + np.sum(np.log1p(np.linalg.norm(x) * x))


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_results_are_those_without_barriers(dtype):
    x = X.astype(dtype)
    programs = [traced(lambda x: sum(shared(x)), x)]
    if dtype == "float64":
        programs += [traced(f, x) for f in (loss, ft.grad(loss), ft.hessian(loss))]
    for program in programs:
        plain = Compiled(program)(x)
        for limit in (0, 20):
            for ours, reference in zip(Compiled(program, limit=limit)(x), plain, strict=True):
                assert ours.dtype == reference.dtype
                assert_close(np.asarray(ours), np.asarray(reference))


def test_donated_arguments_and_64_bit_types():
    compiled = Compiled(traced(lambda x: sum(shared(x)), X), donated=(0,), limit=20)
    with jax.enable_x64(True):
        x = jax.numpy.asarray(X)
    for _ in range(2):
        (x,) = compiled(x)
        assert x.dtype == "float64"
    y = sum(shared(X))
    assert_close(np.asarray(x), sum(shared(y)))
    assert not jax.config.jax_enable_x64


# Inside what JAX traces, the options of the executable are not ours


def test_within_jax_there_are_no_barriers():
    compiled = Compiled(traced(shared, X), limit=20)
    compiled(X)

    def outside(x):
        # Its own arguments may be arrays although JAX is tracing.
        return compiled(x)[0] + compiled(X)[1]

    with jax.enable_x64(True):
        text = jax.jit(outside).lower(X).as_text()
        result = jax.jit(outside)(X)
        mapped = jax.vmap(lambda x: compiled(x)[0])(np.stack([X, 2 * X]))
    assert "optimization_barrier" not in text
    assert_close(np.asarray(result), shared(X)[0] + shared(X)[1])
    assert_close(np.asarray(mapped), np.stack([shared(X)[0], shared(2 * X)[0]]))


def test_the_option_is_given_on_cpus_only(monkeypatch):
    can = fusion.can_keep_barriers.__wrapped__
    assert can()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert not can()


def test_the_users_own_flag_is_left_alone(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_disable_hlo_passes=fusion")
    assert not fusion.can_keep_barriers.__wrapped__()


def test_a_compiler_without_the_option_gets_no_barriers(monkeypatch):
    monkeypatch.setattr(fusion, "OPTIONS", {"xla_no_such_option": "x"})
    assert not fusion.can_keep_barriers.__wrapped__()
    monkeypatch.setattr("ftrans.xla.compiled.can_keep_barriers", lambda: False)
    compiled = Compiled(traced(shared, X), limit=20)
    assert "optimization_barrier" not in compiled.lower(X).as_text()
    assert_close(np.asarray(compiled(X)[0]), shared(X)[0])


def test_a_compiler_that_cannot_run_kernels_in_turn_keeps_barriers(monkeypatch):
    knows = fusion._knows_in_turn.__wrapped__
    assert knows()
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_DEFAULT")
    assert not knows()
    monkeypatch.delenv("XLA_FLAGS")
    monkeypatch.setattr(fusion, "IN_TURN", {"xla_no_such_option": "x"})
    assert not knows()
    monkeypatch.setattr(fusion, "_knows_in_turn", knows)
    assert fusion.options_with_barriers(traced(shared, X)) == fusion.OPTIONS


def test_kernels_of_small_programs_run_in_turn():
    small, large = traced(shared, X), traced(shared, np.ones(1_000_000))
    assert fusion.options_with_barriers(small) == fusion.OPTIONS | fusion.IN_TURN
    assert fusion.options_with_barriers(large) == fusion.OPTIONS
    assert fusion.usual_limit(small) < fusion.usual_limit(large)


# Where limits come from


def test_the_fastest_form_is_one_of_those_tried_and_has_the_same_results():
    program = traced(shared, X)
    best = fastest(program, [X], (None, 20.0, 1e9))
    # A limit that keeps nothing is no other form than none.
    assert best.limit in (None, 20.0)
    assert best.has_barriers == (best.limit == 20.0)
    for ours, reference in zip(best(X), shared(X), strict=True):
        assert_close(np.asarray(ours), reference)


@pytest.mark.parametrize("tune", [False, True])
def test_prepared_derivatives_store_what_entries_share(tune):
    def f(x):
        y = np.exp(np.sin(x))
        return y[1:] * y[:-1] + np.cos(y[1:])

    prepared = ft.sparse_jacobian(f).prepare(X, tune=tune)
    if not tune:
        assert "which keeps shared values" in prepared.explain()
    assert_close(prepared(2 * X).toarray(), ft.jacobian(f)(2 * X))


# Sums over leading axes


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int64, np.float16])
@pytest.mark.parametrize(("shape", "axes"), [((3, 20_000), (0,)), ((2, 3, 50, 400), (0, 1)), ((3, 40_000), (1,))])
def test_wide_sums_are_sums(dtype: type, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(scale=10, size=shape).astype(dtype)
    x.reshape(-1)[:4] = [1, 2, 0, 3] if np.dtype(dtype).kind == "i" else [np.inf, np.nan, -0.0, 1]
    found = ft.jit(lambda x: np.sum(x, axis=axes))(x)
    assert found.dtype == np.sum(x, axis=axes).dtype
    np.testing.assert_allclose(found, np.sum(x, axis=axes), rtol=1e-2 if dtype == np.float16 else 1e-5, atol=1e-4)


def test_wide_sums_are_products_and_their_derivatives() -> None:
    x = np.random.default_rng(0).normal(size=(4, 10_000))
    bias = x[0] / 2

    def f(bias, x):
        return np.sum(np.tanh(x + bias) ** 2)

    assert_close(ft.jit(ft.grad(f))(bias, x), ft.grad(f)(bias, x))
    program = ft.trace(ft.grad(f))(bias, x)
    assert "dot_general" in str(Compiled(program).lower(bias, x).as_text())
    assert "dot_general" not in str(
        Compiled(ft.trace(ft.grad(f))(bias[:9], x[:, :9])).lower(bias[:9], x[:, :9]).as_text()
    )
    total = jax.jit(jax.grad(lambda x: ft.jit(lambda x: np.sum(np.sum(x, 0) ** 2))(x)))(x)
    np.testing.assert_allclose(total, np.broadcast_to(2 * np.sum(x, 0), x.shape), rtol=1e-5, atol=1e-5)


def test_jit_keeps_the_fastest_form(monkeypatch):
    found = []

    def noted(program, args):
        found.append(fastest(program, args, (20.0,)))
        return found[-1]

    monkeypatch.setattr("ftrans.api.paths.fastest", noted)

    def f(x):
        y = np.exp(np.sin(x))
        return y[1:] * y[:-1] + np.cos(y[1:])

    tuned = ft.jit(f, tune=True)
    for x in (X, 2 * X):
        assert_close(tuned(x), f(x))
    assert len(found) == 1
    assert_close(tuned(X[:3]), f(X[:3]))
    assert len(found) == 2
    assert_close(ft.jit(ft.grad(lambda x: np.sum(tuned(x))))(X), ft.grad(lambda x: np.sum(f(x)))(X))
    # Donated arguments are there for each trial.
    with jax.enable_x64(True):
        donating = ft.jit(lambda x: x * np.sum(f(x)), tune=True, donate_argnums=0)
        assert_close(np.asarray(donating(jax.numpy.asarray(X))), X * np.sum(f(X)))
    assert len(found) == 3
    np.testing.assert_allclose(jax.jit(ft.jit(f, tune=True))(X.astype(np.float32)), f(X), rtol=1e-5)
    assert len(found) == 3


def test_forms_are_not_tried_where_the_host_would_take_part(monkeypatch):
    monkeypatch.setattr("ftrans.api.paths.fastest", lambda *_: pytest.fail("tried"))

    def f(x):
        return ft.scan(lambda y, x: (y + np.sin(x), None), 0.0, x, progress=True)[0]

    assert_close(ft.jit(f, tune=True)(X), np.sum(np.sin(X)))
