import pytest

from fedexp.parts.attack.forging import AttackerKnowledge
from fedexp.parts.attack.ipm import IPM


def test_by_hand(scene: AttackerKnowledge):
    # the honest mean is (2, 0)
    assert IPM(epsilon=0.5).forge(scene)[0].tolist() == [[-1, 0], [-1, 0]]


def test_the_mean_of_all_turns_round_with_a_large_epsilon(scene: AttackerKnowledge):
    forged, _ = IPM(epsilon=2.0).forge(scene)
    everybody = (forged.sum(dim=0) + scene.honest_updates.sum(dim=0)) / 5
    assert float(everybody @ scene.honest_updates.mean(dim=0)) == pytest.approx((2 * -4 + 6) / 5 * 2)
