"""Two quadratics in the plane, dressed as a classification, so that public programs train on them as they are.

The cost of client k is c_k / 2 |w - m_k|^2, with curvatures c of 1 and 3 and minima m of (0, 1) and (4, -1). The model
answers with its two weights, whatever the example is, and a third number that is 0; the label of an example is its
client's number; and `QuadraticCost` stands where programs take torch's cross-entropy.
"""

import json
from collections.abc import Iterable

import torch
from torch import Tensor, nn

CURVATURES = (1.0, 3.0)
MINIMA = ((0.0, 1.0), (4.0, -1.0))
FIRST = (1.0, 1.0)  # where the first model stands
EXAMPLES = 2  # of each client, all in one batch: one epoch is one step
OUTPUTS = 3  # one more than there are weights, since with two classes some programs measure otherwise


def costs(outputs: Tensor, labels: Tensor) -> Tensor:
    """The cost [B] of outputs [B, 2 or more], each by the quadratic of the client that its label of [B] names."""
    curvatures, minima = torch.tensor(CURVATURES)[labels], torch.tensor(MINIMA)[labels]
    return curvatures / 2 * (outputs[:, :2] - minima).square().sum(dim=1)


class QuadraticCost(nn.Module):
    """The quadratics of the clients that the labels name, with the arguments of torch's cross-entropy."""

    def __init__(self, *_: object, reduction: str = "mean", **__: object) -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The mean, or the sum, over a batch: outputs [B, 2 or more] and labels [B] give one number []."""
        values = costs(outputs, labels)
        return values.sum() if self.reduction == "sum" else values.mean()


class PlaneLayer(nn.Module):
    """A layer of two weights, which are its first outputs."""

    def __init__(self, outputs: int = OUTPUTS) -> None:
        super().__init__()
        self.outputs = outputs
        self.weight = nn.Parameter(torch.tensor(FIRST))

    def forward(self, x: Tensor) -> Tensor:
        """The weights, and a zero where there are three outputs, for each of the examples x [B, ...]: [B, outputs]."""
        row = torch.cat([self.weight, torch.zeros(self.outputs - 2)])
        return row.expand(len(x), self.outputs)


class PlaneModel(nn.Module):
    """A model of that layer alone, called `fc` since some programs take a model's last layer by this name."""

    def __init__(self, *_: object, outputs: int = OUTPUTS, **__: object) -> None:
        super().__init__()
        self.fc = PlaneLayer(outputs)

    def forward(self, x: Tensor) -> Tensor:
        """The outputs [B, outputs] of the examples x [B, ...]."""
        return self.fc(x)


def replace_cross_entropy() -> None:
    """Puts the quadratics in the place of torch's cross-entropy, for the whole process."""
    torch.nn.CrossEntropyLoss = QuadraticCost


def client_data(client: int) -> tuple[Tensor, Tensor]:
    """The examples [2, 1] of a client, which nothing looks at, and their labels [2]."""
    return torch.zeros(EXAMPLES, 1), torch.full((EXAMPLES,), client)


def all_data() -> tuple[Tensor, Tensor]:
    """The examples [4, 1] of both clients, one client after the other, and their labels [4]."""
    x, y = zip(*map(client_data, range(len(MINIMA))), strict=True)
    return torch.cat(x), torch.cat(y)


def print_model(weights: Iterable[Tensor]) -> None:
    """The last line of a run: where the global model stands, as JSON."""
    (point,) = weights
    print(json.dumps({"ends_at": point.tolist()}), flush=True)
