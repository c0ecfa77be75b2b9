import pytest
import torch

from fedexp.maths.optimizer_steps import (
    INTEGER_TYPES,
    adam_step,
    clip_to_norm,
    descend,
    heavy_ball,
    in_pieces,
    mask_rows,
    select_rows,
)

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
    descend(w, heavy_ball(torch.tensor([2.0]), velocity, 0.5), 0.1, None)  # v = 2, w = 0.8
    descend(w, heavy_ball(torch.tensor([4.0]), velocity, 0.5), 0.1, None)  # v = 5, w = 0.3
    assert (w.item(), velocity.item()) == (pytest.approx(0.3), pytest.approx(5.0))


def test_first_adam_step_is_the_learning_rate_by_hand():
    w, slots = torch.tensor([1.0]), torch.zeros(2, 1)
    adam_step(w, torch.tensor([-7.0]), slots, torch.tensor(1.0), (0.1, 0.9, 0.999, 1e-8), None)
    assert w.item() == pytest.approx(1.1)


def test_nesterov_looks_ahead_by_hand():
    """v = 2, step 2 + 2 / 2 = 3; v = 1 + 4 = 5, step 4 + 5 / 2 = 6.5."""
    velocity = torch.zeros(1)
    steps = [heavy_ball(torch.tensor([grad]), velocity, 0.5, nesterov=True).item() for grad in (2.0, 4.0)]
    assert steps == [3.0, 6.5]


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_equals_torch(nesterov: bool):
    start = torch.tensor([1.0, 2.0, 3.0])
    w, velocity = start.clone(), torch.zeros(3)
    for grad in GRADS:
        descend(w, heavy_ball(grad, velocity, 0.9, nesterov), 0.1, None)
    theirs = reference(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=nesterov), start)
    torch.testing.assert_close(w, theirs)


def test_only_longer_gradients_are_shortened_by_hand():
    """(3, 4) is 5 long; at most 2.5 long it is half as long. (0.3, 0.4) and nothing stay bit by bit."""
    rows = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    assert torch.equal(clip_to_norm(rows, 2.5), torch.tensor([[1.5, 2.0], [0.3, 0.4], [0.0, 0.0]]))
    assert torch.equal(clip_to_norm(rows[0], 10.0), rows[0])


def test_shortened_equals_torch_but_for_its_guard_against_zero():
    grad = torch.nn.Parameter(torch.zeros(3))
    grad.grad = GRADS[1].clone()
    torch.nn.utils.clip_grad_norm_([grad], 1.0)
    torch.testing.assert_close(clip_to_norm(GRADS[1], 1.0), grad.grad, rtol=1e-5, atol=0)


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
    descend(w, heavy_ball(torch.randn(2, 5), torch.randn(2, 5), 0.9), 0.1, active)
    adam_step(w, torch.randn(2, 5), torch.rand(2, 2, 5), torch.tensor(3.0), (0.1, 0.9, 0.999, 1e-8), active)
    assert torch.equal(w[1], start[1])
    assert not torch.equal(w[0], start[0])


@pytest.mark.parametrize(
    "lr", [0.1, torch.tensor(0.1), torch.tensor([[0.1], [0.1]])], ids=["number", "scalar", "column"]
)
@pytest.mark.parametrize("worst", [torch.nan, torch.inf, -torch.inf])
def test_a_frozen_row_stays_whatever_its_gradient_is(lr: float | torch.Tensor, worst: float):
    start, grad, active = torch.randn(2, 5), torch.randn(2, 5), torch.tensor([[1.0], [0.0]])
    start[1, 0] = -0.0
    clean, grad[1] = grad.clone(), worst
    ends = []
    for given in (clean, grad):
        w = start.clone()
        descend(w, given, lr, active)
        adam_step(w, given, torch.zeros(2, 2, 5), torch.tensor(1.0), (lr, 0.9, 0.999, 1e-8), active)
        ends.append(w)
    assert torch.equal(*ends)
    assert torch.equal(ends[1][1].view(torch.int32), start[1].view(torch.int32))


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
def test_rows_are_masked_and_selected_bit_for_bit(kind: torch.dtype):
    moved, kept = torch.randn(3, 4).to(kind), torch.tensor([[-0.0, torch.nan, torch.inf, 1.0]] * 3).to(kind)
    active, whole = torch.tensor([[1.0], [0.0], [1.0]]), INTEGER_TYPES[kept.element_size()]
    expected = torch.stack([moved[0], kept[1], moved[2]])
    assert torch.equal(select_rows(active, moved, kept).view(whole), expected.view(whole))
    assert mask_rows(kept, active)[1].view(whole).tolist() == [0, 0, 0, 0]
    assert torch.equal(mask_rows(kept, active)[::2].view(whole), kept[::2].view(whole))


def test_a_tensor_in_pieces_is_all_of_it_and_no_copy():
    x = torch.arange(305_310.0).view(3, -1)
    pieces = in_pieces(x)
    assert len(pieces) == 32
    assert {len(piece) for piece in pieces[:-1]} == {9544}  # a multiple of four
    assert torch.equal(torch.cat(pieces), x.flatten())
    pieces[5].zero_()
    assert int((x == 0).sum()) == 9545
    assert len(in_pieces(torch.zeros(4097))) == 2
