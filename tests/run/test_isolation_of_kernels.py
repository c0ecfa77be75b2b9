"""What a run on a GPU sets in its process is put back."""

import torch

from fedexp.run.isolation import isolate_process
from fedexp.training.client.precision import make_deterministic


def _settings() -> list[object]:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    filled = torch.utils.deterministic.fill_uninitialized_memory  # pyright: ignore[reportAttributeAccessIssue]
    return [
        matmul.allow_tf32,
        cudnn.allow_tf32,
        cudnn.benchmark,
        torch.get_deterministic_debug_mode(),
        filled,
    ]


def test_kernels_are_chosen_as_before():
    before = _settings()
    with isolate_process():
        make_deterministic(tf32=False)
        assert _settings() == [False, False, False, 1, False]
    assert _settings() == before
    with isolate_process():
        make_deterministic(tf32=True)
        assert _settings()[:2] == [True, True]
    assert _settings() == before
