"""What all attacks keep: honest rows stay, the count is told, and the malicious stay the same."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from composing import CONF
from worlds import world_of

from fedexp.config import catalog
from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import Uploads
from fedexp.run.run import run
from fedexp.simulation import context
from fedexp.simulation.setup import compatibility


def test_the_malicious_are_a_seeded_set_that_grows(tiny):
    few, more, other = (
        world_of(tiny(f"scenario.malicious={count}", f"seed={seed}")).malicious.tolist()
        for count, seed in ((2, 0), (4, 0), (4, 1))
    )
    assert len(few) == 2
    assert set(few) < set(more)
    assert more != other
    assert world_of(tiny("scenario.malicious=0")).malicious.tolist() == []


def test_only_their_rows_change_and_a_lost_honest_row_is_not_looked_at(tiny):
    world = world_of(tiny("attack=ipm", "scenario.malicious=2"))
    owner = np.arange(6)
    delta = torch.arange(6.0)[:, None].expand(6, world.layout.size).clone()
    honest = np.setdiff1d(owner, world.malicious)
    delta[honest[0]] = torch.nan
    sent = Uploads(owner, owner * 0, owner + 1, owner * 0 + 1.0, delta, owner * 1.0, owner * 1.0)
    got, memory = world.exp.attack.tamper(sent, {}, context.make_context(world, 1))
    assert torch.equal(got.delta[honest[1:]], delta[honest[1:]])
    assert got.delta[world.malicious, 0].tolist() == pytest.approx([-0.5 * honest[1:].mean()] * 2)
    assert memory["columns"] == {"malicious": 2}


def test_where_all_are_malicious_they_know_themselves(tiny):
    world = world_of(tiny("attack=ipm", "scenario.malicious=6"))
    owner = np.array([1, 4])
    delta = torch.ones(2, world.layout.size)
    sent = Uploads(owner, owner * 0, owner + 1, owner * 0 + 1.0, delta, owner * 1.0, owner * 1.0)
    assert (world.exp.attack.tamper(sent, {}, context.make_context(world, 1))[0].delta == -0.5).all()


@pytest.mark.parametrize("attack", ["none", *catalog.options(CONF, "attack")])
def test_an_attack_says_whether_it_reads_what_honest_clients_send(tiny, attack: str):
    world = world_of(tiny(f"attack={attack}", "scenario.malicious=3"))
    owner, part = np.arange(6), world.exp.attack
    honest, rows = np.setdiff1d(owner, world.malicious), torch.randn(6, world.layout.size).repeat(2, 1, 1)
    rows[1, honest] += 1
    forged = []
    for delta in rows:
        sent = Uploads(owner, owner * 0, owner + 1, owner * 0 + 1.0, delta, owner * 1.0, owner * 1.0)
        forged.append(part.tamper(sent, {}, context.make_context(world, 1))[0].delta[world.malicious])
    assert torch.equal(*forged) != part.reads_honest_rows


@pytest.mark.parametrize("attack", ["sign_flip", "label_flip"])
def test_the_count_of_each_round_is_a_column(tiny, attack: str, tmp_path: Path):
    words = (f"attack={attack}", "scenario.malicious=3", "rounds=4")
    run(tiny(*words), tmp_path)
    clients = pd.read_csv(tmp_path / "clients.csv")
    malicious = world_of(tiny(*words)).malicious
    took = np.isin(clients["client"], malicious)
    counted = [int(took[clients["round"] == number].sum()) for number in range(1, 5)]
    assert pd.read_csv(tmp_path / "metrics.csv")["attack.malicious"].tolist() == counted
    assert len(set(counted)) > 1


def test_more_malicious_than_clients_is_refused(tiny):
    with pytest.raises(ConfigError, match=r"scenario\.malicious must be at most the number of clients, 6, got 7"):
        compatibility.refuse(spec.build(tiny("scenario.malicious=7")))


def test_a_flipped_majority_leads_the_mean_backwards(tiny):
    from fedexp.simulation.rounds import run_rounds

    losses = {}
    for count in (0, 4):
        world = world_of(tiny("attack=sign_flip", "attack.scale=3", f"scenario.malicious={count}", "rounds=4"))
        losses[count] = [row["test_loss"] for _, row, _ in run_rounds(world.exp, world, world.initial_state())][-1]
    assert losses[4] > 1.2 * losses[0]
