import pytest
from scipy.stats import norm

from fedexp.parts.attack.alie import ALIE, largest_z
from fedexp.parts.attack.forging import AttackerKnowledge


def test_the_papers_example():
    # of 50 workers 24 are corrupted: s = 26 - 24 = 2 and z = Phi^-1(24 / 26)
    assert largest_z(50, 24) == pytest.approx(norm.ppf(24 / 26))
    assert largest_z(50, 24) == pytest.approx(1.426, abs=1e-3)


def test_few_attackers_stay_at_the_mean_and_a_majority_needs_nobody():
    assert largest_z(20, 1) == 0.0
    assert largest_z(5, 3) == 0.0
    assert largest_z(4, 4) == 0.0


def test_the_fewest_that_shift_anything():
    # of 10 participants 3: s = 6 - 3 = 3 of 7, z = Phi^-1(4 / 7)
    assert largest_z(10, 3) == pytest.approx(norm.ppf(4 / 7))
    assert (
        ALIE().why_harmless(10, 2).endswith("they send the plain mean of the others: it takes 3 to 5, or set attack.z")
    )
    assert ALIE().why_harmless(2, 1).endswith("no number of them gives more, or set attack.z")
    assert not ALIE().why_harmless(10, 3)
    assert not ALIE(z=0.5).why_harmless(10, 2)


def test_by_hand(scene: AttackerKnowledge):
    # honest: means (2, 0), standard deviations sqrt(2/3) and sqrt(6)
    forged, _ = ALIE(z=2.0).forge(scene)
    assert forged[0].tolist() == pytest.approx([2 - 2 * (2 / 3) ** 0.5, -2 * 6**0.5])
    assert forged[1].tolist() == forged[0].tolist()
    # their own: means (2, 3), standard deviations 1 and 2
    assert ALIE(z=1.5, knows="own").forge(scene)[0][0].tolist() == pytest.approx([0.5, 0.0])


def test_the_formula_is_used_by_default(scene: AttackerKnowledge):
    # 2 of 5: s = 3 - 2 = 1, z = Phi^-1((3 - 1) / 3)
    forged, _ = ALIE().forge(scene)
    assert forged[0][0].item() == pytest.approx(2 - norm.ppf(2 / 3) * (2 / 3) ** 0.5)


def test_only_what_the_attackers_hold_themselves_is_no_secret_of_others():
    assert ALIE().reads_honest_rows
    assert not ALIE(knows="own").reads_honest_rows
