"""Losses as layers; `ftrans.nn.functional` says what they compute.

All of them take `reduction`: "mean", "sum" or "none".  Weights that are given are buffers.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from ...base.source import at_line, user_line
from .. import functional as F
from ..cells import Buffer
from ..module import Module

Reduction = Literal["none", "mean", "sum"]


def _buffer(weight: Any) -> Buffer | None:
    return None if weight is None else Buffer(weight)


class _Loss(Module):
    """Losses, and all there is to say about those without other arguments."""

    _reductions: ClassVar[tuple[str, ...]] = ("none", "mean", "sum")

    def __init__(self, reduction: str = "mean") -> None:
        if reduction not in self._reductions:
            raise ValueError(
                f"reduction of {type(self).__name__} must be one of {', '.join(map(repr, self._reductions))}, not "
                f"{reduction!r}{at_line(user_line())}"
            )
        self.reduction = reduction


# Of numbers


class MSELoss(_Loss):
    """The square of differences.

    Args:
        reduction: "mean", "sum" or "none".

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> float(nn.MSELoss()(np.array([1.0, 2.0]), np.array([1.0, 4.0])))
        2.0
    """

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of two arrays of one shape."""
        return F.mse_loss(input, target, self.reduction)


class L1Loss(_Loss):
    """The magnitude of differences; the argument is that of `MSELoss`."""

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of two arrays of one shape."""
        return F.l1_loss(input, target, self.reduction)


class SmoothL1Loss(_Loss):
    """The magnitude of differences, rounded off by a parabola where it is below `beta`.

    Args:
        reduction: "mean", "sum" or "none".
        beta: where the parabola ends.
    """

    def __init__(self, reduction: Reduction = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of two arrays of one shape."""
        return F.smooth_l1_loss(input, target, self.reduction, self.beta)


class HuberLoss(_Loss):
    """`delta` times `SmoothL1Loss`: a parabola where differences are below `delta`, then straight lines.

    Args:
        reduction: "mean", "sum" or "none".
        delta: where the parabola ends.
    """

    def __init__(self, reduction: Reduction = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of two arrays of one shape."""
        return F.huber_loss(input, target, self.reduction, self.delta)


class PoissonNLLLoss(_Loss):
    """Minus the logarithm of Poisson probabilities, see `functional.poisson_nll_loss`.

    Args:
        log_input: whether inputs are logarithms of means.
        full: whether terms that depend on targets only are added.
        eps: what is added to means before the logarithm.
        reduction: "mean", "sum" or "none".
    """

    def __init__(
        self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: Reduction = "mean"
    ) -> None:
        super().__init__(reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Any, target: Any) -> Any:
        """The loss of means, or their logarithms, and counts."""
        return F.poisson_nll_loss(log_input, target, self.log_input, self.full, self.eps, self.reduction)


class GaussianNLLLoss(_Loss):
    """Minus the logarithm of normal densities, see `functional.gaussian_nll_loss`.

    Args:
        full: whether the constant term is added.
        eps: the least variance.
        reduction: "mean", "sum" or "none".
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Any, target: Any, var: Any) -> Any:
        """The loss of means, targets and variances."""
        return F.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


# Of classes


class CrossEntropyLoss(_Loss):
    """Minus the logarithm of the softmax of scores at the true class, see `functional.cross_entropy`.

    Args:
        weight: a factor for each class.
        ignore_index: a target that does not count.
        reduction: "mean", "sum" or "none".
        label_smoothing: how much of the probability of each target is spread over all classes.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> round(float(nn.CrossEntropyLoss()(np.zeros((2, 10)), np.array([3, 5]))), 4)
        2.3026
    """

    def __init__(
        self,
        weight: Any = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        self.weight = _buffer(weight)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of scores (N, C, ...) and classes (N, ...), or probabilities (N, C, ...)."""
        return F.cross_entropy(input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


class NLLLoss(_Loss):
    """Minus the logarithm of the probability of the true class, see `functional.nll_loss`.

    Args:
        weight: a factor for each class.
        ignore_index: a target that does not count.
        reduction: "mean", "sum" or "none".
    """

    def __init__(self, weight: Any = None, ignore_index: int = -100, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.weight = _buffer(weight)
        self.ignore_index = ignore_index

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of logarithms of probabilities (N, C, ...) and classes (N, ...)."""
        return F.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


class BCELoss(_Loss):
    """Cross entropy of probabilities of two classes, see `functional.binary_cross_entropy`.

    Args:
        weight: factors, of a shape that broadcasts to that of inputs.
        reduction: "mean", "sum" or "none".
    """

    def __init__(self, weight: Any = None, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.weight = _buffer(weight)

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of probabilities and targets from 0 to 1."""
        return F.binary_cross_entropy(input, target, self.weight, self.reduction)


class BCEWithLogitsLoss(_Loss):
    """`BCELoss` of the sigmoid of scores, see `functional.binary_cross_entropy_with_logits`.

    Args:
        weight: factors, of a shape that broadcasts to that of inputs.
        reduction: "mean", "sum" or "none".
        pos_weight: factors of the terms of targets 1.
    """

    def __init__(self, weight: Any = None, reduction: Reduction = "mean", pos_weight: Any = None) -> None:
        super().__init__(reduction)
        self.weight = _buffer(weight)
        self.pos_weight = _buffer(pos_weight)

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of scores and targets from 0 to 1."""
        return F.binary_cross_entropy_with_logits(input, target, self.weight, self.reduction, self.pos_weight)


class KLDivLoss(_Loss):
    """The divergence of Kullback and Leibler of logarithms of probabilities from others, see `functional.kl_div`.

    Args:
        reduction: "mean", "sum", "none", or "batchmean" for the sum divided by the number of samples.
        log_target: whether targets are logarithms.
    """

    _reductions = (*_Loss._reductions, "batchmean")

    def __init__(self, reduction: Reduction | Literal["batchmean"] = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of logarithms of probabilities, and probabilities."""
        return F.kl_div(input, target, self.reduction, self.log_target)


class CTCLoss(_Loss):
    """Connectionist temporal classification, see `functional.ctc_loss`.

    Args:
        blank: the class that stands for no label.
        reduction: "mean", "sum" or "none".
        zero_infinity: whether infinite losses, of targets that are longer than inputs, are zero.
    """

    def __init__(self, blank: int = 0, reduction: Reduction = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> Any:
        """The loss of logarithms of probabilities (T, N, C) and labels (N, S)."""
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )


class SoftMarginLoss(_Loss):
    """`log(1 + exp(-y x))`, for targets -1 and 1; the argument is that of `MSELoss`."""

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of scores and targets."""
        return F.soft_margin_loss(input, target, self.reduction)


class MultiLabelMarginLoss(_Loss):
    """Margins between scores of true and other classes, see `functional.multilabel_margin_loss`."""

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of scores and targets."""
        return F.multilabel_margin_loss(input, target, self.reduction)


class MultiLabelSoftMarginLoss(_Loss):
    """Cross entropy of several classes that may be true at once, see `functional.multilabel_soft_margin_loss`.

    Args:
        weight: a factor for each class.
        reduction: "mean", "sum" or "none".
    """

    def __init__(self, weight: Any = None, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.weight = _buffer(weight)

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of scores and targets 0 and 1."""
        return F.multilabel_soft_margin_loss(input, target, self.weight, self.reduction)


class MultiMarginLoss(_Loss):
    """Margins between the score of the true class and the others, see `functional.multi_margin_loss`.

    Args:
        p: exponent, 1 or 2.
        margin: how far the true class is to lead.
        weight: a factor for each class.
        reduction: "mean", "sum" or "none".
    """

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.p = p
        self.margin = margin
        self.weight = _buffer(weight)

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of scores (N, C) and classes (N,)."""
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, self.reduction)


# Of vectors and distances


class CosineSimilarity(Module):
    """The cosines of the angles between vectors, see `functional.cosine_similarity`.

    Args:
        dim: the axis of the vectors.
        eps: the least norm to divide by.
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Any, x2: Any) -> Any:
        """The cosines, without the axis of the vectors."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norms of the differences of vectors, see `functional.pairwise_distance`.

    Args:
        p: which norm.
        eps: what is added to differences.
        keepdim: whether the axis of vectors stays, with size 1.
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Any, x2: Any) -> Any:
        """The distances."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineEmbeddingLoss(_Loss):
    """Brings vectors together or apart, by the angle between them, see `functional.cosine_embedding_loss`.

    Args:
        margin: the cosine below which vectors are apart.
        reduction: "mean", "sum" or "none".
    """

    def __init__(self, margin: float = 0.0, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        """The loss of vectors (N, D), and targets (N,), 1 for together, -1 for apart."""
        return F.cosine_embedding_loss(input1, input2, target, self.margin, self.reduction)


class HingeEmbeddingLoss(_Loss):
    """`x` for targets 1, and `max(margin - x, 0)` for targets -1.

    Args:
        margin: the distance from which on things are apart.
        reduction: "mean", "sum" or "none".
    """

    def __init__(self, margin: float = 1.0, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of distances, and targets 1 and -1."""
        return F.hinge_embedding_loss(input, target, self.margin, self.reduction)


class MarginRankingLoss(_Loss):
    """`max(margin - y (x1 - x2), 0)`: target 1 asks for x1 above x2, and -1 for the opposite.

    Args:
        margin: by how much.
        reduction: "mean", "sum" or "none".
    """

    def __init__(self, margin: float = 0.0, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        """The loss of scores, and targets 1 and -1."""
        return F.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class TripletMarginLoss(_Loss):
    """Asks that anchors are nearer to positives than to negatives, see `functional.triplet_margin_loss`.

    Args:
        margin: by how much.
        p: which norm distances are.
        eps: what is added to differences.
        swap: whether the distance of positive and negative counts where it is less.
        reduction: "mean", "sum" or "none".
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        """The loss of vectors (N, D)."""
        return F.triplet_margin_loss(
            anchor, positive, negative, self.margin, self.p, self.eps, self.swap, self.reduction
        )
