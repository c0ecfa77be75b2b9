"""Where several runs of one process train: what fits together of a round becomes one stack.

Runs fit together where network, cost, privacy and local rule are equal, up to the seed and the rate. Their rounds may
have other numbers, and their clients other data. A row does not depend on those beside it but for rounding, which the
size of a stack changes; a run whose stack holds no other is trained as it is alone, to the bit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary, WeakSet

import numpy as np
import torch

from fedexp.training.engine import Choice
from fedexp.training.examples import Examples
from fedexp.training.joint import Portion, joined, nbytes, pooled
from fedexp.training.loop import Task, Trainer
from fedexp.training.made import Made
from fedexp.training.rate_columns import takes_columns
from fedexp.training.stacked import Stacked

Answer = torch.Tensor | Exception  # trained rows, or why they could not be trained


class Stack:
    """Runs that fit together, and the trainer of their rows."""

    def __init__(self, made: Made, trainer: Trainer) -> None:
        self.made, self.trainer = made, trainer
        self.guests: WeakSet[Guest] = WeakSet()
        self.begins: WeakKeyDictionary[Examples, int] = WeakKeyDictionary({made.examples: 0})  # in the trainer's pool

    @cached_property
    def columns(self) -> bool:
        """Whether rows of several rates can train in one pass."""
        return takes_columns(self.made.recipe.rule, self.made.layout.parameters)

    def admits(self, made: Made) -> bool:
        """Whether such a run fits, and the examples of all have room in one pool."""
        held = {made.examples, *self.begins, *(guest.examples for guest in self.guests)}
        return (len(held) == 1 or sum(map(nbytes, held)) <= 1e6 * made.memory_mb) and self.made.fits(made)

    def passes(self, posted: Sequence["Posted"]) -> list[list["Posted"]]:
        """What trains in one pass each: all of it, unless rates differ and the rule takes but one."""
        if self._rates(posted) is None or self.columns:
            return [list(posted)]
        rates = dict.fromkeys(one.rate for one in posted)
        return [[one for one in posted if one.rate == rate] for rate in rates]

    def train(self, posted: Sequence["Posted"]) -> list[Answer]:
        """The trained rows of each; where the whole fails, those of each alone, so that only the culprits fail."""
        try:
            return list(self._together(posted))
        except Exception as error:
            if len(posted) == 1:
                return [error]
        return [answer for one in posted for answer in self.train([one])]

    def _together(self, posted: Sequence["Posted"]) -> Sequence[torch.Tensor]:
        begins = self._pooled([one.examples for one in posted])
        parts = [Portion(one.task, one.rows, begin) for one, begin in zip(posted, begins, strict=True)]
        task = joined(parts, self._rates(posted))
        out: torch.Tensor | None = None
        for rows in self.trainer.groups(task, 1):
            trained = self.trainer.run(task, rows)
            out = trained.new_zeros((len(task.start), trained.shape[1])) if out is None else out
            out[torch.from_numpy(rows)] = trained
        assert out is not None
        return out.split([len(one.rows) for one in posted])

    def _rates(self, posted: Sequence["Posted"]) -> list[float] | None:
        """Each part's rate; None where all have the one that the trainer's rule has for good."""
        own = self.made.recipe.rule.lr
        fixed = all(one.task.lr is None and one.rate == own for one in posted)
        return None if fixed else [one.rate for one in posted]

    def _pooled(self, several: Sequence[Examples]) -> list[int]:
        """Has the trainer work on a pool that holds all of these; where those of each begin in it."""
        if any(each not in self.begins for each in several):
            distinct, made = list(dict.fromkeys(several)), self.made
            self.trainer = Stacked(made.network(), made.layout, pooled(distinct), made.recipe, made.memory_mb)
            ends = np.cumsum([0, *map(len, distinct)]).tolist()
            self.begins = WeakKeyDictionary(zip(distinct, ends, strict=False))
        return [self.begins[each] for each in several]


@dataclass(frozen=True, eq=False)
class Posted:
    """Rows `[n]` of a run's task, which the run waits for."""

    stack: Stack
    examples: Examples
    task: Task
    rows: np.ndarray
    rate: float


Post = Callable[[Posted], torch.Tensor]


class Guest:
    """The trainer of one run: posts its rows, and gets them trained."""

    def __init__(self, stack: Stack, made: Made, post: Post) -> None:
        self.stack, self.examples, self.rule, self.post = stack, made.examples, made.recipe.rule, post

    def groups(self, task: Task, workers: int) -> list[np.ndarray]:
        """All rows `[n]` at once: how they are grouped is not for one run to say."""
        return [np.arange(len(task.start))] if len(task.start) else []

    def run(self, task: Task, rows: np.ndarray) -> torch.Tensor:
        """Has the rows `[n]` trained, like those of `Stacked`, together with those of other runs."""
        rate = self.rule.lr if task.lr is None else task.lr
        assert isinstance(rate, int | float)
        return self.post(Posted(self.stack, self.examples, task, rows, rate))


class Meeting:
    """The stacks of a process."""

    def __init__(self) -> None:
        self.stacks: list[Stack] = []

    def knows(self, made: Made) -> bool:
        """Whether clients like those of this run have been trained in a stack."""
        return any(stack.made.fits(made) for stack in self.stacks)

    def trainer(self, choice: Choice, made: Made, post: Post) -> Trainer:
        """The trainer of a run; `post` hands over what it is to train, and waits for it."""
        if choice.name == "loop":  # one row after another: nothing is won by waiting for others
            return choice.trainer(made)
        stack = next((stack for stack in self.stacks if stack.admits(made)), None)
        if stack is None:
            trainer = choice.trainer(made)
            stack = Stack(made, trainer)
            self.stacks = [*(each for each in self.stacks if each.guests), stack]  # others wait for nobody
        guest = Guest(stack, made, post)
        stack.guests.add(guest)
        return guest

    def train(self, posted: Sequence[Posted]) -> list[Answer]:
        """The trained rows of each, in their order."""
        answers: dict[Posted, Answer] = {}
        for stack in dict.fromkeys(one.stack for one in posted):
            for several in stack.passes([one for one in posted if one.stack is stack]):
                answers.update(zip(several, stack.train(several), strict=True))
        return [answers[one] for one in posted]
