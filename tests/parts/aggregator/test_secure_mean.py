"""The mean from secret shares: exact in the ring, the plain mean to half a step, and nothing to see in a view."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2
from worlds import rounds_with_rows, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError, RunError
from fedexp.core.values import SERVER, Uploads
from fedexp.parts.aggregator.fedavg import weighted_mean
from fedexp.parts.aggregator.secret_sharing import (
    decode,
    encode,
    max_summand,
    reconstruct_sum,
    secure_mean,
    split_secret,
)
from fedexp.parts.aggregator.secure_mean import SecureMean
from fedexp.run.tables import TIMINGS
from fedexp.simulation import context
from fedexp.simulation.checks.pending_checks import PendingChecks
from fedexp.simulation.round import fold, run_round
from fedexp.simulation.rounds import run_rounds, with_workers
from fedexp.simulation.setup import compatibility
from fedexp.simulation.world import World

Tiny = Callable[..., dict[str, Any]]
WHOLE = 2**64
SECURE = "aggregator=secure_mean"


def uploads_like(delta: torch.Tensor, examples: list[int], owner: list[int] | None = None) -> Uploads:
    clients = np.array(owner if owner is not None else range(len(delta)))
    ones = np.ones(len(clients))
    return Uploads(clients, clients * 0, np.array(examples), ones, delta, ones, ones)


def everybody(clients: int, partners: int = 3) -> np.ndarray:
    return np.ones((partners, clients), dtype=bool)


class TestRing:
    def test_words_by_hand(self):
        values = np.array([0.0, 1.5, -1.5, 0.124, -0.126])
        words = encode(values, 2)
        assert words.tolist() == [0, 6, WHOLE - 6, 0, WHOLE - 1]
        assert decode(words, 2).tolist() == [0, 1.5, -1.5, 0, -0.25]

    @given(numbers=st.lists(st.integers(0, WHOLE - 1), min_size=1, max_size=20))
    def test_wrapping_around_is_exact(self, numbers: list[int]):
        words = np.array(numbers, dtype=np.uint64)
        views = split_secret(words[:, None], 2)
        assert views.sum(axis=(0, 1)).tolist() == [sum(numbers) % WHOLE]
        assert [(a + b) % WHOLE for a, b in zip(*views[:, :, 0].tolist(), strict=True)] == numbers

    @given(clients=st.integers(1, 40), bits=st.sampled_from([1, 24, 32, 52]), sign=st.sampled_from([-1, 1]))
    def test_sums_of_the_largest_values_stay_in_the_ring(self, clients: int, bits: int, sign: int):
        values = np.full((clients, 1), sign * max_summand(clients, bits))
        found = reconstruct_sum(split_secret(encode(values, bits), 3), np.ones(clients, dtype=bool))
        assert decode(found, bits)[0] == pytest.approx(sign * 2.0 ** (62 - bits), rel=1e-12, abs=clients / 2**bits)


class TestViews:
    """What partners see of zeros and of ones: chi-square over bytes, at odds of one in a billion."""

    COPIES = 4000

    def views(self, secret: int, partners: int) -> np.ndarray:
        return split_secret(np.full((self.COPIES, 2), secret, dtype=np.uint64), partners)

    def unusual(self, cells: np.ndarray, kinds: int) -> bool:
        expected = cells.size / kinds
        statistic = ((np.bincount(cells.ravel(), minlength=kinds) - expected) ** 2 / expected).sum()
        low, high = chi2.ppf([5e-10, 1 - 5e-10], kinds - 1)
        return not low < statistic < high

    @pytest.mark.parametrize("secret", [0, 1, WHOLE - 1, 1 << 32])
    @pytest.mark.parametrize("partners", [2, 3, 5])
    def test_every_view_is_uniform(self, secret: int, partners: int):
        for view in self.views(secret, partners):
            octets = view.view(np.uint8).reshape(-1, 8)
            assert not self.unusual(octets, 256)
            for place in range(8):
                assert not self.unusual(octets[:, place], 256)

    @pytest.mark.law("aggregator=secure_mean", "all partners but one see uniform noise together")
    @pytest.mark.parametrize("secret", [0, 1 << 32])
    @pytest.mark.parametrize("partners", [3, 5])
    def test_all_but_one_together_are_uniform(self, secret: int, partners: int):
        views = self.views(secret, partners)
        for colluding in combinations(range(partners), partners - 1):
            for one, other in combinations(colluding, 2):
                nibbles = [views[place].view(np.uint8).astype(np.int64) & 15 for place in (one, other)]
                assert not self.unusual(16 * nibbles[0] + nibbles[1], 256), "two of them know nothing of each other"
            together = views[list(colluding)].sum(axis=0)
            assert not self.unusual(together.view(np.uint8), 256), "nor does their sum tell anything"

    @pytest.mark.parametrize("partners", [2, 3, 5])
    def test_all_together_reveal_the_secret_and_that_would_be_seen(self, partners: int):
        together = self.views(77, partners).sum(axis=0)
        assert (together == 77).all()
        assert self.unusual(together.view(np.uint8), 256)

    def test_never_the_same_twice(self):
        assert not (self.views(0, 2) == self.views(0, 2)).any()

    def test_clients_do_not_share_their_masks(self):
        first = self.views(0, 3)[0]
        assert len(np.unique(first)) == first.size


@st.composite
def cases(draw: st.DrawFn) -> tuple[torch.Tensor, np.ndarray, int]:
    rows, columns = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = draw(st.sampled_from([1e-9, 1e-3, 1.0]))
    weight = rng.integers(1, 900, rows) if draw(st.booleans()) else 1 + rng.exponential(30, rows)
    delta = torch.from_numpy(rng.uniform(-scale, scale, (rows, columns))).float()
    return delta, weight.astype(np.float64), draw(st.sampled_from([8, 24, 32, 40]))


class TestMean:
    def test_by_hand(self):
        delta = torch.tensor([[1.0, -8.0], [5.0, 0.3]])
        found = secure_mean(delta, np.array([1.0, 3.0]), everybody(2), 2)
        assert found.tolist() == [4.0, (-8 + 1.0) / 4]  # 3 * 0.3 = 0.9 is the word 4 of quarters

    @pytest.mark.law(
        "aggregator=secure_mean",
        "it is the plain mean to half a step of 2^-fractional_bits, a whole one if weights are not whole",
    )
    @given(case=cases(), partners=st.integers(2, 4))
    def test_the_plain_mean_to_half_a_step_or_a_whole_one(
        self, case: tuple[torch.Tensor, np.ndarray, int], partners: int
    ):
        delta, weight, bits = case
        found = secure_mean(delta, weight, everybody(len(delta), partners), bits)
        exact = [Fraction(each) for each in weight.tolist()]
        step = Fraction(1, 2**bits) * (Fraction(1, 2) if all(each.denominator == 1 for each in exact) else 1)
        for column, got in zip(delta.T.tolist(), found.tolist(), strict=True):
            mean = sum(part * Fraction(value) for part, value in zip(exact, column, strict=True)) / sum(exact)
            rounding = max(map(abs, column)) * 2.0**-50
            assert abs(Fraction(got) - mean) <= step + Fraction(rounding)

    @given(case=cases())
    def test_fedavg_within_a_step(self, case: tuple[torch.Tensor, np.ndarray, int]):
        delta, weight, bits = case
        plain = weighted_mean(delta, torch.from_numpy(weight / weight.sum()))
        found = secure_mean(delta, weight, everybody(len(delta)), bits).to(delta.dtype)
        assert float((found - plain).abs().max()) <= 2.0**-bits + 2.0**-22 * float(delta.abs().max())

    def test_only_clients_whom_all_partners_heard_of_count(self):
        delta = torch.tensor([[1.0], [100.0], [3.0]])
        heard = np.array([[True, True, True], [True, False, True]])
        assert secure_mean(delta, np.ones(3), heard, 24).tolist() == [2]

    def test_blocks_of_columns_make_no_difference(self, monkeypatch: pytest.MonkeyPatch):
        delta, weight = torch.randn(3, 50), np.array([2.0, 1.0, 5.0])
        whole = secure_mean(delta, weight, everybody(3), 32)
        monkeypatch.setattr("fedexp.parts.aggregator.secret_sharing.WORDS", 63)
        assert torch.equal(secure_mean(delta, weight, everybody(3), 32), whole)

    @pytest.mark.law(
        "aggregator=secure_mean", "the result does not depend on masks or on the number of partners, to the byte"
    )
    @pytest.mark.parametrize("partners", [2, 3, 7])
    def test_the_same_bits_twice_whatever_the_masks(self, partners: int):
        delta, weight = torch.randn(6, 40), np.arange(1.0, 7.0)
        found = [secure_mean(delta, weight, everybody(6, count), 32) for count in (partners, partners, 2)]
        assert torch.equal(found[0], found[1])
        assert torch.equal(found[0], found[2])


def folded(world: World, uploads: Uploads) -> tuple[torch.Tensor, dict[str, Any]]:
    models, memory = fold(world.exp, (world.first,), uploads, {}, context.make_context(world, 1), PendingChecks())
    return models[0].flat, memory["aggregator"]["columns"]


class TestRule:
    @pytest.mark.law("aggregator=secure_mean", "a round is FedAvg's, to 1e-7")
    @pytest.mark.parametrize("weighting", ["num_samples", "uniform"])
    def test_equals_fedavg(self, tiny: Tiny, weighting: str):
        words = (f"aggregator.weighting={weighting}", "scenario.clients=5")
        secure, plain = (world_of(tiny(f"aggregator={rule}", *words)) for rule in ("secure_mean", "fedavg"))
        uploads = uploads_like(torch.randn(5, plain.layout.size) * 0.1, [10, 20, 0, 7, 300])
        torch.testing.assert_close(folded(secure, uploads)[0], folded(plain, uploads)[0], rtol=0, atol=1e-7)

    def test_weights_below_one_lose_no_precision(self, tiny: Tiny):
        """The server gave them out, so it may divide by the smallest."""
        secure, plain = (world_of(tiny(f"aggregator={rule}")) for rule in ("secure_mean", "fedavg"))
        uploads = uploads_like(torch.randn(3, plain.layout.size) * 0.1, [3, 4, 5])
        faint = replace(uploads, importance=np.array([1e-12, 3e-12, 2e-12]))
        torch.testing.assert_close(folded(secure, faint)[0], folded(plain, faint)[0], rtol=0, atol=1e-7)

    @pytest.mark.parametrize("value", [2.0**9, -(2.0**9)])
    def test_what_could_leave_the_ring_ends_the_run_before_anything_is_shared(self, tiny: Tiny, value: float):
        words = (SECURE, "aggregator.fractional_bits=50", "scenario.clients=8")  # 2^12 / 2 clients = 2048
        world = world_of(tiny(*words))
        delta = torch.zeros(2, world.layout.size)
        delta[1, 3] = value
        folded(world, uploads_like(delta, [1, 4]))
        with pytest.raises(RunError) as caught:
            folded(world, uploads_like(delta, [1, 5], [0, 7]))
        assert str(caught.value) == (
            "round 1: SecureMean needs weights and |weight * update| of at most 2048 (2^62 / 2^fractional_bits / 2 "
            "clients), but those of client 7 reach 2560; lower aggregator.fractional_bits or clip the updates"
        )

    def test_weights_could_leave_the_ring_too(self, tiny: Tiny):
        world = world_of(tiny(SECURE, "aggregator.fractional_bits=50"))
        with pytest.raises(RunError, match="client 1 reach 2049"):
            folded(world, uploads_like(torch.zeros(2, world.layout.size), [1, 2049]))

    def test_who_vanishes_reaches_some_partners_but_not_all_and_is_not_counted(self, tiny: Tiny):
        world = world_of(tiny(SECURE, "aggregator.dropout=0.4", "aggregator.partners=4", "scenario.clients=40"))
        rule, owner = world.exp.aggregator, np.arange(2000)
        assert isinstance(rule, SecureMean)
        heard = rule.delivery_mask(owner, context.make_context(world, 1))
        reached, gone = heard.sum(axis=0), np.logical_not(heard.all(axis=0))
        assert np.unique(reached).tolist() == [1, 2, 3, 4]
        assert gone.mean() == pytest.approx(0.4, abs=0.05)
        assert heard[:, gone].mean(axis=1) == pytest.approx(np.full(4, 0.5), abs=0.1)
        assert np.array_equal(rule.delivery_mask(owner[::-3], context.make_context(world, 1)), heard[:, ::-3]), (
            "whoever else takes part"
        )
        assert not np.array_equal(rule.delivery_mask(owner, context.make_context(world, 2)), heard)
        uploads = uploads_like(torch.randn(40, world.layout.size), [20] * 40)
        moved, columns = folded(world, uploads)
        expected, _ = folded(world_of(tiny(SECURE, "scenario.clients=40")), uploads.where(~gone[:40]))
        assert torch.equal(moved, expected)
        assert columns["vanished"] == gone[:40].sum() > 0

    def test_the_servers_own_row_does_not_vanish(self, tiny: Tiny):
        world = world_of(tiny(SECURE, "aggregator.dropout=0.999999"))
        row = torch.randn(world.layout.size) * 0.1
        uploads = uploads_like(torch.stack([row, row * 0]), [20, 20], [SERVER, 3])
        moved, columns = folded(world, uploads)
        torch.testing.assert_close(moved, world.first.flat + row)
        assert columns["vanished"] == 1

    @pytest.mark.law("aggregator=secure_mean", "if all vanish, the model stays, to the byte")
    def test_when_all_vanish_the_model_stays(self, tiny: Tiny, caplog: pytest.LogCaptureFixture):
        world = world_of(tiny(SECURE, "aggregator.dropout=0.999999"))
        moved, columns = folded(world, uploads_like(torch.randn(5, world.layout.size), [20] * 5))
        assert torch.equal(moved, world.first.flat)
        assert columns["vanished"] == 5
        assert "no client reached every partner" in caplog.text

    @pytest.mark.parametrize(("examples", "plain"), [([10, 30, 0], 1), ([10, 30, 5], 0)])
    def test_too_few_contributors_take_the_plain_mean(self, tiny: Tiny, examples: list[int], plain: int):
        world = world_of(tiny(SECURE, "aggregator.least=3"))
        uploads = uploads_like(torch.randn(3, world.layout.size) * 0.1, examples)
        moved, columns = folded(world, uploads)
        share = torch.tensor(examples, dtype=torch.float64) / sum(examples)
        torch.testing.assert_close(moved, world.first.flat + weighted_mean(uploads.delta, share), rtol=0, atol=1e-7)
        assert columns["plain"] == plain
        assert (columns["partner_bytes"] > 0) == (plain == 0)

    @pytest.mark.parametrize(("least", "plain"), [(2, 1), (1, None)])
    def test_a_sum_of_few_since_others_vanished_counts_as_plain(self, tiny: Tiny, least: int, plain: int | None):
        world = world_of(tiny(SECURE, f"aggregator.least={least}", "aggregator.dropout=0.999999"))
        uploads = uploads_like(torch.ones(3, world.layout.size), [20] * 3, [SERVER, 3, 4])
        moved, columns = folded(world, uploads)
        torch.testing.assert_close(moved, world.first.flat + 1)
        assert (columns["vanished"], columns.get("plain")) == (2, plain)

    def test_runs_of_before_have_no_such_column(self, tiny: Tiny):
        world = world_of(tiny(SECURE, "aggregator.least=1"))
        _, columns = folded(world, uploads_like(torch.zeros(1, world.layout.size), [10]))
        assert set(columns) == {"dropped", "vanished", "partner_bytes"}
        assert columns["partner_bytes"] > 0


class TestRun:
    def test_bytes_by_hand(self, tiny: Tiny):
        world = world_of(tiny(SECURE, "aggregator.partners=5"))
        entries = world.layout.size
        _, row, _ = run_round(world.exp, world, world.initial_state())
        assert row["mb_down"] == pytest.approx(3 * 4 * entries / 1e6)
        assert row["mb_up"] == pytest.approx(3 * 5 * 8 * (entries + 1) / 1e6)
        assert row["aggregator.partner_bytes"] == 5 * 8 * (entries + 1) + 5 * 8 * 3
        assert row["aggregator.vanished"] == 0

    def test_uploads_take_their_simulated_time(self, tiny: Tiny):
        machines = [
            context.make_context(world_of(tiny(f"aggregator={rule}", "fleet=simulated")), 1).fleet.resources(
                np.arange(3)
            )
            for rule in ("fedavg", "secure_mean")
        ]
        assert machines[0].distribution_s == machines[1].distribution_s
        assert (machines[0].upload_s == machines[0].download_s).all()
        entries = machines[0].bits / 32
        ratio = machines[1].where(np.arange(2)).upload_s / machines[0].upload_s[:2]
        assert ratio == pytest.approx(np.full(2, 3 * 8 * (entries + 1) / (4 * entries)))

    def test_two_runs_and_two_workers_end_with_the_same_bits(self, tiny: Tiny):
        words = (SECURE, "aggregator.dropout=0.3", "rounds=3")
        worlds = [world_of(tiny(*words, f"engine.workers={count}")) for count in (1, 1, 2)]
        lived = []
        for world in worlds:
            with with_workers(world.exp, world, world.initial_state()) as crewed:
                lived.append(list(run_rounds(world.exp, crewed, world.initial_state())))
        for (state, row, _), *others in zip(*lived, strict=True):
            for twin, same, _ in others:
                assert torch.equal(state.models[0].flat, twin.models[0].flat)
                assert {n: v for n, v in row.items() if n not in TIMINGS} == {
                    n: v for n, v in same.items() if n not in TIMINGS
                }
        assert not torch.equal(lived[0][-1][0].models[0].flat, worlds[0].first.flat)

    def test_the_server_of_hybridfl_shares_its_row_too(self, tiny: Tiny):
        words = ("selector=hybridfl", "fleet=simulated", "selector.upload_permission=1", "selector.round_s=1")
        world = world_of(tiny(SECURE, *words, "rounds=4"))
        before, served = world.first.flat, 0
        for state, _, sent in rounds_with_rows(world):
            mean = weighted_mean(sent.delta, torch.from_numpy(sent.examples / max(sent.examples.sum(), 1)))
            torch.testing.assert_close(state.models[0].flat, before + mean, rtol=0, atol=1e-7)
            before, served = state.models[0].flat, served + (SERVER in sent.owner)
        assert served > 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ("pre_aggregation=bucketing",),
            "pre_aggregation=bucketing mixes the rows of clients, but aggregator=secure_mean shows nobody the row of a "
            "single client; use pre_aggregation=none",
        ),
        (("pre_aggregation=nearest_neighbours",), "pre_aggregation=nearest_neighbours mixes"),
        (
            ("selector=greedyfed",),
            "selector=greedyfed compares averages of some clients' models with others, but aggregator=secure_mean "
            "shows nobody the row of a single client; use selector=random",
        ),
        (("selector=ucb",), "selector=ucb compares"),
        (("selector=s_fedavg",), "selector=s_fedavg compares"),
        (
            ("local=scaffold",),
            "local=scaffold sends the server a second row that tells the first, but aggregator=secure_mean shows "
            "nobody the row of a single client; use local=sgd",
        ),
    ],
)
def test_what_needs_or_tells_single_rows_is_refused(tiny: Tiny, words: tuple[str, ...], complaint: str):
    with pytest.raises(ConfigError) as caught:
        compatibility.refuse(spec.build(tiny(SECURE, *words)))
    assert str(caught.value).startswith(complaint)


@pytest.mark.parametrize("words", [("selector=afl",), ("selector=oort",), ("local=fedplus",), ("local=prox",)])
def test_what_needs_only_the_mean_is_not(tiny: Tiny, words: tuple[str, ...]):
    compatibility.refuse(spec.build(tiny(SECURE, *words)))


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("partners=1", "partners must be an integer >= 2, got 1"),
        ("dropout=1", r"dropout must be a number in \[0, 1\), got 1"),
        ("fractional_bits=60", r"fractional_bits must be an integer in \[1, 52\], got 60"),
    ],
)
def test_impossible_numbers_are_refused(tiny: Tiny, word: str, message: str):
    with pytest.raises(ConfigError, match=message):
        spec.build(tiny(SECURE, f"aggregator.{word}"))


def test_attacks_act_on_what_is_shared(tiny: Tiny):
    words = ("attack=sign_flip", "scenario.malicious=6")
    worlds = [world_of(tiny(f"aggregator={rule}", *words)) for rule in ("fedavg", "secure_mean")]
    plain, secure = (run_round(world.exp, world, world.initial_state())[0].models[0].flat for world in worlds)
    torch.testing.assert_close(plain, secure, rtol=0, atol=1e-7)
