"""The clock of one round by hand; who breaks off in the middle."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from worlds import Tiny, rounds_with_rows, world_of

from fedexp.core.client_resources import Resources
from fedexp.parts.fleet.machines import simulate_round
from fedexp.simulation import context


def resources(update: list[float], upload: list[float], overhead: float = 0.0) -> Resources:
    return Resources(1 / np.array(upload), np.ones(len(update)), np.array(update), 1e6, overhead)


class TestPlay:
    everyone = np.full(3, np.inf)
    three = resources([5, 1, 12], [2, 3, 4])  # distribution takes 4 s, the uploads are in at 11, 14 and 20 s

    def test_without_a_deadline_the_last_upload_ends_the_round(self):
        outcome = simulate_round(self.three, self.everyone, None, 180.0)
        assert outcome.arrived.all()
        assert outcome.seconds == pytest.approx(20)

    def test_overhead_comes_first(self):
        assert simulate_round(
            resources([5, 1, 12], [2, 3, 4], 1.5), self.everyone, None, 180.0
        ).seconds == pytest.approx(21.5)

    def test_what_would_end_after_the_deadline_is_lost_and_the_round_ends_there(self):
        outcome = simulate_round(self.three, self.everyone, 15.0, 180.0)
        assert outcome.arrived.tolist() == [True, True, False]
        assert outcome.late.tolist() == [False, False, True]
        assert outcome.seconds == 15.0

    def test_the_round_ends_early_when_all_are_in(self):
        assert simulate_round(self.three, self.everyone, 100.0, 180.0).seconds == pytest.approx(20)

    def test_who_dropped_out_leaves_its_turn_to_the_next(self):
        outcome = simulate_round(self.three, np.array([-np.inf, np.inf, np.inf]), None, 180.0)
        assert outcome.arrived.tolist() == [False, True, True]
        assert not outcome.late.any()
        assert outcome.seconds == pytest.approx(4 + 16)  # the second is in at 4, the third trains until 12

    def test_who_goes_while_it_trains_is_waited_for_until_then(self):
        outcome = simulate_round(
            self.three, np.array([np.inf, np.inf, 17.0]), None, 180.0
        )  # it would begin to send at 16
        assert outcome.arrived.tolist() == [True, True, False]
        assert not outcome.late.any()
        assert outcome.seconds == pytest.approx(17)
        early = simulate_round(self.three, np.array([np.inf, np.inf, 12.0]), None, 180.0)
        assert early.seconds == pytest.approx(14)  # the second is in at 14

    def test_a_link_is_free_again_when_who_sends_goes(self):
        outcome = simulate_round(self.three, np.array([10.0, np.inf, np.inf]), None, 180.0)  # it sends from 9 on
        assert outcome.arrived.tolist() == [False, True, True]
        assert simulate_round(self.three, np.array([10.0, np.inf, 1.0]), None, 180.0).seconds == pytest.approx(10 + 3)

    def test_each_by_itself(self):
        stays_s = np.array([8.9, 8.0, np.inf])  # they would be in at 9, 7 and 20 s
        outcome = simulate_round(self.three, stays_s, None, 180.0, is_shared=False)
        assert outcome.arrived.tolist() == [False, True, True]
        assert outcome.seconds == pytest.approx(20)

    def test_who_goes_after_the_deadline_is_late(self):
        outcome = simulate_round(self.three, np.array([np.inf, np.inf, 17.0]), 16.0, 180.0)
        assert outcome.late.tolist() == [False, False, True]
        assert outcome.seconds == 16

    def test_when_all_go_the_server_waits_for_the_last_of_them(self):
        assert simulate_round(self.three, np.array([5.0, 6.0, 7.0]), None, 1.0).seconds == pytest.approx(7)
        assert simulate_round(self.three, np.array([5.0, 6.0, 7.0]), None, 180.0).seconds == pytest.approx(7)
        assert simulate_round(self.three, np.array([5.0, 6.0, 7.0]), 50.0, 180.0).seconds == pytest.approx(7)

    def test_when_all_drop_out_the_server_waits(self):
        assert simulate_round(self.three, np.full(3, -np.inf), 50.0, 180.0).seconds == 50
        assert simulate_round(self.three, np.full(3, -np.inf), None, 180.0).seconds == pytest.approx(
            4 + 180
        )  # after distribution


EQUAL = ("fleet=simulated", "fleet.jitter_std=0", "fleet.speed_low=10", "fleet.speed_high=10", "fleet.dropout=0.5")
TRAINING_S = 2.0  # of the 20 examples that each of six clients has


def breaks(tiny: Tiny, *words: str) -> tuple[np.ndarray, float, np.ndarray]:
    """When each of six clients breaks off in each of 60 rounds, after the download; its upload; who is lost."""
    world, moments, lost, upload_s = world_of(tiny(*EQUAL, *words)), [], [], 0.0
    for number in range(1, 61):
        journeys = world.exp.fleet.journeys(np.arange(6), context.make_context(world, number))
        assert journeys.training_s == pytest.approx(TRAINING_S)
        assert journeys.breaks_s is not None
        moments.append(journeys.breaks_s - journeys.download_s)
        lost.append(journeys.lost)
        upload_s = float(journeys.upload_s[0])
    return np.concatenate(moments), upload_s, np.concatenate(lost)


@pytest.mark.parametrize("where", ["training", "upload", "both"])
def test_who_drops_out_does_so_in_the_middle_of_its_work(tiny: Tiny, where: str):
    moments, upload_s, lost = breaks(tiny, f"fleet.dropout_in={where}", "fleet.bandwidth_mbit=0.002")
    low, high = {"training": (0, 2), "upload": (2, 2 + upload_s), "both": (0, 2 + upload_s)}[where]
    happens = moments < np.inf
    assert not lost.any()
    assert happens.mean() == pytest.approx(0.5, abs=0.1)
    assert low <= moments[happens].min()
    assert moments[happens].max() <= high
    assert moments[happens].mean() == pytest.approx((low + high) / 2, abs=0.1 * (high - low))


def test_without_a_moment_nobody_waits_for_who_drops_out(tiny: Tiny):
    moments, _, lost = breaks(tiny)
    assert np.isinf(moments).all()
    assert lost.mean() == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("pacing", [(), ("pacing=over_selection", "pacing.uploads=2")], ids=["synchronous", "over"])
@pytest.mark.parametrize("algorithm", ["fedper", "ditto", "lg_fedavg"])
@pytest.mark.parametrize(("where", "keeps"), [("training", False), ("upload", True), ("null", True)])
def test_only_who_trains_to_the_end_keeps_something_of_it(
    tiny: Tiny, where: str, keeps: bool, algorithm: str, pacing: tuple[str, ...]
):
    words = (*EQUAL[:-1], "fleet.dropout=1", f"fleet.dropout_in={where}", "evaluation.personal_fraction=0", "rounds=2")
    world = world_of(tiny(f"algorithm={algorithm}", *words, *pacing))
    *_, (state, row, _) = rounds_with_rows(world)
    assert row["mb_up"] == 0
    assert torch.equal(state.models[0].flat, world.first.flat)
    memory = state.memory["companion" if algorithm == "ditto" else "personal"]
    assert (len(memory.get("owner", ())) > 0) == keeps


def test_who_goes_while_it_trains_keeps_nothing_of_it(tiny: Tiny, tmp_path: Path):
    (tmp_path / "windows.csv").write_text("client,from_s,to_s\n0,0,1000\n1,0,1.5\n")
    words = ("fleet=simulated", "fleet.jitter_std=0", "fleet.speed_low=10", "fleet.speed_high=10", "fleet.link=own")
    words = (*words, "scenario.clients=2", "dataset.train_size=40", "scenario.participants=2", "availability=trace")
    world = world_of(tiny("local=personal_layer", *words, f"availability.path={tmp_path / 'windows.csv'}", "rounds=1"))
    (state, *_), *_ = rounds_with_rows(world)
    assert state.memory["personal"]["owner"].tolist() == [0]


@pytest.mark.parametrize("link", ["own", "shared"])
@pytest.mark.parametrize("pacing", ["synchronous", "buffered"])
def test_work_is_lost_and_time_is_spent(tiny: Tiny, link: str, pacing: str):
    """In the same rounds as many are lost, but now their places are free, and the server knows it, later or sooner."""
    words = (*EQUAL, f"fleet.link={link}", "rounds=20", "fleet.bandwidth_mbit=0.05", f"pacing={pacing}")
    column = "fleet.dropped_out" if pacing == "synchronous" else "pacing.lost"
    lost = []
    for where in ("null", "both"):
        rows = [row for _, row, _ in islice(rounds_with_rows(world_of(tiny(*words, f"fleet.dropout_in={where}"))), 6)]
        lost.append(sum(row[column] for row in rows))
        assert all(row["sim_s"] > 0 for row in rows)
    assert min(lost) > 3
    if pacing == "synchronous":
        assert lost[0] == lost[1]


def test_who_goes_away_loses_its_work(tiny: Tiny, tmp_path: Path):
    """Client 1 would deliver after its window; in the second round it is not there, and client 0 is alone."""
    (tmp_path / "windows.csv").write_text("client,from_s,to_s\n0,0,1000\n1,0,1.5\n")
    words = ("fleet=simulated", "fleet.jitter_std=0", "fleet.speed_low=10", "fleet.speed_high=10", "fleet.link=own")
    words = (*words, "scenario.clients=2", "dataset.train_size=40", "scenario.participants=2", "availability=trace")
    words = (*words, f"availability.path={tmp_path / 'windows.csv'}", "fleet.bandwidth_mbit=1000", "rounds=3")
    rows = [(row, sent.owner.tolist()) for _, row, sent in rounds_with_rows(world_of(tiny(*words)))]
    assert [owner for _, owner in rows] == [[0, 1], [0], [0]]
    assert [row["fleet.dropped_out"] for row, _ in rows] == [1, 0, 0]
    assert [row["availability.present"] for row, _ in rows] == [2, 1, 1]
    ending = [row for _, row, _ in rounds_with_rows(world_of(tiny(*words, "availability.interrupts=false")))]
    assert [row["fleet.dropped_out"] for row in ending] == [0, 0, 0]
