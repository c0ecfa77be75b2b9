"""PFNM: Bayesian nonparametric matching of hidden units (Yurochkin et al., ICML 2019, arXiv 1905.12022).

`fedexp.maths.matching.pfnm` has the model and its equations. `s` and `s0` are variances; a list gives each hidden layer
its own, as with `gamma`. `popularity_factor` is 2 in the paper and 1 in the authors' code. Their defaults are s = s0 =
gamma = 1 with 5 sweeps (3 in several rounds); their grid is gamma 1, 1e-3, 50; s 1, 0.5, 0.1; s0 1, 10. With s = s0 a
unit of a single client is halved: the mean of m clients that agree is shrunk by (m / s) / (m / s + 1 / s0).

The default s = 0.5 has the best validation accuracy of that grid on one hidden layer (`scripts/studies/pfnm_oneshot`);
several hidden layers need other values, which are given there.

Decisions: `weighting=num_samples` weights output weights by the client's share of each class, as in the paper;
`uniform` gives all clients the same share of each. If the server itself trains (HybridFL), only the number of its
examples is known; they are taken to be spread evenly over the classes.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from fedexp.maths.matching.networks import Network
from fedexp.maths.matching.passes import Layer
from fedexp.maths.matching.pfnm import Variances, match_networks
from fedexp.parts import ConfigError, Context, Positive, Range, Uploads
from fedexp.parts.aggregator.matching import Matching

Number = Annotated[float, Positive]


class PFNM(Matching):
    """Matching with given variances."""

    needs_classes = True
    reveals = "how many examples of each class a client holds"

    sweeps: Annotated[int, Range(0)] = 5
    s: Number | tuple[Number, ...] = 0.5
    s0: Number | tuple[Number, ...] = 1.0
    gamma: Number | tuple[Number, ...] = 1.0
    popularity_factor: Literal[1, 2] = 2

    def refuse_depth(self, layers: int) -> None:
        for name in ("s", "s0", "gamma"):
            value = getattr(self, name)
            if isinstance(value, tuple) and len(value) != layers:
                raise ConfigError(
                    f"aggregator.{name} must be a number or a list with one for each hidden layer, but there are "
                    f"{layers} and it is {list(value)}"
                )

    def match(self, nets: Sequence[Network], uploads: Uploads, ctx: Context) -> tuple[Network, Sequence[Layer]]:
        layers = len(nets[0].hidden)
        values = (per_layer(value, layers) for value in (self.s, self.s0, self.gamma))
        variances = [Variances(*layer_values) for layer_values in zip(*values, strict=True)]
        share = self.class_shares(uploads, ctx)
        return match_networks(nets, share, variances, self.popularity_factor, self.sweeps, ctx.rng("aggregator"))

    def class_shares(self, uploads: Uploads, ctx: Context) -> np.ndarray:
        """Each participant's weight for each class, `[C, K]`; 0 for a class that nobody has."""
        clients = uploads.owner >= 0
        client_counts = ctx.clients_data.class_counts(uploads.owner[clients])
        if self.weighting == "uniform":
            return np.full((len(clients), client_counts.shape[1]), 1 / len(clients))
        counts = np.repeat(uploads.examples[:, None] / client_counts.shape[1], client_counts.shape[1], axis=1)
        counts[clients] = client_counts
        counts *= uploads.importance[:, None]
        total = counts.sum(axis=0)
        return np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)


def per_layer(value: float | tuple[float, ...], layers: int) -> tuple[float, ...]:
    """One number for each hidden layer."""
    return value if isinstance(value, tuple) else (value,) * layers
