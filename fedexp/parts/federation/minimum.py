"""Repeats a random split until every client holds enough examples."""

from collections.abc import Callable

import numpy as np

from fedexp.core.errors import ConfigError


def draw_until_filled(draw: Callable[[], np.ndarray], min_size: int, tries: int, description: str) -> np.ndarray:
    """The first draw `[..., N]` that gives each of N clients at least `min_size` examples, summed over all other axes.

    Raises:
        ConfigError: none of the `tries` does; `description` says in words what was drawn.
    """
    best = 0
    for _ in range(tries):
        counts = draw()
        smallest = int(counts.reshape(-1, counts.shape[-1]).sum(axis=0).min())
        if smallest >= min_size:
            return counts
        best = max(best, smallest)
    raise ConfigError(
        f"federation.min_size={min_size} was not reached with {description}: the best of {tries} draws left its "
        f"smallest client with {best}; raise {description.partition('=')[0]} or retries, or lower min_size or "
        "scenario.clients"
    )


def require(min_size: int, clients: int, examples: int) -> None:
    """Raises ConfigError where there are too few examples for the minimum."""
    if min_size * clients > examples:
        raise ConfigError(
            f"federation.min_size={min_size} for {clients} clients needs {min_size * clients} examples, but there are "
            f"{examples}; lower min_size or scenario.clients"
        )
