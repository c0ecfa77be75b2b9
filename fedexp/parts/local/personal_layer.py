"""Layers that stay with their client: FedPer (Arivazhagan et al. 2019, arXiv 1912.00818), FedBN, LG-FedAvg.

Clients train the whole network and share all of it except `layers`, by default the last linear layer: its entries are
neither sent nor averaged, and their bytes are not counted. A client selected for the first time starts with the first
model's entries, which follow from the seed; later with those that it trained last, together with the shared entries
that the server sends. A training that is not finite leaves them unchanged. The simulation keeps these entries for every
client that was ever selected; the server's own row (`selector=hybridfl`) has its own, too.

With `layers=norms` the layers of batch normalisation stay, trainable entries and statistics alike: FedBN (Li et al.
2021, arXiv 2102.07623). With `layers=body` all stays but the last linear layer: LG-FedAvg (Liang et al. 2020, arXiv
2001.01523), without its auxiliary losses of the representations. With `layers=[]` nothing stays: FedAvg.

In the experiments of FedBN all clients take part in every round; LG-FedAvg asks a tenth of them, and its authors'
program averages more than the last layer: on MNIST the last three of five.

In the global model these entries keep their first values. So its accuracy on test data, and whatever else the server
evaluates (its validation data, Shapley values, Zeno's scores), says little: `evaluation.personal_fraction` measures the
clients' own models, `evaluation.validation_at=clients` does so to choose by, and `evaluation.local_models` those of a
round's participants on the test data.
"""

from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import ClassVar, Literal

import numpy as np

from fedexp.parts import ConfigError, Facts, Layout, LocalRule, Model, option, readable_network
from fedexp.parts.local.heavy_ball import HeavyBall
from fedexp.parts.local.sgd import SGD


def last_linear_names(layout: Layout) -> tuple[str, ...]:
    """The names of the last weight matrix and its bias; none if there is no matrix."""
    trainable = layout.names[: layout.trainable]
    matrices = [name for name, shape in zip(trainable, layout.shapes, strict=False) if len(shape) == 2]
    layer = matrices[-1].removesuffix("weight") if matrices else None
    return tuple(name for name in trainable if layer is not None and name in (layer + "weight", layer + "bias"))


def matching_names(names: Collection[str], patterns: Collection[str]) -> tuple[str, ...]:
    """The names that match one of the shell patterns."""
    return tuple(name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns))


def batch_norm_names(layout: Layout) -> tuple[str, ...]:
    """The names of all entries of layers that keep a running mean: those of batch normalisation."""
    layers = {name.rpartition(".")[0] for name in layout.names if name.rpartition(".")[2] == "running_mean"}
    return tuple(name for name in layout.names if name.rpartition(".")[0] in layers)


class PersonalLayer(HeavyBall):
    """SGD on the whole network. `layers` are shell patterns of names of entries, such as `3.*` or `3.weight`.

    Or `norms`: the layers of batch normalisation; or `body`: all but the last linear layer.
    """

    keeps_rows = True

    adds_nothing_at: ClassVar = {"layers": ()}

    layers: tuple[str, ...] | Literal["norms", "body"] | None = None

    @property
    def fine_tuning_rule(self) -> LocalRule:
        return self.settings_as(SGD)

    def private_columns(self, layout: Layout) -> np.ndarray:
        return layout.columns(self.private_names(layout))

    def private_names(self, layout: Layout) -> tuple[str, ...]:
        """The names of the entries that stay with the clients."""
        if self.layers == "norms":
            return batch_norm_names(layout)
        last = last_linear_names(layout)
        if self.layers == "body":
            return tuple(name for name in layout.names if name not in last) if last else ()
        return last if self.layers is None else matching_names(layout.names, self.layers)

    def refuse(self, model: Model, facts: Facts) -> None:
        layout = Layout.of(readable_network(model, facts))
        layer_patterns = ", ".join(dict.fromkeys(name.rpartition(".")[0] + ".*" for name in layout.names))
        if self.layers == "norms" and not batch_norm_names(layout):
            raise ConfigError(
                f"local.layers=norms needs batch normalisation, which model={option(model)} does not have; use "
                "model=complex_cnn or name the layers"
            )
        for pattern in self.layers if isinstance(self.layers, tuple) else ():
            if not matching_names(layout.names, [pattern]):
                raise ConfigError(
                    f"local.layers must match entries of model={option(model)}, but {pattern} matches none; the "
                    f"layers are {layer_patterns}"
                )
        columns = self.private_columns(layout)
        if len(columns) == 0 and self.layers == "body" and last_linear_names(layout):
            raise ConfigError(
                f"local.layers=body must leave something with the clients, but model={option(model)} is its last "
                f"linear layer alone: {layer_patterns}; use local=sgd or give the model more"
            )
        if len(columns) == 0 and self.layers != ():
            raise ConfigError(
                f"local.layers must be given for model={option(model)}, which has no linear layer; its layers are "
                f"{layer_patterns}"
            )
        if (columns < layout.parameters).sum() == layout.parameters:
            raise ConfigError(
                f"local={option(self)} must leave something to share, but all layers of model={option(model)} would "
                f"stay with the clients: {layer_patterns}; set local.layers to some of them or give the model more"
            )
