"""Losses as layers; `ftrans.nn.functional` says what they compute.  Weights that are given are kept as buffers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Literal

from ...base.source import at_line, user_line
from .. import functional as F
from ..cells.kinds import Buffer
from .function_layer import FunctionLayer

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CosineSimilarity", "CrossEntropyLoss",
    "GaussianNLLLoss", "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss",
    "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PairwiseDistance",
    "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]  # fmt: skip

Reduction = Literal["none", "mean", "sum"]


class _Loss(FunctionLayer):
    _reductions: ClassVar[tuple[str, ...]] = ("none", "mean", "sum")

    def _kept(self, name: str, value: Any) -> Any:
        if name == "reduction" and value not in self._reductions:
            raise ValueError(
                f"reduction of {type(self).__name__} must be one of {', '.join(map(repr, self._reductions))}, not "
                f"{value!r}{at_line(user_line())}"
            )
        return Buffer(value) if name in ("weight", "pos_weight") and value is not None else value

    def extra_repr(self) -> str:
        return ""


# Regression


class MSELoss(_Loss, of=F.mse_loss):
    """
    >>> nn.MSELoss()(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    np.float64(2.0)
    """

    reduction: Reduction = "mean"


class L1Loss(_Loss, of=F.l1_loss):
    """
    >>> nn.L1Loss(reduction="none")(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    array([0., 2.])
    """

    reduction: Reduction = "mean"


class SmoothL1Loss(_Loss, of=F.smooth_l1_loss):
    """
    >>> nn.SmoothL1Loss(reduction="none")(np.array([0.5, 2.0]), np.array([0.0, 0.0]))
    array([0.125, 1.5  ])
    """

    reduction: Reduction = "mean"
    beta: float = 1.0


class HuberLoss(_Loss, of=F.huber_loss):
    """
    >>> nn.HuberLoss(reduction="none")(np.array([0.5, 2.0]), np.array([0.0, 0.0]))
    array([0.125, 1.5  ])
    """

    reduction: Reduction = "mean"
    delta: float = 1.0


class PoissonNLLLoss(_Loss, of=F.poisson_nll_loss):
    """
    >>> nn.PoissonNLLLoss()(np.zeros(2), np.array([0.0, 1.0]))
    np.float64(1.0)
    """

    log_input: bool = True
    full: bool = False
    eps: float = 1e-8
    reduction: Reduction = "mean"

    def forward(self, log_input: Any, target: Any) -> Any:
        """What the function returns."""
        return F.poisson_nll_loss(log_input, target, self.log_input, self.full, self.eps, self.reduction)


class GaussianNLLLoss(_Loss, of=F.gaussian_nll_loss):
    """
    >>> nn.GaussianNLLLoss()(np.zeros(2), np.array([0.0, 2.0]), np.ones(2))
    np.float64(1.0)
    """

    _: KW_ONLY
    full: bool = False
    eps: float = 1e-6
    reduction: Reduction = "mean"


# Classification


class CrossEntropyLoss(_Loss, of=F.cross_entropy):
    """
    >>> nn.CrossEntropyLoss()(np.zeros((2, 10)), np.array([3, 5])).round(4)
    np.float64(2.3026)
    """

    weight: Any = None
    ignore_index: int = -100
    reduction: Reduction = "mean"
    label_smoothing: float = 0.0


class NLLLoss(_Loss, of=F.nll_loss):
    """
    >>> nn.NLLLoss()(np.log([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 0])).round(4)
    np.float64(1.0397)
    """

    weight: Any = None
    ignore_index: int = -100
    reduction: Reduction = "mean"


class BCELoss(_Loss, of=F.binary_cross_entropy):
    """
    >>> nn.BCELoss()(np.array([0.5, 0.75]), np.array([0.0, 1.0])).round(4)
    np.float64(0.4904)
    """

    weight: Any = None
    reduction: Reduction = "mean"


class BCEWithLogitsLoss(_Loss, of=F.binary_cross_entropy_with_logits):
    """
    >>> nn.BCEWithLogitsLoss()(np.array([0.0, 1000.0]), np.array([1.0, 1.0])).round(4)
    np.float64(0.3466)
    """

    weight: Any = None
    reduction: Reduction = "mean"
    pos_weight: Any = None


class KLDivLoss(_Loss, of=F.kl_div):
    """
    >>> nn.KLDivLoss("sum")(np.log([0.25, 0.75]), np.array([0.5, 0.5])).round(4)
    np.float64(0.1438)
    """

    _reductions = (*_Loss._reductions, "batchmean")

    reduction: Reduction | Literal["batchmean"] = "mean"
    log_target: bool = False


class CTCLoss(_Loss, of=F.ctc_loss):
    """
    >>> even = np.log(np.full((3, 1, 2), 0.5))
    >>> np.exp(-nn.CTCLoss()(even, np.array([[1]]), [3], [1])).round(4)
    np.float64(0.75)
    """

    blank: int = 0
    reduction: Reduction = "mean"
    zero_infinity: bool = False


class SoftMarginLoss(_Loss, of=F.soft_margin_loss):
    """
    >>> nn.SoftMarginLoss()(np.array([0.0, 1000.0]), np.array([1, 1])).round(4)
    np.float64(0.3466)
    """

    reduction: Reduction = "mean"


class MultiLabelMarginLoss(_Loss, of=F.multilabel_margin_loss):
    """
    >>> nn.MultiLabelMarginLoss()(np.array([[0.5, 0.0, 0.75]]), np.array([[0, 2, -1]]))
    np.float64(0.25)
    """

    reduction: Reduction = "mean"


class MultiLabelSoftMarginLoss(_Loss, of=F.multilabel_soft_margin_loss):
    """
    >>> nn.MultiLabelSoftMarginLoss()(np.zeros((1, 3)), np.array([[1, 0, 1]])).round(4)
    np.float64(0.6931)
    """

    weight: Any = None
    reduction: Reduction = "mean"


class MultiMarginLoss(_Loss, of=F.multi_margin_loss):
    """
    >>> nn.MultiMarginLoss()(np.array([[0.5, 1.0]]), np.array([1]))
    np.float64(0.25)
    """

    p: int = 1
    margin: float = 1.0
    weight: Any = None
    reduction: Reduction = "mean"


# Similarity and ranking


class CosineSimilarity(FunctionLayer, of=F.cosine_similarity):
    """
    >>> nn.CosineSimilarity()(np.array([[1.0, 0.0]]), np.array([[1.0, 1.0]])).round(4)
    array([0.7071])
    """

    dim: int = 1
    eps: float = 1e-8

    def extra_repr(self) -> str:
        return ""


class PairwiseDistance(FunctionLayer, of=F.pairwise_distance):
    """
    >>> nn.PairwiseDistance()(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])).round(4)
    array([5.])
    """

    p: float = 2.0
    eps: float = 1e-6
    keepdim: bool = False

    @property
    def norm(self) -> float:
        """The order of the norm, under the name that torch gives it."""
        return self.p

    def extra_repr(self) -> str:
        return ""


class CosineEmbeddingLoss(_Loss, of=F.cosine_embedding_loss):
    """
    >>> nn.CosineEmbeddingLoss()(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]), np.array([1]))
    np.float64(1.0)
    """

    margin: float = 0.0
    reduction: Reduction = "mean"


class HingeEmbeddingLoss(_Loss, of=F.hinge_embedding_loss):
    """
    >>> nn.HingeEmbeddingLoss()(np.array([0.5, 0.5]), np.array([1, -1]))
    np.float64(0.5)
    """

    margin: float = 1.0
    reduction: Reduction = "mean"


class MarginRankingLoss(_Loss, of=F.margin_ranking_loss):
    """
    >>> nn.MarginRankingLoss()(np.array([2.0, 2.0]), np.array([1.0, 1.0]), np.array([1, -1]))
    np.float64(0.5)
    """

    margin: float = 0.0
    reduction: Reduction = "mean"


class TripletMarginLoss(_Loss, of=F.triplet_margin_loss):
    """
    >>> nn.TripletMarginLoss()(np.array([[0.0]]), np.array([[1.0]]), np.array([[3.0]]))
    np.float64(0.0)
    """

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    reduction: Reduction = "mean"


class TripletMarginWithDistanceLoss(_Loss, of=F.triplet_margin_with_distance_loss):
    """
    >>> loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: abs(x - y).sum(-1))
    >>> loss(np.array([[0.0]]), np.array([[1.0]]), np.array([[1.5]]))
    np.float64(0.5)
    """

    _: KW_ONLY
    distance_function: Callable[[Any, Any], Any] | None = None
    margin: float = 1.0
    swap: bool = False
    reduction: Reduction = "mean"

    def _kept(self, name: str, value: Any) -> Any:
        return PairwiseDistance() if name == "distance_function" and value is None else super()._kept(name, value)
