"""Losses: values against formulas written out, derivatives, special targets, and errors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

import ftrans as ft
import ftrans.nn.functional as F
from ftrans import autograd
from ftrans.testing import check_grads

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 4))
P, Q = RNG.uniform(0.1, 0.9, size=(3, 4)), RNG.uniform(0.1, 0.9, size=(3, 4))
SIGNS = np.array([[1.0, -1.0, 1.0, -1.0], [-1.0, -1.0, 1.0, 1.0], [1.0, 1.0, 1.0, -1.0]])
COUNTS = np.array([[0.0, 1.0, 2.0, 3.0]] * 3)
CLASSES = np.array([2, 0, 3])
W = np.array([0.5, 1.0, 2.0, 3.0])
INF = math.inf
LOG = scipy.special.log_softmax(X, 1)


def picked(x: Any, classes: Any) -> Any:
    """The element of each row that `classes` says."""
    return np.array([row[i] for row, i in zip(x, classes, strict=True)])


def hinge(x: Any) -> Any:
    return np.maximum(x, 0)


def margins(p: int, weights: Any = (1.0,) * 4) -> Any:
    return [
        sum(weights[t] * max(0, 1 - row[t] + row[i]) ** p for i in range(4) if i != t) / 4
        for row, t in zip(X, CLASSES, strict=True)
    ]


D = X - Y
NORMS = np.linalg.norm(X, axis=1), np.linalg.norm(Y, axis=1)
COSINE = (X * Y).sum(1) / NORMS[0] / NORMS[1]


def distance(a: Any, b: Any) -> Any:
    return np.linalg.norm(a - b + 1e-6, axis=-1)


# Name, arguments of which the floating-point ones up to a number are differentiated, options, elements of the loss
LOSSES: list[tuple[str, tuple[Any, ...], int, dict[str, Any], Any]] = [
    ("mse_loss", (X, Y), 2, {}, D**2),
    ("l1_loss", (X, Y), 2, {}, abs(D)),
    ("smooth_l1_loss", (X, Y), 2, {}, np.where(abs(D) < 1, D**2 / 2, abs(D) - 0.5)),
    ("smooth_l1_loss", (X, Y), 2, {"beta": 0.5}, np.where(abs(D) < 0.5, D**2, abs(D) - 0.25)),
    ("smooth_l1_loss", (X, Y), 2, {"beta": 0.0}, abs(D)),
    ("huber_loss", (X, Y), 2, {"delta": 0.5}, np.where(abs(D) < 0.5, D**2 / 2, 0.5 * (abs(D) - 0.25))),
    ("cross_entropy", (X, CLASSES), 1, {}, -picked(LOG, CLASSES)),
    ("cross_entropy", (X, Q), 2, {}, -(LOG * Q).sum(1)),
    ("cross_entropy", (X, Q, W), 2, {}, -(LOG * Q * W).sum(1)),
    ("cross_entropy", (X, Q), 2, {"label_smoothing": 0.2}, -(LOG * (0.8 * Q + 0.05)).sum(1)),
    ("nll_loss", (X, CLASSES), 1, {}, -picked(X, CLASSES)),
    ("binary_cross_entropy", (P, Q), 2, {}, -(Q * np.log(P) + (1 - Q) * np.log(1 - P))),
    ("binary_cross_entropy", (P, Q, W), 2, {}, -W * (Q * np.log(P) + (1 - Q) * np.log(1 - P))),
    (
        "binary_cross_entropy_with_logits", (X, Q), 2, {"pos_weight": W},
        -(W * Q * scipy.special.log_expit(X) + (1 - Q) * scipy.special.log_expit(-X)),
    ),
    ("soft_margin_loss", (X, SIGNS), 1, {}, np.log1p(np.exp(-X * SIGNS))),
    (
        "multilabel_soft_margin_loss", (X, (SIGNS > 0) * 1.0), 1, {},
        np.log1p(np.exp(-X * SIGNS)).mean(1),
    ),
    ("multi_margin_loss", (X, CLASSES), 1, {}, margins(1)),
    ("multi_margin_loss", (X, CLASSES), 1, {"p": 2, "weight": W}, margins(2, W)),
    ("kl_div", (np.log(P), Q), 2, {}, Q * (np.log(Q) - np.log(P))),
    ("kl_div", (np.log(P), np.log(Q)), 2, {"log_target": True}, Q * (np.log(Q) - np.log(P))),
    ("poisson_nll_loss", (X, COUNTS), 1, {}, np.exp(X) - COUNTS * X),
    ("poisson_nll_loss", (P, COUNTS), 1, {"log_input": False}, P - COUNTS * np.log(P + 1e-8)),
    ("gaussian_nll_loss", (X, Y, P), 3, {"full": True}, -scipy.stats.norm.logpdf(Y, X, np.sqrt(P))),
    ("gaussian_nll_loss", (X, Y, P[:, 0]), 3, {}, (np.log(P[:, :1]) + D**2 / P[:, :1]) / 2),
    ("margin_ranking_loss", (X, Y, SIGNS), 2, {"margin": 0.3}, hinge(0.3 - SIGNS * D)),
    ("hinge_embedding_loss", (X, SIGNS), 1, {"margin": 0.8}, np.where(SIGNS > 0, X, hinge(0.8 - X))),
    ("cosine_embedding_loss", (X, Y, SIGNS[:, 0]), 2, {}, np.where(SIGNS[:, 0] > 0, 1 - COSINE, hinge(COSINE))),
    ("triplet_margin_loss", (X, Y, P), 3, {}, hinge(1 + distance(X, Y) - distance(X, P))),
    (
        "triplet_margin_loss", (X, Y, P), 3, {"swap": True},
        hinge(1 + distance(X, Y) - np.minimum(distance(X, P), distance(Y, P))),
    ),
]  # fmt: skip
EACH = pytest.mark.parametrize(
    ("name", "args", "active", "options", "elements"), LOSSES, ids=lambda v: v if isinstance(v, str) else ""
)


@EACH
def test_values(name: str, args: tuple[Any, ...], active: int, options: dict[str, Any], elements: Any) -> None:
    f = getattr(F, name)
    elements = np.asarray(elements)
    for reduction, expected in [("none", elements), ("sum", elements.sum()), ("mean", elements.mean())]:
        np.testing.assert_allclose(f(*args, reduction=reduction, **options), expected, rtol=1e-9)
    single = [x.astype(np.float32) if x.dtype.kind == "f" else x for x in args]
    weights = {k: v.astype(np.float32) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    assert f(*single, **weights).dtype == np.float32
    program = ft.trace(lambda *xs: f(*xs, *single[active:], **weights))(*single[:active])
    assert "float64" not in {v.type.dtype.name for eqn in program.eqns for v in eqn.outputs}
    with pytest.raises(ValueError, match=f"reduction of .*{name}.* must be .*not 'avg'"):
        f(*args, reduction="avg", **options)


@EACH
def test_derivatives(name: str, args: tuple[Any, ...], active: int, options: dict[str, Any], elements: Any) -> None:
    f: Callable[..., Any] = lambda *xs: getattr(F, name)(*xs, *args[active:], **options)  # noqa: E731
    check_grads(f, *args[:active])
    tensors = [autograd.tensor(x, requires_grad=True) for x in args[:active]]
    f(*tensors).backward()
    for tensor, expected in zip(tensors, ft.grad(f, tuple(range(active)))(*args[:active]), strict=True):
        assert tensor.grad is not None
        np.testing.assert_allclose(tensor.grad.numpy(), expected, rtol=1e-9, atol=1e-14)


def test_compiled_losses() -> None:
    def total(x: Any, y: Any, p: Any, classes: Any) -> Any:
        return (
            F.cross_entropy(x, classes, label_smoothing=0.1)
            + F.binary_cross_entropy(p, p * 0.5)
            + F.binary_cross_entropy_with_logits(x, p)
            + F.huber_loss(x, y)
            + F.kl_div(x, p, "batchmean")
            + F.triplet_margin_loss(x, y, p)
        )

    g = ft.value_and_grad(total, (0, 1, 2))
    (value, gradients), (expected, wanted) = ft.jit(g)(X, Y, P, CLASSES), g(X, Y, P, CLASSES)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(gradients, wanted, rtol=1e-10, atol=1e-13)


# Classes


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weight", [None, W])
def test_cross_entropy_of_pictures_with_ignored_places(smoothing: float, weight: Any) -> None:
    x = RNG.normal(size=(2, 4, 3, 2))
    target = RNG.integers(0, 4, size=(2, 3, 2))
    target[0, 1, 1] = target[1, 2, 0] = -100
    factors = np.ones(4) if weight is None else weight
    losses, weights = np.zeros(target.shape), np.zeros(target.shape)
    for i, j, k in np.ndindex(*target.shape):
        t = target[i, j, k]
        if t != -100:
            logs = scipy.special.log_softmax(x[i, :, j, k])
            losses[i, j, k] = -(1 - smoothing) * factors[t] * logs[t] - smoothing / 4 * (factors * logs).sum()
            weights[i, j, k] = factors[t]
    f = lambda x, reduction="mean": F.cross_entropy(  # noqa: E731
        x, target, weight, reduction=reduction, label_smoothing=smoothing
    )
    np.testing.assert_allclose(f(x, "none"), losses)
    np.testing.assert_allclose(f(x, "sum"), losses.sum())
    np.testing.assert_allclose(f(x), losses.sum() / weights.sum())
    check_grads(f, x)


def test_one_sample_has_no_axis() -> None:
    np.testing.assert_allclose(F.cross_entropy(X[0], np.array(2)), -LOG[0, 2])
    np.testing.assert_allclose(F.cross_entropy(X[0], Q[0]), -(LOG[0] * Q[0]).sum())
    np.testing.assert_allclose(F.nll_loss(X[0], np.array(2)), -X[0, 2])
    np.testing.assert_allclose(F.multi_margin_loss(X[0], np.array(2)), margins(1)[0])


@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
def test_nothing_but_ignored_elements(loss: Any) -> None:
    target = np.full(3, -100)
    value, gradient = ft.value_and_grad(lambda x: loss(x, target))(X)
    assert math.isnan(value)
    np.testing.assert_array_equal(gradient, 0)
    assert loss(X, target, reduction="sum") == 0
    assert math.isnan(loss(X, target, W))


def test_cross_entropy_of_certain_and_of_impossible_classes() -> None:
    x = np.array([[1000.0, 0.0, -np.inf]])
    for target, value in [(0, 0.0), (1, 1000.0)]:
        loss = lambda x, t=target: F.cross_entropy(x, np.array([t]))  # noqa: E731
        assert loss(x) == value
        np.testing.assert_allclose(ft.grad(loss)(x), [[1.0 - (target == 0), -1.0 * (target == 1), 0]])
    probabilities = np.array([[0.5, 0.5, 0.0]])
    value, gradient = ft.value_and_grad(lambda x: F.cross_entropy(x, probabilities))(x)
    assert value == 500
    np.testing.assert_allclose(gradient, [[0.5, -0.5, 0]])


def test_classes_out_of_range() -> None:
    for target in (np.array([0, 4, 1]), np.array([0, -1, 1])):
        with pytest.raises(IndexError, match=r"target\[1\] of cross_entropy is .* from 0 to 3, or -100 to be ignored"):
            F.cross_entropy(X, target)
        with pytest.raises(IndexError, match=r"target\[1\] of nll_loss"):
            ft.grad(lambda x, t=target: F.nll_loss(x, t))(X)  # type: ignore[misc]
        compiled = ft.jit(lambda x, t: F.cross_entropy(x, t, reduction="none"))
        np.testing.assert_array_equal(np.isnan(compiled(X, target)), [False, True, False])


def test_shapes_of_classes_that_do_not_fit() -> None:
    for call, message in [
        (lambda: F.cross_entropy(X, np.zeros(4, int)), r"target of cross_entropy must be of shape \(3,\)"),
        (lambda: F.cross_entropy(X, P[:2]), "arrays of the same shape"),
        (lambda: F.cross_entropy(X, CLASSES, W[:3]), r"4 classes, of shape \(4,\)"),
        (lambda: F.cross_entropy(X, CLASSES, label_smoothing=2.0), "from 0 to 1"),
        (lambda: F.multi_margin_loss(X, np.zeros(4, int)), r"\(N, C\) with target \(N,\)"),
        (lambda: F.multi_margin_loss(X, CLASSES, p=3), "must be 1 or 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def test_multilabel_margin_loss() -> None:
    target = np.array([[3, 0, -1, 1], [-1, 0, 1, 2], [0, 1, 2, 3]])
    expected = []
    for row, numbers in zip(X, target, strict=True):
        right = list(itertools.takewhile(lambda t: t >= 0, numbers))
        wrong = [i for i in range(4) if i not in right]
        expected.append(sum(max(0, 1 - (row[j] - row[i])) for j in right for i in wrong) / 4)
    np.testing.assert_allclose(F.multilabel_margin_loss(X, target, "none"), expected)
    np.testing.assert_allclose(F.multilabel_margin_loss(X[0], target[0]), expected[0])
    check_grads(lambda x: F.multilabel_margin_loss(x, target), X)


# Special values


def test_binary_cross_entropy_at_the_ends() -> None:
    p, t = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 0.0, 1.0, 1.0])
    np.testing.assert_array_equal(F.binary_cross_entropy(p, t, reduction="none"), [0, 100, 100, 0])
    for g in (ft.grad, lambda f: ft.jit(ft.grad(f))):
        np.testing.assert_allclose(g(lambda p: F.binary_cross_entropy(p, t, reduction="sum"))(p), [0, 1e12, -1e12, 0])
    with pytest.raises(ValueError, match="binary_cross_entropy_with_logits"):
        F.binary_cross_entropy(np.array([1.5]), np.array([1.0]))


def test_logits_of_any_size() -> None:
    x, t = np.array([1000.0, -1000.0, 1000.0, -1000.0]), np.array([1.0, 1.0, 0.0, 0.0])
    loss = lambda x: F.binary_cross_entropy_with_logits(x, t, reduction="sum")  # noqa: E731
    assert loss(x) == 2000
    np.testing.assert_array_equal(ft.grad(loss)(x), [0, -1, 1, 0])
    assert np.isfinite(ft.hessian(loss)(x)).all()


def test_kl_div_of_impossible_events() -> None:
    x, t = np.array([[-np.inf, 0.0]]), np.array([[0.0, 1.0]])
    value, gradient = ft.value_and_grad(lambda x: F.kl_div(x, t, "batchmean"))(x)
    assert value == 0
    np.testing.assert_array_equal(gradient, [[0, -1]])
    with np.errstate(divide="ignore"):
        assert F.kl_div(x, np.log(t), "sum", log_target=True) == 0
    assert F.kl_div(np.log(P), Q, "batchmean") == F.kl_div(np.log(P), Q, "sum") / 3


def test_equal_vectors_have_finite_derivatives() -> None:
    zeros = np.zeros((2, 3))
    for f in [
        lambda x: F.triplet_margin_loss(x, zeros, zeros),
        lambda x: F.cosine_embedding_loss(x, zeros, np.ones(2)),
        lambda x: np.sum(F.cosine_similarity(x, zeros + 1.0)),
        lambda x: np.sum(F.pairwise_distance(x, zeros, eps=0.0)),
        lambda x: np.sum(F.pdist(x)),
    ]:
        assert np.isfinite(ft.grad(f)(zeros)).all()


def test_variances_below_eps() -> None:
    f = lambda v: F.gaussian_nll_loss(np.zeros(2), np.ones(2), v, eps=0.5, reduction="sum")  # noqa: E731
    expected = 2 * (math.log(0.5) + 1 / 0.5) / 2
    np.testing.assert_allclose(f(np.zeros(2)), expected)
    np.testing.assert_allclose(ft.grad(f)(np.zeros(2)), (1 / 0.5 - 1 / 0.25) / 2)
    with pytest.raises(ValueError, match="negative variance"):
        f(np.array([-1.0, 1.0]))


def test_poisson_with_stirlings_formula() -> None:
    stirling = np.where(
        COUNTS > 1, COUNTS * np.log(COUNTS + 1e-99) - COUNTS + np.log(2 * np.pi * COUNTS + 1e-99) / 2, 0
    )
    full = F.poisson_nll_loss(X, COUNTS, full=True, reduction="none")
    np.testing.assert_allclose(full, np.exp(X) - COUNTS * X + stirling)


def test_weights_of_elements() -> None:
    np.testing.assert_allclose(F.mse_loss(X, Y, weight=P), (D**2 * P).sum() / P.sum())
    np.testing.assert_allclose(F.l1_loss(X, Y, "sum", weight=P), (abs(D) * P).sum())
    np.testing.assert_allclose(F.huber_loss(X, Y, weight=P, delta=9.0), (D**2 / 2 * P).mean())


@pytest.mark.parametrize("whole", [COUNTS.astype(np.int64), SIGNS > 0], ids=["counts", "booleans"])
@pytest.mark.parametrize(
    "loss",
    [
        F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.poisson_nll_loss, F.soft_margin_loss,
        F.multilabel_soft_margin_loss, F.hinge_embedding_loss, F.kl_div, F.binary_cross_entropy_with_logits,
        lambda x, t: F.margin_ranking_loss(x, 2 * x, t), lambda x, t: F.gaussian_nll_loss(x, t, abs(x)),
    ],
)  # fmt: skip
def test_targets_of_whole_numbers_widen_nothing(loss: Any, whole: Any) -> None:
    expected = loss(X.astype(np.float32), whole.astype(np.float32))
    for found in (loss(X.astype(np.float32), whole), ft.vmap(loss)(X.astype(np.float32), whole).mean()):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_weights_of_whole_numbers_widen_nothing() -> None:
    x, y, w = X.astype(np.float32), P.astype(np.float32), np.array([1, 2, 3, 4])
    for loss in (F.cross_entropy, F.nll_loss, F.multi_margin_loss):
        assert loss(x, CLASSES, weight=w).dtype == np.float32
        assert loss(x, CLASSES, weight=w) == loss(x, CLASSES, weight=w.astype(np.float32))
    for name in ("binary_cross_entropy", "binary_cross_entropy_with_logits", "multilabel_soft_margin_loss"):
        assert getattr(F, name)(y, y, weight=w).dtype == np.float32
    assert F.binary_cross_entropy_with_logits(x, y, pos_weight=w).dtype == np.float32
    assert F.mse_loss(x, y, weight=np.ones((3, 4), int)).dtype == np.float32


def test_infinite_differences_have_finite_derivatives() -> None:
    for loss in (F.smooth_l1_loss, F.huber_loss):
        assert ft.grad(loss)(np.array([-INF]), np.zeros(1)) == -1
        assert ft.jvp(lambda x, loss=loss: loss(x, 0.0), (np.array(INF),), (np.array(2.0),))[1] == 2  # type: ignore[misc]


def test_shapes_that_would_be_broadcast_by_mistake() -> None:
    with pytest.raises(ValueError, match=r"mse_loss .* input f64\[3,1\] and target f64\[3\]; NumPy would broadcast"):
        F.mse_loss(X[:, :1], Y[:, 0])
    with pytest.raises(ValueError, match="arrays of the same shape"):
        F.l1_loss(X, Y[:2])
    np.testing.assert_allclose(F.mse_loss(X, 0.0), (X**2).mean())


def test_arguments_that_make_no_sense() -> None:
    for call, message in [
        (lambda: F.smooth_l1_loss(X, Y, beta=-1.0), "cannot be negative"),
        (lambda: F.huber_loss(X, Y, delta=0.0), "must be positive"),
        (lambda: F.triplet_margin_loss(X, Y, P, margin=0.0), "must be positive"),
        (lambda: F.cross_entropy(X, np.array([1.0, 0.0, 2.0])), r"class indices, integers of shape \(3,\).*astype"),
        (lambda: F.cosine_embedding_loss(X, Y, SIGNS), r"\(N, D\) and target \(N,\)"),
        (lambda: F.gaussian_nll_loss(X, Y, P[:2]), "var of gaussian_nll_loss"),
        (lambda: F.binary_cross_entropy_with_logits(X, P, pos_weight=np.ones(3)), "pos_weight .* must broadcast"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


# CTC


def by_enumeration(probabilities: Any, labels: list[int], blank: int) -> float:
    """The probability of labels, by going through all alignments."""
    total = 0.0
    for path in itertools.product(range(probabilities.shape[1]), repeat=len(probabilities)):
        collapsed = [c for i, c in enumerate(path) if (i == 0 or c != path[i - 1]) and c != blank]
        if collapsed == labels:
            total += math.prod(probabilities[i, c] for i, c in enumerate(path))
    return total


@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize("labels", [[], [1], [1, 1], [3, 1], [1, 3, 1], [3, 3, 3]])
def test_ctc_is_a_sum_over_alignments(labels: list[int], blank: int) -> None:
    x = np.random.default_rng(len(labels)).normal(size=(5, 4))
    expected = -math.log(by_enumeration(scipy.special.softmax(x, 1), labels, blank))
    target = np.array(labels, int)
    f = lambda x: F.ctc_loss(F.log_softmax(x, 1), target, [5], [len(labels)], blank, "sum")  # noqa: E731
    np.testing.assert_allclose(f(x), expected, rtol=1e-12)
    check_grads(f, x)


def test_ctc_of_a_batch() -> None:
    x = F.log_softmax(RNG.normal(size=(6, 3, 4)), -1)
    targets, rows, counts = np.array([[1, 2, 9], [3, 3, 1], [2, 9, 9]]), np.array([6, 5, 3]), np.array([2, 3, 1])
    single = [
        F.ctc_loss(x[: rows[i], i], targets[i, : counts[i]], rows[i], counts[i], reduction="sum") for i in range(3)
    ]
    for args in [(targets, rows, counts), (np.array([1, 2, 3, 3, 1, 2]), rows, counts)]:
        np.testing.assert_allclose(F.ctc_loss(x, *args, reduction="none"), single)
        np.testing.assert_allclose(F.ctc_loss(x, *args), np.mean(np.array(single) / counts))
    assert F.ctc_loss(x.astype(np.float32), targets, rows, counts).dtype == np.float32
    f = ft.value_and_grad(lambda x, *args: F.ctc_loss(x, *args))
    value, gradient = ft.jit(f)(x, targets, rows, counts)
    np.testing.assert_allclose(value, F.ctc_loss(x, targets, rows, counts))
    np.testing.assert_allclose(gradient, f(x, targets, rows, counts)[1], atol=1e-12)
    np.testing.assert_array_equal(gradient[5, 1], 0)


def test_ctc_of_labels_that_do_not_fit() -> None:
    x = F.log_softmax(RNG.normal(size=(3, 2, 4)), -1)
    targets, rows, counts = np.array([[1, 1, 1], [1, 2, 3]]), np.array([3, 3]), np.array([3, 3])
    for zero in (False, True):
        f = lambda x, zero=zero: F.ctc_loss(x, targets, rows, counts, reduction="sum", zero_infinity=zero)  # noqa: E731
        value, gradient = ft.value_and_grad(f)(x)
        assert (value == np.inf) is not zero
        np.testing.assert_array_equal(gradient[:, 0], 0)
        np.testing.assert_allclose(gradient[:, 1], -np.eye(4)[1:4])
    impossible = np.full((3, 1, 3), -np.inf)
    impossible[:, :, 1] = 0
    for label, value in [(1, 0.0), (2, np.inf)]:
        loss, gradient = ft.value_and_grad(lambda x, t=label: F.ctc_loss(x, np.array([[t]]), [3], [1]))(impossible)
        assert loss == value
        assert np.isfinite(gradient).all()


def test_ctc_arguments_that_do_not_fit() -> None:
    x, targets = np.zeros((4, 2, 3)), np.array([[1, 2], [1, 1]])
    for error, args, message in [
        (ValueError, (targets, [4, 5], [2, 2]), "input_lengths of ctc_loss must be from 0 to 4"),
        (ValueError, (targets, [4, 4], [2, 3]), "target_lengths of ctc_loss must be from 0 to 2"),
        (ValueError, (targets, [4], [2, 2]), "2 integers, one for each sequence"),
        (ValueError, (targets[0], [4, 4], [2, 2]), "add up to 4, but there are 2 labels"),
        (ValueError, (targets * 0, [4, 4], [2, 2]), "contain the blank"),
        (IndexError, (targets * 5, [4, 4], [2, 2]), "must be from 0 to 2"),
        (TypeError, (targets * 1.0, [4, 4], [2, 2]), "must be integers"),
    ]:
        with pytest.raises(error, match=message):
            F.ctc_loss(x, *args)
    with pytest.raises(TypeError, match="known when it is traced"):
        ft.jit(lambda x, n: F.ctc_loss(x, targets.ravel(), [4, 4], n))(x, np.array([2, 2]))


# Against torch


def test_gradients_at_ties_and_labels_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    for name, args, options in [
        ("smooth_l1_loss", ([1.0, 0.0, -1.0], [0.0] * 3), {}),
        ("huber_loss", ([1.0, 0.0, -1.0], [0.0] * 3), {}),
        ("margin_ranking_loss", ([1.0, 0.0, -1.0], [0.0] * 3, [1.0, -1.0, 1.0]), {"margin": 1.0}),
        ("hinge_embedding_loss", ([1.0, 0.0, -1.0], [-1.0, -1.0, 1.0]), {}),
        ("l1_loss", ([0.0, 1.0], [0.0, 1.0]), {}),
    ]:
        tensors = [torch.tensor(x, dtype=torch.float64) for x in args]
        tensors[0].requires_grad_()
        getattr(torch.nn.functional, name)(*tensors, **options).backward()
        mine = ft.grad(lambda x, n=name, a=args, o=options: getattr(F, n)(x, *map(np.array, a[1:]), **o))(
            np.array(args[0])
        )
        np.testing.assert_allclose(mine, tensors[0].grad.numpy(), err_msg=name)
