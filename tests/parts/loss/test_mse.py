import torch

from fedexp.parts.loss.mse import MSE


def test_by_hand():
    outputs, targets = torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[4.0, 6.0], [0.0, 1.0]])
    assert MSE().per_example(outputs, targets).tolist() == [(9 + 16) / 2, 0.5]
    assert float(MSE().mean(outputs, targets)) == 6.5
