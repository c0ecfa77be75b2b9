"""Runs in which clients train on while the server steps: their limits, their factors, and what they remember."""

import re
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from worlds import Tiny, rounds_with_rows, same, uploads_like, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import Memory, Plan, State
from fedexp.parts.context import Context
from fedexp.parts.pacing.buffered import Buffered
from fedexp.parts.selector.random import Random
from fedexp.simulation import context
from fedexp.simulation.round import run_round
from fedexp.simulation.setup.compatibility import refuse
from fedexp.simulation.start import dispatch_versions, positions_by_number, start
from fedexp.simulation.world import World

WORDS = ("scenario.participants=3", "local.epochs=2", "local.batch_size=7", "model.dropout=0.2", "rounds=20")
UNIFORM = "aggregator.weighting=uniform"
FLEET = ("fleet=simulated", "fleet.speed_low=5", "fleet.jitter_std=0.3", "fleet.link=own")


def models_of(config: dict, rounds: int = 5) -> list[torch.Tensor]:
    """The global models of the first rounds."""
    return [state.models[0].flat for state in states_of(config, rounds)]


def states_of(config: dict, rounds: int = 5) -> list[State]:
    return [state for state, *_ in islice(rounds_with_rows(world_of(config)), rounds)]


def equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(*pair) for pair in zip(one, other, strict=True))


TOGETHER = ("pacing=buffered", "pacing.buffer=3", "pacing.refill=step")
RULES = {
    "sgd": (),
    "prox": ("local=prox", "local.mu=1"),
    "momentum": ("local.momentum=0.5",),
    "personal": ("local=personal_layer",),
    "moon": ("local=moon",),
    "noise": ("privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3"),
    "krum": ("aggregator=krum", "scenario.byzantine=0"),
}


@pytest.mark.law("pacing=buffered", "a buffer of all that train equally fast is a synchronous run, to the byte")
@pytest.mark.parametrize("words", RULES.values(), ids=RULES)
def test_a_buffer_of_all_that_train_equally_fast_is_a_synchronous_run(tiny: Tiny, words: tuple[str, ...]):
    synchronous = models_of(tiny(*WORDS, *words))
    assert equal(synchronous, models_of(tiny(*WORDS, *words, *TOGETHER)))
    assert equal(synchronous, models_of(tiny(*WORDS, *words, *TOGETHER, "pacing.max_staleness=0")))


MIXED = ("pacing.mixing=1", "pacing.staleness=constant")


def test_fedplus_mixes_in_the_models_of_all_that_train_equally_fast_as_a_synchronous_run_does(tiny: Tiny):
    words = (*WORDS, "local=fedplus", "aggregator=fedplus_centre")
    assert equal(models_of(tiny(*words)), models_of(tiny(*words, *TOGETHER, *MIXED)))


def test_fedplus_remembers_the_models_that_clients_sent_however_stale(tiny: Tiny):
    words = (*FLEET, *WORDS, "local=fedplus", "aggregator=fedplus_centre", "pacing=buffered", "pacing.buffer=2")
    states = states_of(tiny(*words, *MIXED))
    assert max(state.memory["pacing"]["columns"]["most_stale"] for state in states) > 0
    kept, clients = states[-1].memory["aggregator"]["0"], states[-1].memory["local"]
    assert kept["owner"].tolist() == clients["owner"].tolist()
    torch.testing.assert_close(kept["rows"][:, : clients["rows"].shape[1]], clients["rows"])
    with pytest.raises(ConfigError, match=r"use pacing\.mixing=1 pacing\.staleness=constant$"):
        refuse(spec.build(tiny(*words)))


@pytest.mark.law("pacing=buffered", "one client at a time is a run with one participant, to the byte")
@pytest.mark.parametrize("optimizer", ["replace", "adam"])
def test_one_client_at_a_time_is_a_run_of_one_participant(tiny: Tiny, optimizer: str):
    words = (*WORDS[1:], "scenario.participants=1", f"server_optimizer={optimizer}")
    assert equal(models_of(tiny(*words)), models_of(tiny(*words, "pacing=buffered", "pacing.buffer=1", *FLEET)))


@pytest.mark.law("pacing=buffered", "mixing = 1 of the only client is a synchronous run of it, to the byte")
def test_mixing_in_the_whole_model_of_one_client_is_central_training(tiny: Tiny):
    words = ("dataset.train_size=40", "scenario.clients=1", "scenario.participants=1", *WORDS[1:])
    mixing = ("pacing=buffered", "pacing.buffer=1", "pacing.mixing=1.0")
    for one, other in zip(models_of(tiny(*words)), models_of(tiny(*words, *mixing)), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.law("pacing=buffered", "an exponent of 0 is no factor for staleness, to the byte")
def test_an_exponent_of_zero_is_no_factor(tiny: Tiny):
    words = (*FLEET, *WORDS, "pacing=buffered", "pacing.buffer=2")
    polynomial, constant = (*words, "pacing.exponent=0.0"), (*words, "pacing.staleness=constant")
    assert equal(models_of(tiny(*polynomial)), models_of(tiny(*constant)))
    assert not equal(models_of(tiny(*words)), models_of(tiny(*constant)))


def test_factors_by_hand():
    age = np.array([0, 1, 3, 8])
    assert Buffered(clients=9).factors(age) == pytest.approx([1, 0.5**0.5, 0.5, 1 / 3])
    assert Buffered(clients=9, staleness="constant").factors(age).tolist() == [1, 1, 1, 1]
    hinge = Buffered(clients=9, staleness="hinge", slope=2.0, knee=3.0)
    assert hinge.factors(age) == pytest.approx([1, 1, 1, 1 / 11])


def arrived(age: list[int]) -> dict:
    """What is remembered of uploads of clients 0, 1, ... that are so many steps old, for `Buffered(clients=9)`."""
    columns = {"owner": torch.arange(len(age)), "factor": torch.from_numpy(Buffered(clients=9).factors(np.array(age)))}
    columns["begun"] = 9 - torch.tensor(age)
    return {"arrived": columns, "offset": torch.tensor([[20.0], [10.0]])}


@pytest.mark.law("pacing=buffered", "the order of arrival within a step does not matter, to the byte")
@pytest.mark.law(
    "pacing=buffered", "the step is the mean of the updates times their factors, however many clients train"
)
def test_two_updates_of_length_one_make_the_papers_step():
    uploads = uploads_like(torch.ones(2, 1))
    rows, _ = Buffered(clients=9).discount(uploads, arrived([0, 3]), None)  # pyright: ignore[reportArgumentType]
    assert rows.delta.mean().item() == 0.75  # eta / B times the sum, whatever the number of clients
    turned = uploads.where(np.array([1, 0]))
    backwards, _ = Buffered(clients=9).discount(turned, arrived([0, 3]), None)  # pyright: ignore[reportArgumentType]
    assert (backwards.owner.tolist(), backwards.delta[:, 0].tolist()) == ([1, 0], [0.5, 1.0])  # by client, not by place
    assert uploads.delta.tolist() == turned.delta.tolist() == [[1.0], [1.0]]  # as they were sent


def test_updates_of_a_crowded_version_count_one_by_one():
    memory = {"arrived": arrived([0, 0, 3])["arrived"]}
    rows, _ = Buffered(clients=9).discount(uploads_like(torch.ones(3, 1)), memory, None)  # pyright: ignore[reportArgumentType]
    assert rows.delta[:, 0].tolist() == [1.0, 1.0, 0.5]
    assert rows.delta.mean().item() == pytest.approx(2.5 / 3)


@pytest.mark.law("pacing=buffered", "with normalise a uniform mean is that of the updates weighted by their factors")
def test_normalised_factors_have_a_mean_of_one():
    rule = Buffered(clients=9, normalise=True)
    assert rule.factors(np.array([0, 0, 3])) == pytest.approx([1.2, 1.2, 0.6])
    assert rule.factors(np.array([], np.int64)).tolist() == []
    with pytest.raises(ConfigError, match=r"Buffered\.normalise .* leave one of them out"):
        Buffered(clients=9, normalise=True, mixing=0.5)


def test_a_model_is_mixed_in_with_the_same_share_for_ever():
    rule, uploads = Buffered(clients=9, mixing=0.5), uploads_like(torch.ones(2, 1))
    memory = arrived([0, 3])
    for _ in range(100):
        rows, memory = rule.discount(uploads, memory, None)  # pyright: ignore[reportArgumentType]
        assert rows.delta[:, 0].tolist() == [0.5 * 11, 0.25 * 21]  # alpha s(tau) (start + delta - w)


def test_versions_that_are_mixed_are_kept_once(tiny: Tiny):
    counts = []
    for state in states_of(tiny(*FLEET, *WORDS, "pacing=buffered", "pacing.buffer=4", "pacing.mixing=0.5")):
        memory = state.memory["pacing"]
        counts.append(len(memory["offset"]))
        assert counts[-1] == len(set(memory["arrived"]["begun"].tolist()))
    assert 1 < max(counts) < 4


@pytest.mark.law("pacing=buffered", "beyond slow_after the server's rate is at most 1 / the age of the oldest update")
def test_the_servers_rate_is_at_most_one_over_the_age_of_the_oldest():
    rule = Buffered(clients=9, slow_after=2)
    rates = [rule.server_rate(0.8, {"columns": {"most_stale": age}}) for age in (None, 0, 2, 3, 5)]
    assert rates == [0.8, 0.8, 0.8, 1 / 3, 0.2]
    assert Buffered(clients=9).server_rate(0.4, {"columns": {"most_stale": 5}}) == 0.4


@pytest.mark.law("server_optimizer=momentum", "beta = 0 is a step along the update at the server's rate")
def test_a_slowed_step_is_a_step_at_that_rate(tiny: Tiny):
    words = (*FLEET, *WORDS, "pacing=buffered", "pacing.clients=5", "pacing.buffer=1", "pacing.slow_after=1")
    world = world_of(tiny(*words, "server_optimizer=momentum", "server_optimizer.beta=0.0"))
    state, slowed = world.initial_state(), 0
    for _ in range(10):
        before, (state, row, sent) = state, run_round(world.exp, world, state)
        oldest = row["pacing.most_stale"]
        rate = 1.0 if oldest <= 1 else min(1.0, 1 / oldest)
        slowed += rate < 1
        assert row["server_lr"] == rate
        factor = state.memory["pacing"]["arrived"]["factor"].item()
        expected = before.models[0].flat + rate * sent.delta[0] * factor
        torch.testing.assert_close(state.models[0].flat, expected, rtol=0, atol=1e-6)
    assert slowed


@pytest.mark.law("pacing=buffered", "the models that are kept are those that somebody trains on, to the byte")
def test_every_version_is_kept_once_and_as_long_as_somebody_holds_it(tiny: Tiny):
    states = states_of(tiny(*FLEET, *WORDS, "pacing=buffered", "pacing.clients=5", "pacing.buffer=2"), 12)
    models = [world_of(tiny(*WORDS)).first.flat, *(state.models[0].flat for state in states)]
    for state in states:
        memory = state.memory["pacing"]
        begun = set(memory["flight"]["begun"].tolist())
        assert set(memory["versions"]) == {str(number) for number in begun}
        assert all(torch.equal(memory["versions"][str(number)], models[number - 1]) for number in begun)
        assert memory["columns"]["in_flight"] == len(memory["flight"]["owner"]) == 4


@pytest.mark.law("pacing=buffered", "a client trains on the model of the step in which it was asked, to the byte")
def test_clients_train_on_the_model_that_they_were_sent(tiny: Tiny):
    config = tiny(*FLEET, *WORDS, "pacing=buffered", "pacing.clients=4", "pacing.buffer=2", "pacing.staleness=constant")
    world = world_of(config)
    stale = 0
    state = world.initial_state()
    models = {}
    for _ in range(8):
        models[state.round + 1] = state.models[0].flat
        jobs, _, memory = start(world.exp, world, state, context.begin_round(world.exp, world, state))
        rounds = positions_by_number(jobs.begun)
        for (begun, at), rows in zip(rounds, dispatch_versions(world.exp, world, jobs, rounds, memory), strict=True):
            assert len(rows) == len(at)
            assert all(torch.equal(row, models[begun]) for row in rows)
        before, (state, _, sent) = state, run_round(world.exp, world, state)
        memory = state.memory["pacing"]["arrived"]
        for client, begun in zip(memory["owner"].tolist(), memory["begun"].tolist(), strict=True):
            stale += begun < state.round
            assert begun == state.round or client in before.memory["pacing"]["flight"]["owner"].tolist()
        assert sent.owner.tolist() == memory["owner"].tolist()
    assert stale


@pytest.mark.law("pacing=buffered", "a run that goes on from any step is the whole run, to the byte")
def test_a_run_goes_on_from_any_step(tiny: Tiny):
    world = world_of(tiny(*FLEET, *WORDS, "pacing=buffered", "pacing.clients=4", "pacing.buffer=2"))
    whole = states_of(tiny(*FLEET, *WORDS, "pacing=buffered", "pacing.clients=4", "pacing.buffer=2"), 8)
    for number in (1, 4, 7):
        after, *_ = run_round(world.exp, world, whole[number - 1])
        assert torch.equal(after.models[0].flat, whole[number].models[0].flat)
        assert same(after.memory["pacing"], whole[number].memory["pacing"])
        assert after.sim_s == whole[number].sim_s


def saved_without(state: State, *names: str) -> State:
    """A state as a version saved it that did not keep these columns of the clients that train."""
    pacing = state.memory["pacing"]
    flight = {name: column for name, column in pacing["flight"].items() if name not in names}
    return replace(state, memory={**state.memory, "pacing": {**pacing, "flight": flight}})


@pytest.mark.parametrize("names", [("importance",), ("leaves_s",), ("importance", "leaves_s")])
def test_a_state_of_an_earlier_version_goes_on(tiny: Tiny, names: tuple[str, ...]):
    """Importance came after the other columns, and nobody set it; clients did not go away."""
    config = tiny(*FLEET, *WORDS, "pacing=buffered", "pacing.clients=4", "pacing.buffer=2")
    world, whole = world_of(config), states_of(config, 5)
    after, _, sent = run_round(world.exp, world, saved_without(whole[3], *names))
    assert torch.equal(after.models[0].flat, whole[4].models[0].flat)
    assert same(after.memory["pacing"], whole[4].memory["pacing"])
    assert sent.importance.tolist() == [1.0, 1.0]


def test_a_state_that_lacks_more_is_refused(tiny: Tiny):
    config = tiny(*FLEET, *WORDS, "pacing=buffered", "pacing.clients=4", "pacing.buffer=2")
    world, state = world_of(config), states_of(config, 2)[1]
    with pytest.raises(ConfigError, match=r"the saved state does not say ready_s of the clients .*; resume with the"):
        run_round(world.exp, world, saved_without(state, "ready_s"))


@pytest.mark.parametrize("codec", ["none", "float16"])
def test_engines_agree(tiny: Tiny, codec: str):
    words = (*FLEET, *WORDS, "pacing=buffered", "pacing.clients=5", "pacing.buffer=3", f"codec={codec}")
    loop, stacked = (models_of(tiny(*words, f"engine={name}"))[-1] for name in ("loop", "stacked"))
    torch.testing.assert_close(loop, stacked, rtol=1e-4, atol=1e-5)


def test_bytes_go_down_when_a_client_begins_and_up_when_it_arrives(tiny: Tiny):
    world = world_of(tiny(*FLEET, *WORDS, "pacing=buffered", "pacing.clients=4", "pacing.buffer=2"))
    rows = [row for _, row, _ in islice(rounds_with_rows(world), 6)]
    size = world.layout.size * 4 / 1e6
    down, up = (sum(row[name] for row in rows) / size for name in ("mb_down", "mb_up"))
    assert up == pytest.approx(2 * 6)
    assert down == pytest.approx(2 * 6 + rows[-1]["pacing.in_flight"])


def test_what_arrives_too_stale_to_count_was_sent_all_the_same(tiny: Tiny):
    """So every client that began has sent its upload, or is on its way."""
    words = ("pacing=buffered", "pacing.clients=6", "pacing.buffer=2", "pacing.max_staleness=0")
    world = world_of(tiny(*FLEET, *WORDS, *words))
    rows = [row for _, row, _ in islice(rounds_with_rows(world), 6)]
    size = world.layout.size * 4 / 1e6
    down, up = (sum(row[name] for row in rows) / size for name in ("mb_down", "mb_up"))
    stale = sum(row["pacing.too_stale"] for row in rows)
    assert stale > 0
    assert up == pytest.approx(sum(row["participants"] for row in rows) + stale)
    assert down == pytest.approx(up + rows[-1]["pacing.in_flight"])


CENTRAL = ("privacy=client_central", "privacy.clip=0.01", "privacy.noise_multiplier=1", "privacy.delta=1e-3", UNIFORM)


def test_noise_is_added_to_what_counts_and_not_discounted(tiny: Tiny):
    """Else a fresh upload, whose factor is 1, would hide behind noise that the old ones' factors have made smaller."""
    old = ("pacing=buffered", "pacing.buffer=2", "pacing.exponent=50.0", *FLEET, *WORDS, *CENTRAL)
    world, stale_only = world_of(tiny(*old)), 0
    before = world.initial_state()
    for state, *_ in islice(rounds_with_rows(world), 10):
        arrived = state.memory["pacing"]["arrived"]
        if (
            len(arrived["age"]) == 2 and arrived["age"].min() > 0
        ):  # nothing is left of the updates, but all of the noise
            stale_only += 1
            moved = state.models[0].flat - before.models[0].flat
            assert moved.std().item() == pytest.approx(0.01 / 2, rel=0.1)
        before = state
    assert stale_only


def test_clients_privacy_is_counted_without_amplification(tiny: Tiny):
    few = ("scenario.clients=6", "scenario.participants=2", *CENTRAL)
    assert world_of(tiny(*few)).exp.privacy.rate == pytest.approx(1 / 3)  # pyright: ignore[reportAttributeAccessIssue]
    overlapping = world_of(tiny(*few, "pacing=buffered", "pacing.buffer=1"))
    assert overlapping.exp.privacy.rate == 1  # pyright: ignore[reportAttributeAccessIssue]


def test_a_client_that_is_lost_gives_its_place_away(tiny: Tiny):
    rows = [
        row
        for _, row, _ in islice(
            rounds_with_rows(world_of(tiny(*FLEET, *WORDS, "fleet.dropout=0.5", "pacing=buffered", "pacing.buffer=2"))),
            12,
        )
    ]
    assert sum(row["pacing.lost"] for row in rows) > 3
    assert sum(row["participants"] for row in rows) > 12


LOSSES = {
    "dropping out": ("fleet.dropout=0.3",),
    "too stale": ("pacing.max_staleness=0",),
    "gone": ("availability=markov", "availability.share=0.7", "availability.redraw_s=0.2"),
}
MANY = ("dataset.train_size=80", "scenario.clients=40", "rounds=20", *FLEET)


@pytest.mark.law(
    "pacing=buffered",
    "K train and B arrive in a step where at most K + B - 1 clients are lost in it and others are free",
)
@pytest.mark.parametrize("words", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("more", [(), ("pacing.buffer=1", "pacing.mixing=0.5")], ids=["FedBuff", "FedAsync"])
def test_places_of_lost_clients_are_filled_while_others_are_free(
    tiny: Tiny, words: tuple[str, ...], more: tuple[str, ...]
):
    world = world_of(tiny(*MANY, "pacing=buffered", "pacing.clients=6", "pacing.buffer=3", *words, *more))
    rows = [row for _, row, _ in rounds_with_rows(world)]
    assert sum(row["pacing.lost"] + row["pacing.too_stale"] for row in rows) > 3
    buffer = world.exp.pacing.most_uploads(6)
    assert [(row["participants"], row["pacing.in_flight"]) for row in rows] == [(buffer, 5)] * 20


@pytest.mark.parametrize("words", [("pacing=periodic", "pacing.period_s=0.01"), ("pacing=buffered", "fleet.dropout=1")])
def test_a_step_without_an_upload_mixes_nothing_in(tiny: Tiny, words: tuple[str, ...]):
    world = world_of(tiny(*MANY, "pacing.clients=3", "pacing.mixing=0.5", UNIFORM, *words))
    for state, row, _ in islice(rounds_with_rows(world), 3):
        assert row["participants"] == 0
        assert torch.equal(state.models[0].flat, world.first.flat)


class Halves(Random):
    """Clients train on the first half of their examples, and client k counts k + 1 times."""

    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        plan, memory = super().choose(memory, ctx)
        return Plan(plan.owner, tuple(shard[: len(shard) // 2] for shard in plan.shards), plan.owner + 1.0), memory


def halved(config: dict) -> World:
    world = world_of(config)
    return replace(world, exp=replace(world.exp, selector=Halves(count=3)))


def test_what_a_selector_says_of_a_client_holds_until_it_arrives(tiny: Tiny):
    words, stale = (*FLEET, *WORDS, "pacing=buffered", "pacing.clients=4", "pacing.buffer=2"), 0
    plan = world_of(tiny(*words)).partition
    for state, row, sent in islice(rounds_with_rows(halved(tiny(*words))), 8):
        assert sent.importance.tolist() == (sent.owner + 1.0).tolist()
        assert sent.examples.tolist() == [len(plan.shard(client)) // 2 for client in sent.owner.tolist()]
        memory = state.memory["pacing"]
        assert set(memory["shards"]) == {str(client) for client in memory["flight"]["owner"].tolist()}
        stale += row["pacing.most_stale"] > 0
    assert stale
    together, synchronous = (
        [state.models[0].flat for state, *_ in islice(rounds_with_rows(halved(tiny(*WORDS, *words))), 5)]
        for words in (TOGETHER, ())
    )
    assert equal(together, synchronous)


REFUSED = {
    "selector=greedyfed": "selector=greedyfed averages the uploads of a cohort that began with one model",
    "selector=fedcs": "selector=fedcs fills a round up to its deadline",
    "local=scaffold": "local=scaffold sends what it makes of the server's second row of the same step",
    "clustering=ifca": "clustering=ifca groups clients by the uploads of one round",
    "aggregator=pfnm": "aggregator=pfnm changes the widths of its hidden layers",
    "scenario.training=local": "scenario.training=local has every client train alone",
    "evaluation.local_models=true": "evaluation.local_models adds uploads to the model of their round",
    "fleet.deadline_s=20": "lets clients train on while the server steps, but fleet.deadline_s ends a round in which",
    "selector.count=2": "selector.count=2 does nothing with pacing=buffered: as many clients begin as pacing.clients",
    "pacing.slow_after=3": "pacing.slow_after lowers the server's rate where uploads are old, but "
    "server_optimizer=replace has none",
    "pacing.clients=99": "pacing.clients must be at most the number of clients, 6, got 99",
}


@pytest.mark.parametrize("word", REFUSED)
def test_what_does_not_go_with_it_is_refused(tiny: Tiny, word: str):
    with pytest.raises(ConfigError, match=REFUSED[word].replace("(", "\\(")):
        refuse(spec.build(tiny("pacing=buffered", "fleet=simulated", word)))


SIZES = {
    "selector=random selector.count=null selector.fraction=0.3": "selector.fraction=0.3",
    "selector=afl selector.count=2": "selector.count=2",
    "selector=oort selector.count=2": "selector.count=2",
    "selector=power_of_choice selector.count=2": "selector.count=2",
    "selector=power_of_choice selector.count=2 selector.candidates=3": "",  # three are looked at for two that begin
    "selector=power_of_choice selector.candidates=6": "",
    "selector=random selector.count=2 pacing=over_selection pacing.uploads=1": "",
}


@pytest.mark.parametrize("words", SIZES)
def test_sizes_of_a_round_that_has_places_are_refused(tiny: Tiny, words: str):
    exp = spec.build(tiny("pacing=buffered", "fleet=simulated", *words.split()))
    if not SIZES[words]:
        refuse(exp)
        return
    with pytest.raises(ConfigError, match=f"{re.escape(SIZES[words])} does nothing with pacing=buffered: .*leave it"):
        refuse(exp)


class Hurried(Random):
    """Says when a round must end."""

    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        plan, memory = super().choose(memory, ctx)
        return replace(plan, deadline_s=5.0), memory


def test_a_plan_with_a_deadline_is_refused(tiny: Tiny):
    world = world_of(tiny(*FLEET, *WORDS, "pacing=buffered", "pacing.buffer=2"))
    world = replace(world, exp=replace(world.exp, selector=Hurried(count=3)))
    with pytest.raises(ConfigError, match=r"choose must return a Plan without deadline_s .*, got 5: clients train on"):
        run_round(world.exp, world, world.initial_state())


class Nobody(Random):
    """Finds nobody fit to train in the first two steps."""

    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        plan, memory = super().choose(memory, ctx)
        return plan if ctx.round > 2 else ctx.plan(plan.owner[:0]), memory


def test_without_anybody_to_ask_the_server_waits(tiny: Tiny):
    world = world_of(tiny(*FLEET, *WORDS, "pacing=buffered", "pacing.buffer=2", "fleet.idle_s=40"))
    world = replace(world, exp=replace(world.exp, selector=Nobody(count=3)))
    seconds = [state.sim_s for state, *_ in islice(rounds_with_rows(world), 3)]
    assert seconds[:2] == [40.0, 80.0]
    assert seconds[2] < 80 + 40


def test_a_buffer_that_cannot_be_filled_is_refused():
    with pytest.raises(ConfigError, match=r"Buffered\.buffer must be at most clients=4 with refill=step, got 5"):
        Buffered(clients=4, buffer=5, refill="step")


@pytest.mark.parametrize("selector", ["random", "all", "afl", "power_of_choice", "oort"])
def test_selectors_ask_nobody_who_is_busy(tiny: Tiny, selector: str):
    words = (
        f"selector={selector}",
        *FLEET,
        *WORDS[:2],
        "rounds=20",
        "pacing=buffered",
        "pacing.clients=4",
        "pacing.buffer=2",
    )
    for state in states_of(tiny(*words), 10):  # a client that is asked while it is busy ends the run
        assert state.memory["pacing"]["columns"]["in_flight"] == 3
