"""Shapley values of a game whose utilities are cheap, for many players: windows on random circles.

SV_k = (1/M) sum over s < M of the mean gain U(T + k) - U(T) over the T of s players without k. On a random circle of
the players the M windows of s neighbours and the M of s + 1 hold two such gains of every player, with the player at
either end: one circle is M permutations and their reverses, for M^2 coalitions. Gains, and so their variance, shrink
as coalitions grow. So some circles are evaluated for windows of up to M players, three times as many for up to M / 3,
and so on; each such level costs about `LEVEL` coalitions. The part of U(all) - U(nobody) that the values do not reach
is spread evenly. That small coalitions need more samples is known (Castro et al. 2017); the windows are ours.

The standard error takes the variance of the gains of one size, over circles and players, for that of each player. That
is too large rather than too small, as players differ. Gains to one player and to all are known exactly.
Legend: M players, L sizes of a circle.
"""

import numpy as np

from fedexp.maths.shapley.game.utilities import Utilities

LEVEL = 4096  # coalitions
FINER = 3  # each level has windows this many times smaller than the one before


def circle_values(utilities: Utilities, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Values `[M]` and their standard errors `[M]`, for two players and more."""
    players = utilities.players
    count, mean = np.zeros((players, 1)), np.zeros((players, players))
    squares = np.zeros(players)
    for sizes in circle_sizes(players):
        gain = circle_gains(rng.permutation(players), sizes, utilities)
        count[:sizes] += 1
        mean[:sizes] += (gain - mean[:sizes]) / count[:sizes]
        squares[:sizes] += (gain**2).mean(axis=1)
    variance = np.maximum(squares / count[:, 0] - mean.mean(axis=1) ** 2, 0) / count[:, 0]
    variance[[0, -1]] = 0
    values = mean.mean(axis=0)
    empty, full = utilities(np.array([np.zeros(players), np.ones(players)], dtype=bool))
    return values + (full - empty - values.sum()) / players, np.full(players, np.sqrt(variance.sum()) / players)


def circle_sizes(players: int) -> list[int]:
    """For every circle, the number of window sizes that are evaluated."""
    every, sizes = [], players
    while sizes >= 2:
        every += [sizes] * max(1, LEVEL // (players * sizes))
        sizes //= FINER
    return every


def circle_gains(order: np.ndarray, sizes: int, utilities: Utilities) -> np.ndarray:
    """Mean of the two gains of every player in windows of 0 to L - 1 players, `[L, M]`; `order [M]` is the circle."""
    players = len(order)
    start = np.arange(players)
    after = (np.argsort(order) - start[:, None]) % players  # how far player k is after the start of window i
    windows = after < np.arange(sizes + 1)[:, None, None]
    table = utilities(windows.reshape(-1, players)).reshape(sizes + 1, players)
    behind, before = table[1:] - table[:-1], table[1:] - np.roll(table[:-1], -1, axis=1)
    gain = np.zeros((sizes, players))
    for size in range(sizes):
        gain[size, order[(start + size) % players]] += behind[size] / 2
        gain[size, order] += before[size] / 2
    return gain
