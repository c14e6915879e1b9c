"""Softmax regression: the cross-entropy of a linear classifier, as a function of its weights."""

import numpy as np


def cross_entropy(weights, features, labels):
    """Mean negative log-likelihood, in nats, of classes `labels` under a softmax of `features @ weights`."""
    scores = features @ weights
    scores = scores - np.max(scores, axis=1, keepdims=True)
    log_probabilities = scores - np.log(np.sum(np.exp(scores), axis=1, keepdims=True))
    penalty = 1e-3 * np.sum(weights**2)
    return penalty - np.mean(log_probabilities[np.arange(len(labels)), labels])


def example():
    """200 points of 10 features in 4 classes."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 4, 200)
    features = random.normal(size=(200, 10)) + random.normal(size=(4, 10))[labels]
    return cross_entropy, (random.normal(size=(10, 4)), features, labels)
