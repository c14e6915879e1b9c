"""Adaptive softmax (Grave et al., 2017): a loss for many classes, of which the rare ones are in clusters."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base.source import at_line, user_line
from .. import functional as F
from ..functional.arguments import array, checked_indices, described, shape_of
from ..modules.containers import ModuleList, Sequential
from ..modules.module import Module
from .arguments import expect_last_axis, put
from .linear import Linear

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _Output(NamedTuple):
    """The result of `AdaptiveLogSoftmaxWithLoss`.

    Attributes:
        output: the log-probability of the target of each sample, of shape (N,).
        loss: minus their mean.
    """

    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of classes, the frequent ones by themselves and the rare ones by clusters (Grave et al., 2017).

    A class of a cluster has the probability of the cluster times its probability within it.  Clusters have smaller
    matrices, of rank `in_features / div_value ** i`.

    Args:
        in_features: size of the last axis of the input.
        n_classes: number of classes, the most frequent first.
        cutoffs: the first class of each cluster, increasing; those before the first are by themselves.
        div_value: how much smaller the rank of each next cluster is.
        head_bias: whether the layer of frequent classes and clusters has a bias.
        device: where parameters are put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of the parameters; float32 for None.

    Attributes:
        head: a `Linear` layer from `in_features` to the frequent classes and the clusters.
        tail: for each cluster, two `Linear` layers without bias.

    Raises:
        ValueError: `cutoffs` do not increase between 1 and `n_classes - 1`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.AdaptiveLogSoftmaxWithLoss(8, n_classes=20, cutoffs=[4, 10])
        >>> found = layer(np.ones((3, 8), np.float32), np.array([0, 5, 19]))
        >>> found.output.shape, layer.log_prob(np.ones((3, 8), np.float32)).shape
        ((3,), (3, 20))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        bounds = [operator.index(c) for c in cutoffs]
        if not bounds or bounds[0] < 1 or bounds[-1] >= n_classes or sorted(set(bounds)) != bounds:
            raise ValueError(
                f"cutoffs of AdaptiveLogSoftmaxWithLoss must increase from at least 1 to at most {n_classes - 1}, one "
                f"less than n_classes, not {list(cutoffs)}{at_line(user_line())}"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*bounds, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = bounds[0]
        self.n_clusters = len(bounds)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, dtype=dtype)
        self.tail = ModuleList([])
        for i, (first, end) in enumerate(zip(bounds, self.cutoffs[1:], strict=True)):
            rank = int(in_features // div_value ** (i + 1))
            layers = (Linear(in_features, rank, False, dtype=dtype), Linear(rank, end - first, False, dtype=dtype))
            self.tail.append(Sequential(*layers))
        put(self, device)

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        for layer in self.modules():
            if isinstance(layer, Linear):
                layer.reset_parameters()

    def forward(self, input: Any, target: Any) -> _Output:
        """The log-probability of the target of each sample, and minus their mean.

        Args:
            input: array of shape (N, in_features), or (in_features,).
            target: classes from 0 to `n_classes - 1`, of shape (N,) or ().

        Returns:
            A named pair `(output, loss)`, with an output of the shape of `target`.

        Raises:
            ValueError: shapes do not match.
            IndexError: a target is out of range.
        """
        expect_last_axis(self, input, self.in_features)
        target = checked_indices(array(target), self.n_classes, "AdaptiveLogSoftmaxWithLoss", "target")
        if shape_of(input)[:-1] != shape_of(target) or len(shape_of(target)) > 1:
            raise ValueError(
                "AdaptiveLogSoftmaxWithLoss takes input (N, in_features) and target (N,), or (in_features,) and a "
                f"number, not {described(input)} and {described(target)}{at_line(user_line())}"
            )
        head = F.log_softmax(self.head(input), -1)
        found = _at(head, np.minimum(target, self.shortlist_size - 1))
        for i, (first, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            inside = _at(F.log_softmax(self.tail[i](input), -1), np.clip(target - first, 0, end - first - 1))
            found = np.where(target >= first, head[..., self.shortlist_size + i] + inside, found)
        return _Output(found, -np.mean(found))

    def log_prob(self, input: Any) -> Any:
        """The log-probabilities of all classes, of shape (N, n_classes), for inputs of shape (N, in_features)."""
        expect_last_axis(self, input, self.in_features)
        head = F.log_softmax(self.head(input), -1)
        parts = [head[..., : self.shortlist_size]]
        for i, layer in enumerate(self.tail):
            of_cluster = head[..., self.shortlist_size + i]
            parts.append(of_cluster[..., None] + F.log_softmax(layer(input), -1))
        return np.concatenate(parts, axis=-1)

    def predict(self, input: Any) -> Any:
        """The most probable class of each sample, of shape (N,), for inputs of shape (N, in_features)."""
        return np.argmax(self.log_prob(input), axis=-1)

    def extra_repr(self) -> str:
        return ""


def _at(x: Any, places: Any) -> Any:
    """The elements of the last axis at places."""
    # By comparison: the derivative of an index is a scatter, which XLA's partitioner for meshes aborts on.
    return np.sum(np.where(places[..., None] == np.arange(x.shape[-1]), x, 0), axis=-1)
