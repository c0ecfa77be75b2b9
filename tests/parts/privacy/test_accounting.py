"""Epsilon against Opacus, dp-accounting and closed forms; the noise that keeps a federation within an epsilon.

Tolerances. dp-accounting's own RDP accountant: the same numbers. Opacus' RDP: never below it, and above by what
dp-accounting's bound at fractional orders costs, less than 1 % where epsilon is below 10. PLD: the grid costs less than
0.3 % of epsilon against one five times finer.
"""

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution, from_gaussian_mechanism
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from opacus.accountants import PRVAccountant, RDPAccountant
from scipy.stats import norm

from fedexp.core.errors import ConfigError
from fedexp.parts.privacy.accounting import Accountant, epsilons, frontier, largest_epsilon, noise_multiplier_for
from fedexp.parts.privacy.sampled_gaussian import ORDERS, cell_width, pld_epsilon, rdp_epsilon

GRID = [
    (0.001, 0.6, 2000, 1e-5),
    (0.005, 1.0, 40, 1e-6),
    (0.01, 0.8, 100, 1e-5),
    (0.01, 1.1, 3000, 1e-5),
    (0.02, 4.0, 1, 1e-4),
    (0.05, 2.0, 500, 1e-7),
    (0.1, 1.0, 30, 1e-5),
    (0.1, 3.0, 1000, 1e-5),
    (0.3, 2.0, 20, 1e-3),
    (0.5, 5.0, 200, 1e-5),
    (0.9, 20.0, 1000, 1e-8),
]
SMALL_COUNTS = st.integers(1, 400)
RATES = st.floats(0.001, 1.0)
NOISES = st.floats(0.5, 20.0)


@pytest.mark.parametrize(("rate", "sigma", "steps", "delta"), [*GRID, (0.2, 0.4, 50, 1e-5), (1.0, 3.0, 7, 1e-5)])
def test_rdp_is_the_one_that_dp_accounting_finds_with_all_orders(rate: float, sigma: float, steps: int, delta: float):
    accountant = RdpAccountant(ORDERS)
    accountant.compose(SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), steps))
    assert rdp_epsilon(rate, sigma, steps, delta) == pytest.approx(accountant.get_epsilon(delta), rel=1e-9)


def by_opacus(rate: float, sigma: float, steps: int, delta: float) -> float:
    accountant = RDPAccountant()
    accountant.history = [(sigma, rate, steps)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Optimal order is the (smallest|largest) alpha")
        return accountant.get_epsilon(delta)


@pytest.mark.parametrize(("rate", "sigma", "steps", "delta"), GRID)
def test_rdp_is_opacus_rdp_or_little_more(rate: float, sigma: float, steps: int, delta: float):
    ours, theirs = rdp_epsilon(rate, sigma, steps, delta), by_opacus(rate, sigma, steps, delta)
    assert theirs * (1 - 1e-9) <= ours <= theirs * 1.01
    if theirs < 2:
        assert ours == pytest.approx(theirs, rel=1e-4)


def test_the_orders_are_those_of_opacus():
    assert pytest.approx(RDPAccountant.DEFAULT_ALPHAS) == ORDERS


@pytest.mark.parametrize(("rate", "sigma", "steps", "delta"), GRID)
def test_the_grid_of_the_losses_costs_little(rate: float, sigma: float, steps: int, delta: float):
    finer = from_gaussian_mechanism(
        sigma, sampling_prob=rate, value_discretization_interval=max(cell_width(rate, sigma) / 5, 1e-5)
    )
    least = finer.self_compose(steps).get_epsilon_for_delta(delta)
    assert least * (1 - 1e-6) <= pld_epsilon(rate, sigma, steps, delta) <= least * 1.003


@pytest.mark.parametrize(("rate", "sigma", "steps"), [(0.01, 1.0, 1000), (0.1, 1.0, 30)])
def test_pld_is_opacus_prv_within_its_own_error(rate: float, sigma: float, steps: int):
    accountant = PRVAccountant()
    accountant.history = [(sigma, rate, steps)]
    assert pld_epsilon(rate, sigma, steps, 1e-5) == pytest.approx(
        accountant.get_epsilon(1e-5, eps_error=0.005), abs=0.01
    )


@pytest.mark.parametrize(
    ("sigma", "steps", "delta"), [(1.0, 1, 1e-5), (4.0, 9, 1e-6), (0.5, 100, 1e-3), (30.0, 2, 1e-8)]
)
def test_without_sampling_both_have_closed_forms(sigma: float, steps: int, delta: float):
    rdp, (pld,) = epsilons(np.ones(1), sigma, np.array([steps]), delta)
    one = sigma / math.sqrt(steps)
    exact = norm.cdf(0.5 / one - pld * one) - math.exp(pld) * norm.cdf(-0.5 / one - pld * one)  # Balle and Wang
    assert exact == pytest.approx(delta, rel=1e-5)
    order = np.array(ORDERS)
    bound = order * steps / (2 * sigma**2) + np.log1p(-1 / order) - np.log(delta * order) / (order - 1)
    np.testing.assert_allclose(rdp, bound.min(), rtol=1e-12)


def test_sampling_almost_surely_is_almost_no_sampling():
    assert pld_epsilon(1 - 1e-9, 2.0, 10, 1e-5) == pytest.approx(pld_epsilon(1.0, 2.0, 10, 1e-5), rel=1e-4)
    assert rdp_epsilon(1 - 1e-9, 2.0, 10, 1e-5) == pytest.approx(rdp_epsilon(1.0, 2.0, 10, 1e-5), rel=1e-6)


def test_limits():
    rate, sigma = np.array([0.1, 0.0, 0.1, 0.0, 1.0, 0.1]), np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    for figures in epsilons(rate, sigma, np.array([0, 9, 9, 9, 1, 0]), 1e-5):
        assert figures.tolist() == [0, 0, math.inf, 0, math.inf, 0]
    for figures in epsilons(np.array([0.01, 0.5, 1.0]), 1e-2, np.array([9, 900, 9]), 1e-5):
        assert np.isfinite(figures).all()
        assert (figures > 1000).all()
    assert [len(figures) for figures in epsilons(np.zeros(0), 1.0, np.zeros(0, dtype=int), 1e-5)] == [0, 0]
    with pytest.raises(ValueError, match="between 0 and 1"):
        epsilons(np.array([1.5]), 1.0, np.array([1]), 1e-5)


@settings(max_examples=settings().max_examples // 4)
@given(rate=RATES, sigma=NOISES, steps=SMALL_COUNTS, delta=st.floats(1e-8, 1e-3), more=st.floats(1.0, 3.0))
def test_more_steps_more_sampling_less_noise_or_less_delta_cost_more_by_rdp(rate, sigma, steps, delta, more):
    least = rdp_epsilon(rate, sigma, steps, delta) * (1 - 1e-9)
    assert least <= rdp_epsilon(rate, sigma, math.ceil(steps * more), delta)
    assert least <= rdp_epsilon(rate, sigma, steps, delta / more)
    # bounds at fractional orders are loose near order 1, by more or less from one rate or noise to the next
    assert least * 0.99 <= rdp_epsilon(min(rate * more, 1.0), sigma, steps, delta) or least > 10
    assert least * 0.99 <= rdp_epsilon(rate, sigma / more, steps, delta) or least > 10


def test_an_epsilon_beyond_what_the_library_can_tell_is_infinite_without_a_warning():
    few, many = (pld_epsilon(0.859375, 0.59375, steps, 6.103515625e-05) for steps in (240, 525))
    assert few == pytest.approx(357.19, abs=0.01)
    assert many == math.inf  # an upper bound, as all of them are; by Renyi's divergence it is finite
    assert 709 < rdp_epsilon(0.859375, 0.59375, 525, 6.103515625e-05) < math.inf


@settings(max_examples=settings().max_examples // 10)
@given(rate=RATES, sigma=NOISES, steps=SMALL_COUNTS, delta=st.floats(1e-8, 1e-3), more=st.floats(1.0, 3.0))
def test_more_steps_more_sampling_less_noise_or_less_delta_cost_more_by_pld(rate, sigma, steps, delta, more):
    epsilon = pld_epsilon(rate, sigma, steps, delta)
    assert epsilon <= rdp_epsilon(rate, sigma, steps, delta) * 1.005
    least = epsilon * 0.995 - 1e-5  # grids differ
    assert least <= pld_epsilon(rate, sigma, math.ceil(steps * more), delta)
    assert least <= pld_epsilon(rate, sigma, steps, delta / more)
    assert least <= pld_epsilon(min(rate * more, 1.0), sigma, steps, delta)
    assert least <= pld_epsilon(rate, sigma / more, steps, delta)


@pytest.mark.law("privacy", "steps counted in parts and in any order are steps counted at once")
def test_composition_in_parts_and_in_any_order_is_composition_at_once():
    one = from_gaussian_mechanism(1.0, sampling_prob=0.1, value_discretization_interval=cell_width(0.1, 1.0))
    parts = [one.self_compose(30), one.self_compose(12), one]
    for order in (parts, parts[::-1]):
        whole: PrivacyLossDistribution = order[0].compose(order[1]).compose(order[2])
        assert whole.get_epsilon_for_delta(1e-5) == pytest.approx(pld_epsilon(0.1, 1.0, 43, 1e-5), rel=1e-7)


@pytest.mark.law("privacy", "the noise found for an epsilon is enough for all clients, and 1 percent less is not")
@pytest.mark.parametrize("accountant", ["rdp", "pld"])
@pytest.mark.parametrize("target", [1.0, 8.0])
def test_the_noise_found_is_enough_for_all_and_less_is_not(accountant: Accountant, target: float):
    rate, steps = np.array([0.1, 0.05, 0.02, 0.0, 0.1]), np.array([40, 100, 900, 9, 0])
    sigma = noise_multiplier_for(target, 1e-5, rate, steps, accountant)
    place = ("rdp", "pld").index(accountant)
    assert epsilons(rate, sigma, steps, 1e-5)[place].max() <= target
    assert epsilons(rate, sigma * 0.99, steps, 1e-5)[place].max() > target


def test_noise_at_the_ends_of_what_can_be_asked():
    rate, steps = np.array([0.1, 0.2]), np.array([100, 0])
    with pytest.raises(ConfigError, match=r"^privacy\.epsilon must .* 0\.05; .*accountant=pld$"):
        noise_multiplier_for(0.05, 1e-5, rate, steps, "rdp")
    assert noise_multiplier_for(0.05, 1e-5, rate, steps, "pld") > 10
    with pytest.raises(ConfigError, match=r"^privacy\.epsilon must [^\n]*raise it$"):
        noise_multiplier_for(1e-6, 1e-6, rate, steps, "pld")
    assert noise_multiplier_for(1e12, 1e-5, rate, steps, "rdp") == 0.001
    assert noise_multiplier_for(3.0, 1e-5, rate, np.zeros(2, dtype=int), "pld") == 0


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.2, 0.4, 1.0]), st.integers(0, 9)), max_size=12))
def test_the_frontier_dominates_everyone_and_nobody_on_it(clients: list[tuple[float, int]]):
    rate, steps = frontier(np.array([q for q, _ in clients]), np.array([count for _, count in clients], dtype=int))
    assert (np.diff(rate) < 0).all()
    assert (np.diff(steps) > 0).all()
    assert set(zip(rate.tolist(), steps.tolist(), strict=True)) <= set(clients)
    for q, count in clients:
        assert not (q and count) or ((rate >= q) & (steps >= count)).any()


@pytest.mark.parametrize("accountant", ["rdp", "pld"])
def test_the_largest_of_many_is_found_by_computing_few(accountant: Accountant, monkeypatch: pytest.MonkeyPatch):
    sizes = np.arange(100, 900, 7)
    rate, steps = 16 / sizes, sizes // 16 * (1 + sizes % 5)
    place = ("rdp", "pld").index(accountant)
    q, count = frontier(rate, steps)
    expected = epsilons(q, 2.0, count, 1e-5)[place].max()
    asked = []

    def counted(*args: float, account=(rdp_epsilon, pld_epsilon)[place], **kwargs: float) -> float:
        asked.append(args)
        return account(*args, **kwargs)

    monkeypatch.setitem(sys.modules["fedexp.parts.privacy.accounting"].ACCOUNTANTS, accountant, counted)
    assert largest_epsilon(rate, 2.0, steps, 1e-5, accountant) == expected
    assert len(asked) < len(q) < len(rate)
    assert largest_epsilon(rate, 0.0, steps, 1e-5, accountant) == math.inf
    assert largest_epsilon(rate, 2.0, 0 * steps, 1e-5, accountant) == 0


def test_orders_left_out_are_not_a_warning(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]):
    assert rdp_epsilon(0.123, 0.5, 300, 1e-5) > 50
    assert not caplog.records
    assert not capfd.readouterr().err


def test_noise_beyond_all_measure_is_not_a_warning():
    assert pld_epsilon(1.0, 1e20, 2, 1e-3) == pytest.approx(0, abs=1e-12)


def test_the_accountants_are_imported_when_they_are_asked():
    check = "import sys, fedexp.parts.privacy.accounting; sys.exit('dp_accounting' in sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)
