"""How the clients' learning rate changes from round to round: write here what it is multiplied by.

As it stands, it falls with the square root of the rounds. Warm-up comes before it (`schedule.warmup`).
"""

from fedexp.parts import Schedule


class OwnSchedule(Schedule):
    """One over the square root of the round."""

    def decay_factor(self, round: int) -> float:
        return round**-0.5
