"""When clients arrive: all before the first round, by a schedule, or at a rate; in an order drawn once."""

from collections.abc import Sequence

import numpy as np

from fedexp.core.errors import ConfigError


def parse_arrivals(arrivals: Sequence[str]) -> dict[int, int]:
    """How many clients arrive in each round, from words like `3:2` (in round 3, two).

    Raises:
        ConfigError: a word has another form, or a round occurs twice.
    """
    counts: dict[int, int] = {}
    for word in arrivals:
        number, _, count = word.partition(":")
        if not (number.isdecimal() and count.isdecimal() and int(number) > 0) or int(number) in counts:
            raise ConfigError(
                "clustering.arrivals must list ROUND:COUNT, each round once and from 1 on, such as "
                f"clustering.arrivals=[3:2,5:1]; got {word!r}"
            )
        counts[int(number)] = int(count)
    return counts


def count_arrivals(number: int, clients: int, counts: dict[int, int], rate: float, rng: np.random.Generator) -> int:
    """How many of `clients` have arrived by the end of a round (0: before the first one).

    Clients in no schedule arrive before the first round. With a `rate` only one does, and others follow in numbers
    drawn from a Poisson distribution with that mean in each round.
    """
    first = max(0, clients - sum(counts.values())) if not rate else 1
    later = sum(count for scheduled_round, count in counts.items() if scheduled_round <= number)
    drawn = int(rng.poisson(rate, size=number).sum()) if rate else 0
    return min(clients, first + later + drawn)
