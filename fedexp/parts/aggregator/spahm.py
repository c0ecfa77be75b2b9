"""SPAHM: matching of hidden units with estimated variances (Yurochkin et al., NeurIPS 2019, arXiv 1911.00218).

`fedexp.maths.matching.estimates` has the equations. The paper matches topics, hidden Markov models and Gaussian
processes; here, as in the aggregation thesis, it matches networks of one hidden layer: an atom is the incoming weights,
the bias and the outgoing weights of a unit, and all classes count alike. The output bias belongs to no unit and is the
clients' mean, by examples or uniformly (`weighting`). The authors take 10 sweeps in their simulation, and 100 for
topics.
"""

from collections.abc import Sequence
from typing import Annotated

from fedexp.maths.matching.estimates import match_one_layer
from fedexp.maths.matching.networks import Network
from fedexp.maths.matching.passes import Layer
from fedexp.parts import ConfigError, Context, Positive, Range, Uploads
from fedexp.parts.aggregator.matching import Matching


class SPAHM(Matching):
    """Matching with estimated variances."""

    sweeps: Annotated[int, Range(0)] = 10
    gamma: Annotated[float, Positive] = 1.0

    def refuse_depth(self, layers: int) -> None:
        if layers != 1:
            raise ConfigError(
                f"aggregator=spahm matches networks of one hidden layer, but model.hidden has {layers}; use "
                "aggregator=pfnm, or one hidden layer"
            )

    def match(self, nets: Sequence[Network], uploads: Uploads, ctx: Context) -> tuple[Network, Sequence[Layer]]:
        share = self.shares(uploads).cpu().numpy()
        net, layer = match_one_layer(nets, share, self.gamma, self.sweeps, ctx.rng("aggregator"))
        return net, [layer]
