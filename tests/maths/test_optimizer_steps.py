import pytest
import torch

from fedexp.maths.optimizer_steps import adam_step, sgd_step

GRADS = [torch.tensor([0.5, -1.0, 2.0]), torch.tensor([1.5, 0.25, -3.0]), torch.tensor([-0.5, 4.0, 0.0])]


def reference(make, start: torch.Tensor) -> torch.Tensor:
    parameter = torch.nn.Parameter(start.clone())
    optimizer = make([parameter])
    for grad in GRADS:
        parameter.grad = grad.clone()
        optimizer.step()
    return parameter.detach()


def test_two_sgd_steps_with_momentum_by_hand():
    w, velocity = torch.tensor([1.0]), torch.zeros(1)
    sgd_step(w, torch.tensor([2.0]), velocity, 0.1, 0.5, None)  # v = 2, w = 0.8
    sgd_step(w, torch.tensor([4.0]), velocity, 0.1, 0.5, None)  # v = 5, w = 0.3
    assert (w.item(), velocity.item()) == (pytest.approx(0.3), pytest.approx(5.0))


def test_first_adam_step_is_the_learning_rate_by_hand():
    w, slots = torch.tensor([1.0]), torch.zeros(2, 1)
    adam_step(w, torch.tensor([-7.0]), slots, torch.tensor(1.0), (0.1, 0.9, 0.999, 1e-8), None)
    assert w.item() == pytest.approx(1.1)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd_equals_torch(momentum: float):
    start = torch.tensor([1.0, 2.0, 3.0])
    w, velocity = start.clone(), torch.zeros(3) if momentum else None
    for grad in GRADS:
        sgd_step(w, grad.clone(), velocity, 0.1, momentum, None)
    torch.testing.assert_close(w, reference(lambda p: torch.optim.SGD(p, lr=0.1, momentum=momentum), start))


@pytest.mark.parametrize("stacked", [False, True])
def test_adam_equals_torch(stacked: bool):
    start = torch.tensor([1.0, 2.0, 3.0])
    w, slots, step = start.clone(), torch.zeros(2, 3), torch.tensor(0.0)
    for grad in GRADS:
        step += 1
        adam_step(w, grad.clone(), slots, step, (0.1, 0.9, 0.999, 1e-8), torch.ones(1) if stacked else None)
    torch.testing.assert_close(w, reference(lambda p: torch.optim.Adam(p, lr=0.1), start))


def test_a_frozen_row_stays_bit_for_bit():
    start = torch.randn(2, 5)
    active = torch.tensor([[1.0], [0.0]])
    w = start.clone()
    sgd_step(w, torch.randn(2, 5), torch.randn(2, 5), 0.1, 0.9, active)
    adam_step(w, torch.randn(2, 5), torch.rand(2, 2, 5), torch.tensor(3.0), (0.1, 0.9, 0.999, 1e-8), active)
    assert torch.equal(w[1], start[1])
    assert not torch.equal(w[0], start[0])
