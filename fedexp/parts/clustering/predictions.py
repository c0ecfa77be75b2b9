"""Predictions by several models together, for clients that are in no cluster.

Every function maps the models' log-probabilities `[M, B, K]` to a class for each example, `[B]`. Legend: M models, B
examples, K classes.
"""

import torch


def vote(logp: torch.Tensor) -> torch.Tensor:
    """The class `[B]` that most models predict by `logp [M, B, K]`; at ties the larger sum of probabilities."""
    classes = logp.shape[2]
    votes = torch.nn.functional.one_hot(logp.argmax(dim=2), classes).sum(dim=0)
    return (votes + logp.exp().sum(dim=0) / (len(logp) + 1)).argmax(dim=1)


def highest(logp: torch.Tensor) -> torch.Tensor:
    """The class `[B]` with the highest probability of any model, given `logp [M, B, K]`."""
    return logp.max(dim=0).values.argmax(dim=1)


def mean(logp: torch.Tensor) -> torch.Tensor:
    """The class `[B]` with the highest mean probability, given `logp [M, B, K]`."""
    return logp.logsumexp(dim=0).argmax(dim=1)


def nearest(logp: torch.Tensor, server: torch.Tensor) -> torch.Tensor:
    """The class `[B]` of the model in `logp [M, B, K]` closest to the server's log-probabilities `server [B, K]`."""
    closest = torch.linalg.vector_norm(logp - server, dim=2).argmin(dim=0)
    return logp.argmax(dim=2).gather(0, closest[None])[0]
