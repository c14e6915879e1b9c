"""A Markov chain: the entropy rate of its stationary distribution, as a function of the logits of its transitions."""

import numpy as np


def entropy_rate(logits):
    """Mean entropy, in nats, of one step of the chain whose transition probabilities are softmaxes of the rows."""
    weights = np.exp(logits - np.max(logits, axis=1, keepdims=True))
    transitions = weights / np.sum(weights, axis=1, keepdims=True)
    count = len(logits)
    system = np.vstack([transitions.T - np.eye(count), np.ones((1, count))])
    right = np.concatenate([np.zeros(count), np.ones(1)])
    stationary = np.linalg.solve(system.T @ system, system.T @ right)
    return -np.sum(stationary[:, None] * transitions * np.log(transitions))


def example():
    """A chain of 30 states."""
    return entropy_rate, (np.random.default_rng(17).normal(size=(30, 30)),)
