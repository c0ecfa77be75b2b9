"""Draws by coordinates: uniform, without a pattern, and the same whatever else is drawn."""

import pytest
import torch
from torch.nn import functional as F

from fedexp.training.client.keyed_random import KeyedRandom, split_seed

SEEDS = split_seed([3, 2**61 + 5, 77])
FIRST = torch.zeros(())


def drawn(size: tuple[int, ...], seeds: torch.Tensor = SEEDS[:, 0], step: int = 0) -> torch.Tensor:
    with KeyedRandom().begin(seeds, FIRST + step):
        return torch.rand(size)


def test_numbers_are_uniform_and_do_not_follow_each_other():
    u = drawn((50, 40, 30))
    assert 0 <= u.min() <= u.max() < 1
    shares = torch.histc(u, 20, 0, 1) / u.numel()
    torch.testing.assert_close(shares, torch.full((20,), 0.05), atol=0.003, rtol=0)
    centred = (u.flatten() - 0.5) * 12**0.5
    for shift in (1, 2, 30, 1200):
        assert abs(float((centred[:-shift] * centred[shift:]).mean())) < 0.02


@pytest.mark.parametrize("other", [drawn((4, 5), step=1), drawn((4, 5), SEEDS[:, 1])])
def test_another_step_and_another_client_draw_others(other: torch.Tensor):
    assert not (drawn((4, 5)) == other).any()


def test_the_second_draw_of_a_step_is_another():
    with KeyedRandom().begin(SEEDS[:, 0], FIRST):
        assert not (torch.rand(9) == torch.rand(9)).any()


def test_padding_of_any_dimension_changes_nothing():
    torch.testing.assert_close(drawn((9, 7, 6))[:4, :3, :5], drawn((4, 3, 5)), atol=0, rtol=0)


def test_rows_together_draw_as_each_alone():
    together = drawn((3, 4, 5), SEEDS)
    for row in range(3):
        assert torch.equal(together[row], drawn((4, 5), SEEDS[:, row]))
    with pytest.raises(ValueError, match="for 3 clients together"):
        drawn((4, 5), SEEDS)


def test_kinds_of_draws_have_their_distributions():
    x = torch.ones(200, 300)
    with KeyedRandom().begin(SEEDS[:, 0], FIRST):
        normal, kept = torch.randn_like(x), F.dropout(x, 0.4)
        other, spread = torch.empty_like(x).normal_(2, 3), torch.empty_like(x).uniform_(-1, 3)
        fused, mask = torch.native_dropout(x, 0.4, train=True)
    for values, mean, std in ((normal, 0, 1), (other, 2, 3), (spread, 1, 4 / 12**0.5)):
        assert values.mean() == pytest.approx(mean, abs=0.03)
        assert values.std() == pytest.approx(std, abs=0.03)
    for thinned in (kept, fused):
        assert (thinned == 0).float().mean() == pytest.approx(0.4, abs=0.01)
        assert thinned.max() == pytest.approx(1 / 0.6)
    assert torch.equal(mask, fused > 0)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_dropout_of_nothing_and_of_all(share: float):
    x = torch.ones(50)
    with KeyedRandom().begin(SEEDS[:, 0], FIRST):
        assert torch.equal(F.dropout(x, share), x * (1 - share))
        assert torch.equal(torch.native_dropout(x, share, train=True)[0], x * (1 - share))
        assert torch.equal(torch.native_dropout(x, 0.5, train=False)[0], x)


def test_the_generator_of_the_process_is_not_asked():
    before = torch.get_rng_state()
    drawn((3, 4))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_draw_does_not_import_the_compiler_of_pytorch():
    """Which takes seconds at the start of every run: PyTorch wraps the method, unless it is told not to."""
    assert not hasattr(KeyedRandom.__torch_dispatch__, "__wrapped__")


@pytest.mark.parametrize("most", [1, 2**25])
def test_coins_of_several_steps_at_once_are_those_of_each(most: int):
    steps, together, each = torch.arange(5), KeyedRandom(), KeyedRandom()
    together.max_prefetched = most
    for _ in range(2):
        for position in range(5):
            together.begin_prefetched(SEEDS, steps, position)
            each.begin(SEEDS, steps[position])
            for shape in ((3, 4, 5), (3, 2)):
                assert torch.equal(together.bernoulli(torch.empty(shape), 0.4), each.bernoulli(torch.empty(shape), 0.4))
