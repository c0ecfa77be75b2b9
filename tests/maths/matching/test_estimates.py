"""SPAHM: known atoms and known variances are found again."""

import numpy as np
import pytest

from fedexp.maths.matching.estimates import Hyperparameters, estimate_hyperparameters, match_estimated
from fedexp.maths.matching.gains import Buffet


def problem(atoms: np.ndarray, clients: int, units: int, noise: float, seed: int):
    """Clients with noisy copies of some of the atoms, and which atoms they have."""
    rng = np.random.default_rng(seed)
    chosen = [rng.choice(len(atoms), units, replace=False) for _ in range(clients)]
    return [atoms[own] + noise * rng.normal(size=(units, atoms.shape[1])) for own in chosen], chosen


def test_known_atoms_are_recovered_from_noisy_copies():
    atoms = 2 * np.random.default_rng(0).normal(size=(7, 10))
    local, chosen = problem(atoms, clients=6, units=4, noise=0.05, seed=1)
    layer, hyper = match_estimated(local, Buffet(1.0, 2.0, 6), 10, np.random.default_rng(2))
    assert len(layer.atoms) == len({number for own in chosen for number in own.tolist()}) == 7
    for own, places in zip(chosen, layer.assigned, strict=True):
        assert np.abs(layer.atoms[places] - atoms[own]).max() < 0.15
    assert hyper.local_variance.mean() == pytest.approx(0.05**2, rel=0.5)


def test_hyperparameters_converge_to_the_truth():
    mean, spread, noise = np.array([1.0, -2.0, 0.5, 3.0, 0.0, -1.0]), 2.0, 0.1
    atoms = mean + spread * np.random.default_rng(0).normal(size=(120, 6))
    local, _ = problem(atoms, clients=6, units=80, noise=noise, seed=1)
    layer, hyper = match_estimated(local, Buffet(1.0, 2.0, 6), 4, np.random.default_rng(2))
    assert 120 <= len(layer.atoms) <= 122  # the sweeps may leave an atom split in two
    assert np.abs(hyper.mean - atoms.mean(axis=0)).max() < 0.05
    np.testing.assert_allclose(hyper.variance, atoms.var(axis=0), rtol=0.05)
    np.testing.assert_allclose(hyper.local_variance, noise**2, rtol=0.2)
    np.testing.assert_allclose(hyper.variance, spread**2, rtol=0.4)


def test_estimates_by_hand():
    """Atoms 1, 3 in one global atom and 5 in another: means 2 and 5; Q - S^2 / m = 2; (3 - 2) = 1 left to divide by."""
    start = Hyperparameters(np.zeros(1), np.ones(1), np.ones(1))
    found = estimate_hyperparameters(start, np.array([[1.0], [5.0], [3.0]]), np.array([0, 1, 0]))
    assert found.mean == pytest.approx([3.5])
    assert found.local_variance == pytest.approx([2.0])
    assert found.variance == pytest.approx([1.5**2 - 2.0 * (1 / 2 + 1) / 2])


def test_variances_do_not_fall_to_nothing():
    start = Hyperparameters(np.zeros(1), np.ones(1), np.ones(1))
    found = estimate_hyperparameters(start, np.array([[1.0], [1.0], [1.0]]), np.array([0, 1, 0]))
    assert (found.variance, found.local_variance) == (pytest.approx([1e-10]), pytest.approx([1e-10]))


def test_nothing_merged_nothing_learned():
    """As many global as local atoms: the estimates would be 0 / 0, so the start's stay."""
    start = Hyperparameters(np.zeros(2), np.ones(2), np.ones(2))
    assert estimate_hyperparameters(start, np.arange(6.0).reshape(3, 2), np.array([2, 0, 1])) is start
    far = [np.array([[1e3, 0.0], [0.0, 1e3]]), np.array([[-1e3, 0.0], [0.0, -1e3]])]
    layer, hyper = match_estimated(far, Buffet(1.0, 2.0, 2), 3, np.random.default_rng(0))
    assert len(layer.atoms) == 4
    assert hyper.variance.tolist() == hyper.local_variance.tolist() == [1.0, 1.0]
    assert sorted(layer.atoms.ravel().tolist()) == pytest.approx([-500, -500, 0, 0, 0, 0, 500, 500])


def test_posterior_means_by_hand():
    """(mean var + S var0) / (m var0 + var) with the last estimates."""
    atoms = np.array([[0.0, 8.0], [0.2, 8.0], [6.0, -1.0], [6.2, -1.4]])
    layer, hyper = match_estimated([atoms[[0, 2]], atoms[[3, 1]]], Buffet(1.0, 2.0, 2), 2, np.random.default_rng(0))
    assert [places.tolist() for places in layer.assigned] == [[0, 1], [1, 0]]
    for number, own in enumerate((atoms[:2], atoms[2:])):
        wanted = (hyper.mean * hyper.local_variance + own.sum(axis=0) * hyper.variance) / (
            2 * hyper.variance + hyper.local_variance
        )
        assert layer.atoms[number] == pytest.approx(wanted)
