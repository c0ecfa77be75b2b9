import numpy as np
import pytest
import torch

from fedexp.parts.dataset.contract import Data, Split
from fedexp.training.client.examples import Examples


@pytest.mark.parametrize("kind", [torch.float32, torch.uint8])
@pytest.mark.parametrize("shape", [(5, 2, 3), (5, 2, 3, 4), (5, 6)])
def test_a_batch_is_normalised_by_channel_and_the_stored_examples_stay(kind: torch.dtype, shape: tuple[int, ...]):
    x = torch.arange(torch.Size(shape).numel()).reshape(shape).to(kind)
    channels = 1 if len(shape) == 2 else 2
    mean, std = (1.0, 2.0)[:channels], (2.0, 4.0)[:channels]
    split = Split(x.clone(), torch.zeros(5, dtype=torch.int64))
    examples = Examples(split, Data(split, split, ("a",), 10.0, mean, std), torch.device("cpu"))
    view = [1, channels] + [1] * (len(shape) - 2)
    expected = (x.float() / 10 - torch.tensor(mean).view(view)) / torch.tensor(std).view(view)
    for _ in range(2):  # a batch by slice is a view of the stored examples: normalising must not write to it
        torch.testing.assert_close(examples.inputs(slice(1, 4)), expected[1:4])
        torch.testing.assert_close(examples.inputs(torch.tensor([0, 4])), expected[[0, 4]])
    ready = examples.normalise()
    assert ready.is_normalised
    torch.testing.assert_close(ready.inputs(slice(1, 4)), expected[1:4])
    torch.testing.assert_close(ready.subset(np.array([4, 0])).inputs(slice(0, 2)), expected[[4, 0]])


def test_tokens_stay_whole_numbers():
    x = torch.tensor([[3, 1], [0, 2]])
    split = Split(x, x)
    examples = Examples(split, Data(split, split, tuple("abcd"), 1.0, (5.0,), (2.0,)), torch.device("cpu"))
    assert torch.equal(examples.inputs(slice(0, 2)), x)
