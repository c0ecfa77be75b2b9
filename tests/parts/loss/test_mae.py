import torch

from fedexp.parts.loss.mae import MAE


def test_by_hand():
    outputs, targets = torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[4.0, 6.0], [0.0, -1.0]])
    assert MAE().per_example(outputs, targets).tolist() == [3.5, 0.5]
