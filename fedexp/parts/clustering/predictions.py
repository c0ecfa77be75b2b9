"""How several models answer together for data of nobody's cluster. Legend: M models, B examples, K classes.

Every function maps the models' log-probabilities `[M, B, K]` to a class for each example, `[B]`.
"""

import torch


def vote(logp: torch.Tensor) -> torch.Tensor:
    """The class that most models name; of equally many the one with the larger sum of probabilities."""
    classes = logp.shape[2]
    votes = torch.nn.functional.one_hot(logp.argmax(dim=2), classes).sum(dim=0)
    return (votes + logp.exp().sum(dim=0) / (len(logp) + 1)).argmax(dim=1)


def highest(logp: torch.Tensor) -> torch.Tensor:
    """The class of the highest probability that any model gives."""
    return logp.max(dim=0).values.argmax(dim=1)


def mean(logp: torch.Tensor) -> torch.Tensor:
    """The class of the highest mean probability."""
    return logp.logsumexp(dim=0).argmax(dim=1)


def nearest(logp: torch.Tensor, server: torch.Tensor) -> torch.Tensor:
    """The class that the model names whose log-probabilities are closest to the server's model's, `server [B, K]`."""
    own = torch.linalg.vector_norm(logp - server, dim=2).argmin(dim=0)
    return logp.argmax(dim=2).gather(0, own[None])[0]
