"""What a run sets in its process is put back, and what the process has set does not reach the run."""

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


def test_tensors_are_those_of_a_new_process():
    torch.set_default_dtype(torch.float64)
    try:
        with torch.inference_mode(), torch.device("meta"):
            with isolate_process():
                made = torch.ones(2, requires_grad=True)
                made.sum().backward()
                assert (made.dtype, made.device.type) == (torch.float32, "cpu")
                assert made.grad is not None
            assert torch.ones(2).device.type == "meta"
            assert torch.is_inference_mode_enabled()
        assert torch.ones(2).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
