"""When sampled Shapley values have converged: three published tests on running means `[T, M]`.

`per_client` is the selection thesis' text: over the last 20 running means the mean of |v_i - v_T| / |v_T| is below 0.01
for every client. `flexcs` is its code: the same test on the average over the clients, without absolute values, so that
a round that made the model worse never converges. By efficiency that average is constant, so the test does not depend
on the values; it is here to reproduce the thesis' figures. `gtg_authors` is the code of GTG-Shapley's authors: after
more than max(30, M) permutations, the largest of the last 10 mean relative changes is at most 0.05.
"""

import numpy as np

WINDOW = 20
TOLERANCE = 0.01
NOTHING = 1e-12


def per_client(means: np.ndarray) -> bool:
    """Whether every client's running mean `[T, M]` has settled; a value of 0 counts as settled."""
    if len(means) <= WINDOW:
        return False
    last, before = means[-1], means[-1 - WINDOW : -1]
    settled = np.abs(last) < NOTHING
    size = np.where(settled, 1.0, np.abs(last))
    return bool((settled | (np.abs(before - last).mean(axis=0) / size < TOLERANCE)).all())


def flexcs(means: np.ndarray) -> bool:
    """Whether the average over clients of the running `means [T, M]` is at least 1e-6 and has settled."""
    if len(means) <= WINDOW:
        return False
    average = means.mean(axis=1)
    last, before = average[-1], average[-1 - WINDOW : -1]
    return bool(last >= 1e-6 and np.abs(before - last).mean() / last < TOLERANCE)


def gtg_authors(means: np.ndarray) -> bool:
    """Whether each of the last 10 running `means [T, M]` differs from the present one by at most 5 % on average."""
    if len(means) <= max(30, means.shape[1]):
        return False
    last, before = means[-1], means[-11:-1]
    return bool((np.abs(before - last) / (np.abs(last) + NOTHING)).mean(axis=1).max() <= 0.05)


TESTS = {"per_client": per_client, "flexcs": flexcs, "gtg_authors": gtg_authors}
