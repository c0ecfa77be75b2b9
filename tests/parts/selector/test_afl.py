"""Active federated learning: what is left out, what is drawn, what is remembered."""

from dataclasses import replace

import numpy as np
import pytest
from stages import Stage, play

from fedexp.parts.selector.afl import AFL, draw_clients

LOSS = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])


def test_three_rounds_by_hand(equal_sizes: Stage):
    # a third is left out, alpha2 is so large that the highest valuations win, nobody comes uniformly
    selector = AFL(count=2, alpha1=1 / 3, alpha2=1000.0, alpha3=0.0)
    first = replace(equal_sizes, loss=LOSS)
    second = replace(equal_sizes, loss=np.array([9.0, 9.0, 9.0, 9.0, 0.5, 0.5]))
    owners, memories = play(selector, [first, second, second])
    # round 1 evaluates everybody and takes the losses 5 and 6; they stay (not refreshed until the round is over)
    assert owners[0] == [4, 5]
    # round 1 saw 5 and 6 again, so round 2 takes 4 and 5 once more, and sees 0.5 and 0.5
    assert owners[1] == [4, 5]
    assert memories[1]["valuation"].numpy() * np.sqrt(10) == pytest.approx([1, 2, 3, 4, 0.5, 0.5])
    # the two lowest (4 and 5) are left out; 3 and 4 remain on top among 1, 2, 3, 4
    assert owners[2] == [2, 3]
    assert memories[2]["valuation"].numpy() * np.sqrt(10) == pytest.approx([1, 2, 9, 9, 0.5, 0.5])


@pytest.mark.law("selector=afl", "pick=highest asks those with the highest valuations")
def test_the_highest_without_drawing_by_hand(equal_sizes: Stage):
    selector = AFL(count=2, alpha1=0.5, alpha2=0.01, alpha3=0.0, pick="highest")
    owners, _ = play(selector, [replace(equal_sizes, loss=LOSS)] * 2 + [replace(equal_sizes, loss=-LOSS)] * 2)
    assert owners == [[4, 5], [4, 5], [4, 5], [2, 3]]  # round 3 saw them fall to -5 and -6


def test_the_highest_of_few_and_of_none_leave_the_rest_to_chance():
    chosen = draw_clients(np.arange(4.0), 3, (0.75, 1.0, 0.0), np.random.default_rng(0), pick="highest")
    assert len(set(chosen)) == 3
    assert 3 in chosen
    seen = {
        tuple(draw_clients(np.arange(9.0), 2, (0, 1, 1), np.random.default_rng(s), pick="highest")) for s in range(20)
    }
    assert len(seen) > 5  # with alpha3 = 1 all places are uniform; the published slice [-0:] took everybody


@pytest.mark.law("selector=afl", "the share alpha3 of the places goes to the others, all equally likely")
def test_left_out_clients_come_back_uniformly():
    # 3 of 4 are left out, so the one by valuation is client 3; the other place is anybody's
    seen = np.zeros(4)
    for seed in range(3000):
        chosen = draw_clients(np.arange(4.0), 2, (0.75, 1.0, 0.5), np.random.default_rng(seed))
        assert 3 in chosen
        seen[chosen] += 1
    assert seen[:3] / 3000 == pytest.approx([1 / 3] * 3, abs=0.03)


@pytest.mark.law("selector=afl", "a client is drawn in proportion to exp(alpha2 times its valuation)")
def test_probabilities_grow_exponentially_with_the_valuation():
    # p ~ exp(2 v) with v = 0 and ln 2: 1 to 4
    seen = [
        int(draw_clients(np.array([0.0, np.log(2)]), 1, (0.0, 2.0, 0.0), np.random.default_rng(s))[0])
        for s in range(5000)
    ]
    assert np.mean(seen) == pytest.approx(0.8, abs=0.02)


def test_when_fewer_have_weight_than_places_the_rest_comes_uniformly():
    chosen = draw_clients(np.array([1.0, 2.0, 3.0, 4.0]), 3, (0.75, 1.0, 0.0), np.random.default_rng(0))
    assert len(chosen) == 3
    assert 3 in chosen


@pytest.mark.parametrize(("participants", "alpha3", "by_valuation"), [(10, 0.7, 3), (10, 0.1, 9), (3, 0.1, 2)])
def test_places_are_floored_against_rounding_errors(participants: int, alpha3: float, by_valuation: int):
    # (1 - 0.7) * 10 is 3.0000000000000004 and (1 - 0.1) * 10 is 9.0, but 1 - 0.9 times 10 would be 0.99...
    valuation = np.where(np.arange(100) < 50, 0.0, 1.0)
    chosen = draw_clients(valuation, participants, (0.5, 1e6, alpha3), np.random.default_rng(1))
    assert (chosen >= 50).sum() >= by_valuation
    assert int((1 - 0.9) * 10 + 1e-9) == 1


def test_ties_leave_out_the_lower_ids_first():
    chosen = draw_clients(np.ones(4), 2, (0.5, 1.0, 0.0), np.random.default_rng(0))
    assert chosen.tolist() == [2, 3]


def test_mean_favours_small_clients_and_sum_large_ones():
    stage = Stage(np.array([4, 100]), loss=np.array([1.0, 1.0]))
    for rule, expected in ((AFL(count=1, loss="mean"), [0.5, 0.1]), (AFL(count=1, loss="sum"), [2.0, 10.0])):
        _, memory = rule.choose({}, stage.ctx)
        assert memory["valuation"].tolist() == pytest.approx(expected)


def test_last_epoch_takes_what_the_clients_report(equal_sizes: Stage):
    stage = replace(equal_sizes, loss=LOSS)
    selector = AFL(count=6, valuation_at="last_epoch")
    plan, memory = selector.choose({}, stage.ctx)
    uploads = replace(stage.uploads(plan), loss_after=LOSS * 2)
    assert selector.observe(uploads, memory, stage.ctx)["valuation"].numpy() * np.sqrt(10) == pytest.approx(LOSS * 2)


def test_a_loss_that_is_not_finite_tells_nothing(equal_sizes: Stage):
    broken = np.array([1.0, np.nan, np.inf, 4.0, 5.0, 6.0])
    stage = replace(equal_sizes, loss=broken)
    selector = AFL(count=6, alpha1=0.0)
    plan, memory = selector.choose({}, stage.ctx)
    assert np.isnan(memory["valuation"].numpy()[[1, 2]]).all()
    memory = selector.observe(stage.uploads(plan), memory, replace(stage, loss=LOSS * np.nan).ctx)
    assert memory["valuation"].numpy()[3] * np.sqrt(10) == pytest.approx(4)
    assert draw_clients(memory["valuation"].numpy(), 4, (1 / 3, 1.0, 0.0), np.random.default_rng(0)).tolist() == [
        0,
        3,
        4,
        5,
    ]


def test_who_is_away_is_asked_for_its_loss_when_it_is_there(equal_sizes: Stage):
    """Clients 4 and 5 are away at first, client 5 in the second round, too."""
    rule = AFL(count=1, alpha1=0.0, alpha3=0.0, pick="highest")
    loss = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    stages = [replace(equal_sizes, loss=loss, busy=np.array(busy, np.int64)) for busy in ([4, 5], [5], [])]
    owners, memories = play(rule, stages)
    assert owners == [[3], [4], [5]]
    assert np.isnan(memories[0]["valuation"].numpy()).tolist() == [False] * 4 + [True] * 2
    assert memories[0]["unknown"].tolist() == [4, 5]
    assert memories[1]["unknown"].tolist() == [5]
    assert "unknown" not in memories[2]
    assert not np.isnan(memories[2]["valuation"].numpy()).any()
