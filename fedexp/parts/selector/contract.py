"""The contract of selectors: who takes part in a round, and what is learnt from what came back."""

from abc import abstractmethod

from fedexp.core.part import Part
from fedexp.core.values import Memory, Plan, Uploads
from fedexp.parts.context import Context


class Selector(Part):
    """Selects the participants of each round."""

    needs_validation = False
    needs_fleet = False
    learns = True  # whether it prefers some clients, so that it is idle where all take part
    foreseeable = False  # whether the seed (and the fleet's trace) alone decides who is selected in each round
    reveals = ""  # what it learns of single clients beside what they upload, in words
    asks_participants = False  # whether those who take part also tell the loss of the model that they were sent
    averages_models = False  # whether it looks at averages of the global and the clients' models
    needs_classes = False  # whether it can only work where targets are classes
    needs_cohort = ""  # why all that it asks must begin and end a round together, in words that end a refusal
    needs_one_model = ""  # why all clients must share one model, in words that end a refusal; "" if they need not

    @property
    def size_keys(self) -> tuple[str, ...]:
        """The names of its keys that only say how many clients a round has, where nobody limits how many may begin."""
        return ()

    def rate(self, clients: int) -> float:
        """The probability of a client to be selected in a round, if it is the same for all; else 1."""
        return 1.0

    def clients_per_round(self, clients: int) -> int | None:
        """How many of this many clients are selected in a round; None where that differs from round to round."""
        count: int | None = getattr(self, "count", None)
        return None if count is None else min(count, clients)

    def choice_size(self, usual: int, ctx: Context) -> int:
        """How many clients to choose: as many as may begin, where that is limited, else the `usual` number."""
        return usual if ctx.fleet.capacity is None else ctx.fleet.capacity

    @abstractmethod
    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        """The participants of this round, in the order of their uploads, and what each trains on.

        None of them may be `ctx.fleet.busy`. Where `ctx.fleet.capacity` is a number, no more than so many can begin.
        """
        raise NotImplementedError

    def observe(self, uploads: Uploads, memory: Memory, ctx: Context) -> Memory:
        """Learns from the uploads, which may hold rows that are not finite."""
        return memory
