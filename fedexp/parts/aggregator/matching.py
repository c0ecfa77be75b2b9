"""What PFNM and SPAHM share: hidden units are matched over clients, so the global model is wider than a client's.

In a round each participant gets the global units that its own were matched to (`dispatch`) and trains; then the
participants' networks are matched from scratch (`combine`). `fedexp.maths.matching.seats` explains how clients keep
their units from round to round. An upload may be finite and its network not; such a network is left out. The whole
global model is evaluated; clients receive and send networks of their own size. The network of a single participant
becomes the global model unchanged. Deviation: in several rounds the authors' program of PFNM begins each matching with
the assignment of the last, for which the same clients must come every time.

Legend: C participants, l units of a client's layer, L units of a global layer.
"""

import logging
from collections.abc import Sequence
from typing import Annotated

import numpy as np
import torch
from torch import nn

from fedexp.core.device_arrays import finite
from fedexp.core.errors import ConfigError
from fedexp.core.part import Range, option
from fedexp.core.values import Memory, Uploads, Weights
from fedexp.maths.matching.networks import Network, as_weights, find_obstacle, hidden_widths, networks, subnetworks
from fedexp.maths.matching.passes import Layer
from fedexp.maths.matching.seats import UnitAssignment
from fedexp.parts.aggregator.contract import Aggregator
from fedexp.parts.context import Context
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model.contract import Model
from fedexp.parts.network_errors import readable_network

log = logging.getLogger(__name__)


class Matching(Aggregator):
    """Remembers which clients hold which global units; reports the width of every hidden layer."""

    sweeps: Annotated[int, Range(0)]

    keeps_layout = False

    def refuse(self, model: Model, facts: Facts) -> None:
        network = readable_network(model, facts)
        fault = find_obstacle(network)
        if fault is not None:
            raise ConfigError(
                f"aggregator={option(self)} matches hidden units of plain multilayer perceptrons, but "
                f"model={option(model)} {fault}; use model=mlp with hidden layers, or another aggregator"
            )
        self.refuse_depth(sum(isinstance(layer, nn.Linear) for layer in network.modules()) - 1)

    def refuse_depth(self, layers: int) -> None:
        """Raises ConfigError if this many hidden layers cannot be matched."""

    def match(self, nets: Sequence[Network], uploads: Uploads, ctx: Context) -> tuple[Network, Sequence[Layer]]:
        """The global network of at least two participants, and its matched layers."""
        raise NotImplementedError

    def dispatch(self, weights: Weights, owner: np.ndarray, memory: Memory) -> torch.Tensor:
        return subnetworks(weights, UnitAssignment.load(memory, hidden_widths(weights.layout)).units(owner))

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Weights, Memory]:
        seats = UnitAssignment.load(memory, hidden_widths(weights.layout))
        rows = subnetworks(weights, seats.units(uploads.owner)) + uploads.delta
        uploads, rows = drop_non_finite(uploads, rows)
        if len(uploads.owner) == 0:
            return weights, {**memory, "columns": width_columns(weights)}
        dispatched_units, nets = seats.units(uploads.owner), networks(ctx.layout, rows)
        net, layers = self.match(nets, uploads, ctx) if len(nets) > 1 else identity_matching(nets[0])
        units = tuple(np.stack(layer.assigned) for layer in layers)
        next_seats = seats.after(uploads.owner, dispatched_units, units, tuple(layer.popularity for layer in layers))
        proposal = as_weights(net, weights)
        return proposal, {**next_seats.save(), "columns": width_columns(proposal)}


def drop_non_finite(uploads: Uploads, rows: torch.Tensor) -> tuple[Uploads, torch.Tensor]:
    """The uploads whose networks `rows [C, D]` are finite, and these; two finite numbers may add up to infinity."""
    finite_mask = finite(rows)
    if not finite_mask.all():
        log.warning(
            "%d of %d clients' networks are not finite and were left out", (~finite_mask).sum(), len(finite_mask)
        )
    return uploads.where(finite_mask), rows[torch.from_numpy(finite_mask).to(rows.device)]


def identity_matching(net: Network) -> tuple[Network, list[Layer]]:
    """The network of a single participant as the global one, its units in their own order."""
    return net, [Layer(np.zeros((width, 0)), np.ones(width, np.int64), (np.arange(width),)) for width in net.hidden]


def width_columns(weights: Weights) -> dict[str, int]:
    """Columns with the width of every hidden layer; the first is `width_1`."""
    return {f"width_{number}": width for number, width in enumerate(hidden_widths(weights.layout), start=1)}
