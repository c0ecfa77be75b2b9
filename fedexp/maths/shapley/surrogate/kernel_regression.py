"""The values of many players as a weighted regression on some pairs of coalitions, linear in their utilities.

Source: Charnes et al. 1988 and Lundberg & Lee 2017 (KernelSHAP): the values are the additive game, with
sum = U(all) - U(nobody), that fits all coalitions best under the Shapley kernel's weights 1 / (C(M, s) s (M - s)).
Pairs of a coalition and its complement are drawn by size (Covert & Lee 2021, arXiv 2012.01536). Sizes from 1 upwards
are enumerated instead as long as the sample would hold as many pairs of the size as there are, as the authors of
KernelSHAP do in their package; the rest of the budget is drawn from the other sizes, with replacement.

With the constraint put in (Musco & Witter 2024, arXiv 2410.01917, lemma 3.1) a coalition z has the row
z' = z - |z| / M, its complement -z', and values = const + G^+ sum w z' (U(z) - U(1 - z)) / 2 with G = sum w z' z'^T;
const holds what nobody and all contribute, whose utilities are always known.
Legend: M players, n pairs, of s and M - s players with s at most M / 2.
"""

import math
from itertools import combinations

import numpy as np

SINGULAR = 1e-9  # eigenvalues below this share of the largest count as 0: the constraint removes one direction


def kernel_weight(players: int, size: int) -> float:
    """Kernel weight of all pairs of this size together, up to a factor."""
    return (1 if 2 * size == players else 2) / (size * (players - size))


def kernel_pairs(players: int, pairs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The smaller coalition of each pair, bool `[n, M]`, and what the pair weighs, `[n]`; for two players and more."""
    members, weights, remaining = [], [], pairs
    sizes = list(range(1, players // 2 + 1))
    kernel = np.array([kernel_weight(players, size) for size in sizes])
    while len(sizes) > 1 and remaining * kernel[0] / kernel.sum() >= math.comb(players, sizes[0]):
        members.append(rng.permutation(_all_coalitions(players, sizes[0])))
        weights.append(np.full(len(members[-1]), kernel[0] / len(members[-1])))
        remaining -= len(members[-1])
        sizes, kernel = sizes[1:], kernel[1:]
    drawn = rng.choice(sizes, size=remaining, p=kernel / kernel.sum())
    rank = np.argsort(np.argsort(rng.random((remaining, players)), axis=1), axis=1)
    smaller = rank < drawn[:, None]
    flip = (2 * drawn == players) & ~smaller[:, 0]  # of two halves the one with player 0
    members.append(smaller ^ flip[:, None])
    weights.append(np.full(remaining, kernel.sum() / remaining))
    return np.concatenate(members), np.concatenate(weights)


def regression_weights(players: int, pairs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Coalitions `[2 n, M]` and the weight of each one's utility in the fitted values, `[2 n, M]`."""
    members, weight = kernel_pairs(players, pairs, rng)
    design = members - members.mean(axis=1)[:, None]
    inverse = np.linalg.pinv((design * weight[:, None]).T @ design, rcond=SINGULAR, hermitian=True)
    half = (design @ inverse) * weight[:, None] / 2
    return np.concatenate([members, ~members]), np.concatenate([half, -half])


def _all_coalitions(players: int, size: int) -> np.ndarray:
    """All coalitions of this size, bool `[C(M, s), M]`."""
    chosen = np.array(list(combinations(range(players), size)), dtype=np.int64)
    members = np.zeros((len(chosen), players), dtype=bool)
    np.put_along_axis(members, chosen, True, axis=1)
    return members
