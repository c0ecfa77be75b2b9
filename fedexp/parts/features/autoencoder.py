"""Models see the code of a denoising autoencoder, trained on the server's public data, instead of the examples.

Source: a text on clustered federated learning with UCI HAPT, after Vincent et al., "Extracting and Composing Robust
Features with Denoising Autoencoders" (ICML 2008). Six linear layers with ReLU between them, three to the code and three
back; sigmoid at the end for data in [0, 1], tanh for data in [-1, 1]. Noise is added to the inputs, and the clean ones
are reconstructed with the least mean squared error. Every client then adds such noise to its examples, once, and
encodes them. The test examples are encoded with such noise, too, so scores are of noisy examples; the network that
`fedexp export` writes adds none.

Readings: the text gives no widths, rates or noise; they are options. Each number of the flattened example is scaled by
its range over the public data, and clipped to it for other examples; a number that is constant there becomes constant.
The noise is Gaussian, its deviation in units of the scaled data. The code itself is linear: a ReLU at the bottleneck
would lose part of it. Legend: S or n examples, d numbers of an example, P weights.
"""

import time
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Annotated, Literal

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from fedexp.core.errors import ConfigError, RunError
from fedexp.core.initialise import initialise
from fedexp.core.part import Positive, Range
from fedexp.core.values import Layout
from fedexp.maths.optimizer_steps import adam_step
from fedexp.parts.dataset.contract import Data, Facts, Split
from fedexp.parts.features.contract import Encoding, Features, Streams

CHUNK = 4096  # examples encoded at once

Width = Annotated[int, Range(1)]


@dataclass(frozen=True)
class Scaling:
    """Maps each number of an example from its range to [0, 1], or to [-1, 1]: `low [d]`, `factor [d]`."""

    low: torch.Tensor
    factor: torch.Tensor
    symmetric: bool

    @staticmethod
    def of(x: torch.Tensor, symmetric: bool) -> "Scaling":
        """The scaling by the ranges of the examples `x [S, *shape]`."""
        low, high = (bound.values.double() for bound in (x.flatten(1).min(dim=0), x.flatten(1).max(dim=0)))
        span = high - low
        return Scaling(low, torch.where(span > 0, 1 / span, 0.0), symmetric)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Examples `[n, *shape]` scaled and flattened, float32 `[n, d]`, clipped to the range."""
        scaled = ((x.flatten(1) - self.low) * self.factor).clamp(0, 1).float()
        return 2 * scaled - 1 if self.symmetric else scaled


def linear_stack(widths: list[int], activation: nn.Module | None = None) -> nn.Sequential:
    """Linear layers of these widths with ReLU between them, followed by `activation`."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1], *([] if activation is None else [activation]))


def flatten_parameters(network: nn.Module) -> torch.Tensor:
    """All parameters of a network as one row `[P]`; writing to it changes the network."""
    layout = Layout.of(network)
    row = layout.flatten(network)
    for entry, view in zip(network.parameters(), layout.views(row).values(), strict=True):
        entry.data = view
    return row


def add_noise(x: torch.Tensor, noise: float, rng: np.random.Generator) -> torch.Tensor:
    """Adds Gaussian noise of standard deviation `noise` to the examples `[n, d]`."""
    draw = rng.standard_normal(tuple(x.shape), dtype=np.float32)
    return x + noise * torch.from_numpy(draw).to(x.device)


class ScaledEncoder(nn.Module):
    """Scales examples `[n, *shape]` and encodes them, `[n, code]`."""

    low: torch.Tensor
    factor: torch.Tensor

    def __init__(self, scaling: Scaling, encoder: nn.Module) -> None:
        super().__init__()
        self.register_buffer("low", scaling.low)
        self.register_buffer("factor", scaling.factor)
        self.symmetric, self.encoder = scaling.symmetric, encoder

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The codes `[n, code]` of examples `[n, *shape]` in their stored form, without the noise of training."""
        return self.encoder(Scaling(self.low, self.factor, self.symmetric)(x))


@dataclass(frozen=True, kw_only=True)
class AutoencoderEncoding(Encoding):
    """Scales examples, adds noise to them and encodes them."""

    scaling: Scaling
    encoder: nn.Module
    noise: float

    def split(self, split: Split, rng: np.random.Generator) -> Split:
        with torch.no_grad():
            codes = [self.encoder(add_noise(self.scaling(x), self.noise, rng)) for x in split.x.split(CHUNK)]
        return replace(split, x=torch.cat(codes))

    def data(self, data: Data, rng: Streams) -> Data:
        return super().data(replace(data, scale=1.0, mean=(0.0,), std=(1.0,)), rng)  # codes need no normalisation


class Autoencoder(Features):
    """`hidden`: the widths between example and code; the decoder mirrors them."""

    needs_public = True

    code: Width = 64
    hidden: tuple[Width, ...] = (256, 128)
    output: Literal["sigmoid", "tanh"] = "tanh"
    noise: Annotated[float, Range(0)] = 0.05
    epochs: Annotated[int, Range(1)] = 20
    batch_size: Width = 64
    lr: Annotated[float, Positive] = 0.001
    held_out: Annotated[float, Range(0, 1, low_open=True, high_open=True)] = 0.1

    def check(self) -> None:
        if len(self.hidden) != 2:
            raise ConfigError(
                f"Autoencoder.hidden must be the widths of the two layers before the code, got {list(self.hidden)}; "
                "give two, for example [256,128]"
            )

    def layers(self, facts: Facts) -> nn.Module:
        inputs = prod(facts.shape)
        bounds = torch.zeros(inputs, dtype=torch.float64)
        return ScaledEncoder(Scaling(bounds, bounds.clone(), self.output == "tanh"), self.network(inputs)[0])

    def facts(self, facts: Facts) -> Facts:
        return replace(facts, shape=(self.code,), vocabulary=0)

    def learn(self, public: torch.Tensor, rng: Streams, device: torch.device) -> Encoding:
        begin, min_examples = time.perf_counter(), 2
        if len(public) < min_examples:
            raise ConfigError(
                f"features=autoencoder needs {min_examples} public examples, to learn and to measure, got "
                f"{len(public)}; raise scenario.public_fraction or federation.server_persons"
            )
        scaling = Scaling.of(public, self.output == "tanh")
        order = torch.from_numpy(rng("held_out").permutation(len(public)))
        scaled = torch.cat([scaling(x) for x in public.split(CHUNK)])[order].to(device)
        count = int(np.clip(self.held_out * len(public), 1, len(public) - 1))
        held_out, training = scaled[:count], scaled[count:]
        network = self.train(training, rng)
        with torch.no_grad():
            error = float(F.mse_loss(network(add_noise(held_out, self.noise, rng("measured"))), held_out))
        if not np.isfinite(error):
            raise RunError("features=autoencoder is not finite after its training; lower features.lr")
        mean_error = float((held_out - training.mean(dim=0)).square().mean())
        figures = {"reconstruction_error": error, "error_of_the_mean": mean_error}
        figures["seconds"] = time.perf_counter() - begin
        layers = ScaledEncoder(scaling, network[0].cpu())
        return AutoencoderEncoding(
            figures=figures, layers=layers, scaling=scaling, encoder=network[0], noise=self.noise
        )

    def network(self, inputs: int) -> nn.Sequential:
        """Encoder and decoder for examples of this many input values, not yet initialised."""
        widths = [inputs, *self.hidden, self.code]
        last = nn.Sigmoid() if self.output == "sigmoid" else nn.Tanh()
        return nn.Sequential(linear_stack(widths), linear_stack(widths[::-1], last))

    def train(self, x: torch.Tensor, rng: Streams) -> nn.Sequential:
        """Trains an encoder and a decoder on scaled examples `[n, d]`."""
        network = self.network(x.shape[1])
        initialise(network, rng("model"))
        w = flatten_parameters(network.to(x.device))
        slots, step = w.new_zeros((2, len(w))), w.new_zeros(())
        draws, noise, adam = rng("batches"), rng("noise"), (self.lr, 0.9, 0.999, 1e-8)
        for _ in range(self.epochs):
            order = torch.from_numpy(draws.permutation(len(x))).to(x.device)
            for batch in order.split(self.batch_size):
                clean = x[batch]
                loss = F.mse_loss(network(add_noise(clean, self.noise, noise)), clean)
                grads = torch.autograd.grad(loss, list(network.parameters()))
                step += 1
                adam_step(w, torch.cat([grad.flatten() for grad in grads]), slots, step, adam, None)
        return network
