import numpy as np
import pytest
from stages import Stage, play

from fedexp.parts.selector.random import Random, sample_clients


def test_a_share_is_rounded_up_and_is_at_least_one():
    for fraction, expected in ((0.1, 1), (0.5, 3), (0.51, 4), (1.0, 6), (1e-9, 1)):
        owners, _ = play(Random(fraction=fraction), [Stage(np.full(6, 1))])
        assert len(owners[0]) == expected


def test_three_rounds_follow_the_rounds_own_streams(equal_sizes: Stage):
    owners, memories = play(Random(count=2), [equal_sizes] * 3)
    dice = [equal_sizes.at(number).rng("selector").choice(6, 2, replace=False, shuffle=False) for number in (1, 2, 3)]
    assert owners == [sorted(thrown.tolist()) for thrown in dice]
    assert owners == [[4, 5], [3, 4], [0, 4]]
    assert memories == [{}, {}, {}]  # nothing is learnt


def test_three_rounds_are_three_draws(equal_sizes: Stage):
    owners, _ = play(Random(count=3), [equal_sizes] * 8)
    assert len({tuple(owner) for owner in owners}) > 3


@pytest.mark.law("selector=random", "everybody is equally likely to be asked")
def test_everybody_is_equally_likely():
    seen = np.zeros(5)
    for seed in range(4000):
        seen[sample_clients(5, 2, np.random.default_rng(seed))] += 1
    assert seen / 4000 == pytest.approx([0.4] * 5, abs=0.03)
    assert sample_clients(3, 9, np.random.default_rng(0)).tolist() == [0, 1, 2]


def test_sampling_is_uniform_and_cheap():
    counts = np.bincount(
        np.concatenate([sample_clients(10, 3, np.random.default_rng(seed)) for seed in range(3000)]), minlength=10
    )
    assert counts.sum() == 9000
    assert abs(counts - 900).max() < 5 * (3000 * 0.3 * 0.7) ** 0.5
    assert len(set(sample_clients(10**9, 100, np.random.default_rng(0)))) == 100
