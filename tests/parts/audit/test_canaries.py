"""The canary audit in whole runs: who trains on what, what is told, and that it finds missing noise."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from worlds import rounds_with_rows, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import State
from fedexp.parts.audit.bound import lower_bound
from fedexp.parts.audit.canaries import CanaryAudit
from fedexp.run.run import run
from fedexp.run.state import checkpoint
from fedexp.simulation import context
from fedexp.simulation.rounds import run_rounds, with_workers
from fedexp.simulation.setup import compatibility
from fedexp.training.per_example import clipped_sum

Tiny = Callable[..., dict[str, Any]]
PRIVATE = ("privacy=dp_sgd", "privacy.clip=1", "privacy.delta=1e-5", "local.batch_size=full", "local.lr=0.5")
SMALL = ("audit=canaries", "audit.count=31", "audit.guesses=0.4", *PRIVATE, "privacy.noise_multiplier=2")
WHOLE = (
    *("dataset=digits", "model.hidden=[64]", "scenario.clients=2", "rounds=6", "audit=canaries", "audit.count=300"),
    *PRIVATE,
)


def lived(config: dict[str, Any]) -> list[tuple[State, dict[str, Any]]]:
    world = world_of(config)
    with with_workers(world.exp, world, world.initial_state()) as world:
        return [(state, row) for state, row, _ in run_rounds(world.exp, world, world.initial_state())]


def audited(row: dict[str, Any]) -> dict[str, Any]:
    return {name: cell for name, cell in row.items() if name.startswith("audit.")}


class TestPlanting:
    def test_clients_train_on_the_included_ones_and_nobody_on_the_others(self, tiny: Tiny):
        plain, world = world_of(tiny(*PRIVATE, "privacy.noise_multiplier=2")), world_of(tiny(*SMALL))
        planted = world.canaries
        assert planted.index.tolist() == list(range(120, 151))
        assert np.bincount(planted.owner).tolist() == [6, 5, 5, 5, 5, 5]
        assert 0 < planted.included.sum() < 31
        for client in range(6):
            mine = planted.index[planted.included & (planted.owner == client)]
            assert world.partition.shard(client).tolist() == [*plain.partition.shard(client), *mine]
        assert torch.equal(world.train.x[:120], plain.train.x)
        assert torch.equal(world.train.y[120:], planted.y)
        assert len(plain.canaries.index) == 0

    def test_the_ledger_counts_them(self, tiny: Tiny):
        """q = B / n with the included ones in n."""
        world = world_of(tiny(*SMALL, "local.batch_size=10"))
        held = np.bincount(world.canaries.owner[world.canaries.included], minlength=6)
        assert context.make_context(world, 1).sizes.tolist() == (20 + held).tolist()
        state, _, sent = next(run_rounds(world.exp, world, world.initial_state()))
        assert sent.examples.tolist() == (20 + held)[sent.owner].tolist()
        steps = dict(zip(state.memory["privacy"]["owner"].tolist(), state.memory["privacy"]["count"], strict=True))
        assert steps == {client: (20 + held[client]) // 10 for client in sent.owner.tolist()}

    def test_malicious_clients_get_none_and_poison_none(self, tiny: Tiny):
        world = world_of(tiny(*SMALL, "scenario.malicious=2", "attack=label_flip"))
        assert not np.isin(world.canaries.owner, world.malicious).any()
        with pytest.raises(ConfigError, match="honest client"):
            world_of(tiny(*SMALL, "scenario.malicious=6"))

    def test_noise_is_made_of_entries_of_the_data(self, tiny: Tiny):
        world = world_of(tiny(*SMALL))
        assert torch.isin(world.canaries.x, world.train.x[:120]).all()
        assert world.canaries.x.shape == (31, 8)

    def test_mislabelled_ones_are_copies_with_a_wrong_label(self, tiny: Tiny):
        world = world_of(tiny(*SMALL, "audit.example=mislabelled"))
        for x, y in zip(world.canaries.x, world.canaries.y, strict=True):
            source = int((world.train.x[:120] == x).all(dim=1).nonzero())
            assert world.train.y[source] != y


class TestWhatIsTold:
    def test_blank_where_nothing_is_evaluated(self, tiny: Tiny):
        first, second, third = (row for _, row in lived(tiny(*SMALL, "rounds=3", "evaluation.every=2")))
        assert set(audited(first).values()) == {None}
        assert audited(first).keys() == audited(second).keys() == audited(third).keys()
        assert third["audit.guesses"] == 12
        assert third["audit.epsilon_lower"] == lower_bound(31, 12, third["audit.correct"], 1e-5)
        assert not audited(lived(tiny())[0][1])

    def test_advantage_by_hand(self, tiny: Tiny):
        """Guessed in: the 3 highest; out: the 3 lowest of 8."""
        world = world_of(tiny(*SMALL, "audit.count=8", "audit.guesses=0.75"))
        coins = np.array([1, 1, 0, 1, 0, 1, 0, 0], bool)
        object.__setattr__(world.canaries, "included", coins)
        score = torch.tensor([9.0, 8, 7, 6, 5, 4, 3, 2], dtype=torch.float64)[:, None]
        told = world.exp.audit.report({"score": score}, context.make_context(world, 1))
        assert (told["correct"], told["guesses"]) == (4, 6)
        assert told["advantage"] == pytest.approx(2 / 3 - 1 / 3)

    def test_losses_against_the_first_model(self, tiny: Tiny):
        world = world_of(tiny(*SMALL, "audit.score=loss", "audit.count=200", "local.batch_size=10", "local.lr=0.2"))
        state = list(run_rounds(world.exp, world, world.initial_state()))[-1][0]
        ctx, index = context.make_context(world, 3, state.models), world.canaries.index
        fell = ctx.audit.example_losses(world.first, index) - ctx.audit.example_losses(state.models[0], index)
        order = np.argsort(-fell)
        right = world.canaries.included[order[:40]].sum() + (~world.canaries.included[order[-40:]]).sum()
        assert world.exp.audit.report({}, ctx)["correct"] == right

    @pytest.mark.parametrize("words", [("engine=stacked",), ("engine.workers=2",)])
    def test_however_the_clients_are_trained(self, tiny: Tiny, words: tuple[str, ...]):
        plain, other = lived(tiny(*SMALL))[-1], lived(tiny(*SMALL, *words))[-1]
        score = plain[0].memory["audit"]["score"]
        torch.testing.assert_close(other[0].memory["audit"]["score"], score, atol=1e-4, rtol=1e-3)
        assert audited(plain[1]) == audited(other[1])

    def test_a_stop_in_the_middle_changes_nothing(self, tiny: Tiny, tmp_path: Path):
        config = tiny(*SMALL, "rounds=4")
        whole = lived(config)
        checkpoint.save(tmp_path, whole[1][0], config, {"name": "loop", "reason": ""})
        loaded = checkpoint.load(tmp_path, config, torch.device("cpu"))
        assert loaded is not None
        world = world_of(config)
        *_, (_, row, _) = run_rounds(world.exp, world, loaded.state)
        assert audited(row) == audited(whole[-1][1])

    def test_what_is_not_finite_leaves_no_trace(self, tiny: Tiny):
        world = world_of(tiny(*SMALL))
        _, _, sent = next(rounds_with_rows(world))
        sent.delta[1, 3] = torch.nan
        score = world.exp.audit.observe(sent, {}, context.make_context(world, 1))["score"][:, 0].numpy()
        assert np.isfinite(score).all()
        assert (score != 0).tolist() == np.isin(world.canaries.owner, sent.owner[[0, 2]]).tolist()

    def test_without_privacy_there_is_no_upper_bound(self, tiny: Tiny, tmp_path: Path):
        run(tiny("audit=canaries", "audit.count=31", "audit.guesses=0.4"), tmp_path)
        told = json.loads((tmp_path / "summary.json").read_text())["audit"]
        assert told["epsilon_upper"] is None
        assert not told["violated"]
        assert "the ledger promises nothing" in told["statement"]

    def test_under_noise_on_the_mean_the_bound_is_that_of_one_example(self, tiny: Tiny, tmp_path: Path):
        words = ("privacy=client_central", "privacy.clip=0.5", "privacy.noise_multiplier=4", "privacy.delta=1e-3")
        audit = ("audit=canaries", "audit.count=31", "audit.guesses=0.4", "audit.score=loss")
        config = tiny(*words, *audit, "aggregator.weighting=uniform", "selector=all", "rounds=2")
        run(config, tmp_path)
        told = json.loads((tmp_path / "summary.json").read_text())["audit"]
        ledger = pd.read_csv(tmp_path / "metrics.csv")["privacy.epsilon_pld"].iloc[-1]
        expected = world_of(config).exp.privacy.example_columns({"round": 2})["privacy.epsilon_pld"]
        assert told["epsilon_upper"] == expected > ledger

    def test_a_run_says_it_in_words(self, tiny: Tiny, tmp_path: Path, caplog: pytest.LogCaptureFixture):
        with caplog.at_level("INFO"):
            run(tiny(*SMALL), tmp_path)
        told = json.loads((tmp_path / "summary.json").read_text())["audit"]
        last = pd.read_csv(tmp_path / "metrics.csv").iloc[-1]
        assert told["epsilon_upper"] == last["privacy.epsilon_pld"]
        assert told["epsilon_lower"] == last["audit.epsilon_lower"]
        assert told["statement"] in caplog.messages
        assert told["statement"].startswith(
            f"audit: lower bound {told['epsilon_lower']:.3g} (95 %), ledger's upper bound"
        )


def test_a_violation_is_called_one():
    told = CanaryAudit().verdict(
        {
            "audit.epsilon_lower": 2.5,
            "audit.correct": 60.0,
            "audit.guesses": 60.0,
            "audit.advantage": 1.0,
            "privacy.epsilon_pld": 0.9,
        }
    )
    assert told["violated"]
    assert told["statement"] == (
        "audit: VIOLATION: lower bound 2.5 (95 %), ledger's upper bound 0.9; 60 of 60 guesses right"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("audit.count=20", "audit.guesses=0.2"), "audit.count must leave at least 3 guesses of each kind"),
        (("audit.count=121", "audit.example=mislabelled"), "audit.count must be at most the 120 training examples"),
        (("privacy=client_local", "privacy.noise_multiplier=1", *PRIVATE[1:3]), "use audit.score=loss or privacy="),
        (("aggregator=pfnm", "model.hidden=[3]"), "aggregator=pfnm changes the widths"),
    ],
)
def test_what_cannot_be_audited_is_refused(tiny: Tiny, words: tuple[str, ...], message: str):
    with pytest.raises(ConfigError, match=message):
        compatibility.refuse(spec.build(tiny("audit=canaries", *words)))


class TestAcceptance:
    """The promise is kept, and where it is not the audit says so."""

    @pytest.mark.parametrize("sigma", [1, 3, 10])
    def test_less_is_proven_than_promised(self, tiny: Tiny, sigma: float):
        row = lived(tiny(*WHOLE, f"privacy.noise_multiplier={sigma}", "evaluation.every=6"))[-1][1]
        assert row["audit.epsilon_lower"] < row["privacy.epsilon_pld"] <= row["privacy.epsilon_rdp"]
        assert sigma > 1 or row["audit.epsilon_lower"] > 1

    def test_missing_noise_is_found(self, tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
        """The ledger still believes in it."""
        monkeypatch.setattr(clipped_sum.Noise, "draw", lambda self, active: None)
        row = lived(tiny(*WHOLE, "privacy.noise_multiplier=10", "evaluation.every=6"))[-1][1]
        assert row["privacy.epsilon_pld"] < 1.2
        assert row["audit.epsilon_lower"] > 2
