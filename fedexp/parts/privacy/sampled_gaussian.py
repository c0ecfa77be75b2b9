"""Epsilon of one client: `steps` releases of noisy sums over Poisson-sampled examples.

Each step takes every example with probability `rate` (Poisson sampling), sums contributions of norm at most C and adds
noise of standard deviation sigma * C. Neighbouring data sets differ by one example more or less. All figures are upper
bounds, computed by dp-accounting:

* RDP: the Renyi divergences of one step (Mironov 2017, arXiv:1702.07476; Mironov, Talwar, Zhang 2019,
  arXiv:1908.10530) times the steps, turned into epsilon as in Canonne, Kamath, Steinke 2020 (arXiv:2004.00010, Prop.
  12), the least over Opacus' orders. At fractional orders dp-accounting sums the absolute values of an alternating
  series and leaves out orders where that does not converge, while Opacus keeps the signs. So this epsilon is not below
  Opacus', but where delta is above the rate, where it may be 0. It is equal to many digits where the best order is
  large; on a wide grid (rates 0.0001 to 0.9) it is at most 0.02 % larger up to epsilon 2, 0.4 % up to 5, 0.7 % up to
  10, 4 % up to 20, and up to twice as large in the hundreds.
* PLD: the distribution of one step's privacy loss (Meiser, Mohammadi 2018; Koskela, Jalko, Honkela 2020,
  arXiv:1906.03049), discretised pessimistically by connecting the dots (Doroshenko et al. 2022, arXiv:2207.04380) and
  convolved. The grid follows the loss (`cell_width`). Below delta = 1e-11 the Fourier transform's rounding shows.
* rate = 1 is the plain Gaussian mechanism; its composition is one with sigma / sqrt(steps). The second figure is then
  exact (Balle, Wang 2018, arXiv:1805.06530) and needs no grid.
"""

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

ORDERS = (*(1 + tenth / 10 for tenth in range(1, 100)), *map(float, range(12, 64)))
COARSE = tuple(ORDERS.index(order) for order in (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 24, 32, 48, 63))
LEAST_NOISE = 1e-3  # below it epsilon counts as infinite: above 500,000 for a rate of 1, and the arithmetic overflows
LEAST_DIVERGENCE = 1e-15  # smaller divergences are rounding errors, and may be negative
FEW_CELLS, MANY_CELLS = 4096, 32768
LEAST_CELL = 1e-5  # second differences over smaller cells are lost in rounding


def rdp_epsilon(rate: float, noise_multiplier: float, steps: int, delta: float) -> float:
    """Epsilon at `delta` by Renyi divergences: 0 without steps or sampling, infinite without noise."""
    if not (rate and steps):
        return 0.0
    return math.inf if noise_multiplier < LEAST_NOISE else _epsilon_by_divergences(rate, noise_multiplier, steps, delta)


def pld_epsilon(rate: float, noise_multiplier: float, steps: int, delta: float) -> float:
    """Epsilon at `delta` by the privacy loss distribution: 0 without steps or sampling, infinite without noise."""
    if not (rate and steps):
        return 0.0
    return math.inf if noise_multiplier < LEAST_NOISE else _epsilon_by_losses(rate, noise_multiplier, steps, delta)


@lru_cache(maxsize=2**16)
def _epsilon_by_divergences(rate: float, noise_multiplier: float, steps: int, delta: float) -> float:
    """The least epsilon over all ORDERS, of which only a few are computed.

    Epsilon is a convex function of the order minus one, divided by that: it falls and then rises. So the best order
    lies between the neighbours of the best coarse one, and the fractional orders near 1, which take long, are seldom
    computed. (If delta is so large that epsilon is 0 at order 1.1 alone, as with delta > rate, this bound is above 0.)
    """
    _, index = _lowest_epsilon(COARSE, rate, noise_multiplier, steps, delta)
    best = COARSE.index(index)
    between = range(COARSE[best - 1] if best else 0, COARSE[min(best + 1, len(COARSE) - 1)] + 1)
    return _lowest_epsilon(between, rate, noise_multiplier, steps, delta)[0]


def _lowest_epsilon(
    indices: Sequence[int], rate: float, noise_multiplier: float, steps: int, delta: float
) -> tuple[float, int]:
    """The least epsilon over the orders at these indices of ORDERS, and the index of its order."""
    from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

    divergence = steps * _divergence(indices, rate, noise_multiplier)
    epsilon, order = compute_epsilon([ORDERS[position] for position in indices], divergence.tolist(), delta)
    return float(epsilon), ORDERS.index(order)


@lru_cache(maxsize=2**14)
def _divergence(indices: Sequence[int], rate: float, noise_multiplier: float) -> np.ndarray:
    """Renyi divergence of one step at the orders of these indices; infinite where the series does not converge."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant([ORDERS[position] for position in indices])
    with _silence_excluded_orders():
        accountant.compose(PoissonSampledDpEvent(rate, GaussianDpEvent(noise_multiplier)))
    return np.maximum(accountant.rdp, LEAST_DIVERGENCE)


@contextmanager
def _silence_excluded_orders() -> Iterator[None]:
    """Hides the warning that dp-accounting logs for every order it leaves out, which is common and harmless."""
    logger = logging.getLogger("absl")

    def matters(record: logging.LogRecord) -> bool:
        return "Excluding this order" not in record.getMessage()

    logger.addFilter(matters)
    try:
        yield
    finally:
        logger.removeFilter(matters)


@lru_cache(maxsize=2**16)
def _epsilon_by_losses(rate: float, noise_multiplier: float, steps: int, delta: float) -> float:
    from dp_accounting import get_epsilon_gaussian

    if rate == 1:
        with np.errstate(divide="ignore"):  # a logarithm of 0 where the noise is extremely large
            return float(get_epsilon_gaussian(noise_multiplier / math.sqrt(steps), delta))
    losses = _loss_distribution(rate, noise_multiplier).self_compose(steps)
    with np.errstate(over="ignore"):  # an epsilon beyond the logarithm of what a float holds, 709, is infinite
        return float(losses.get_epsilon_for_delta(delta))


@lru_cache(maxsize=1024)
def _loss_distribution(rate: float, noise_multiplier: float) -> "PrivacyLossDistribution":
    """The loss of one step: up to half a megabyte, and most of the time of the first epsilon at a rate."""
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

    return from_gaussian_mechanism(
        noise_multiplier,
        sampling_prob=rate,
        value_discretization_interval=cell_width(rate, noise_multiplier),
        use_connect_dots=True,
    )


def cell_width(rate: float, noise_multiplier: float) -> float:
    """The width of the cells that discretise the privacy loss: wide, unless its spread is small against its range.

    Connecting the dots of cells h wide adds at most h^2 / 4 to the variance v of a step's loss, on average h^2 / 6.
    Epsilon grows like the square root of the composed variance, so by h^2 / (12 v), which is 0.2 % at h = 0.15 sqrt(v).
    If that would take more than MANY_CELLS, or cells below LEAST_CELL (rates below 0.001, or much noise), epsilon is
    larger by more, and still an upper bound.
    """
    reach = (1 + 20 * noise_multiplier) / (2 * noise_multiplier**2)  # the tails left out have a mass of exp(-50)
    span = np.logaddexp(np.log1p(-rate), np.log(rate) + reach) - np.log1p(-rate)
    spread = rate * math.sqrt(math.expm1(min(noise_multiplier**-2, 50.0)))
    return float(max(LEAST_CELL, span / MANY_CELLS, min(span / FEW_CELLS, 0.15 * spread)))
