"""Computes rounds again from a saved state, in a world that is built as for the run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fedexp.core.csv_table import Line
from fedexp.core.errors import ConfigError
from fedexp.core.part import build
from fedexp.core.values import State
from fedexp.run import checkpoint, digests
from fedexp.run.environment import surroundings
from fedexp.run.tables import attendance, cell, cluster_rows, metrics_columns
from fedexp.simulation import compatibility
from fedexp.simulation.building import build_world
from fedexp.simulation.experiment import Experiment
from fedexp.simulation.rounds import rounds, staffed
from fedexp.simulation.world import World
from fedexp.training.engine import Choice
from fedexp.training.workers import Crew
from fedexp.verify.recorded import Claim


@dataclass(frozen=True)
class Replayed:
    """A round that was computed again."""

    state: State
    line: Line
    clients: tuple[Line, ...]
    clusters: tuple[Line, ...]

    @property
    def round(self) -> int:
        return self.state.round

    @property
    def digest(self) -> str:
        return digests.digest(self.state.models)


@dataclass(frozen=True)
class Stage:
    """The world of a run, built again so that any of its rounds can be replayed."""

    config: dict[str, Any]
    world: World

    @property
    def exp(self) -> Experiment:
        return self.world.exp

    @property
    def surroundings(self) -> dict[str, str]:
        """The environment of this process, on which the bits of a result depend."""
        exp = self.exp
        workers = exp.engine.crew_size(min(exp.scenario.participants, self.world.partition.clients))
        return surroundings(exp, self.world.choice, workers)

    @property
    def steady(self) -> bool:
        """Whether a round gives the same bits each time: not on a GPU, which may add in another order."""
        return self.exp.engine.place().type == "cpu"

    def state(self, claim: Claim | None) -> State:
        """The state in a saved file; without one, the state before the first round."""
        if claim is None:
            return self.world.beginning()
        found = checkpoint.read(claim.path, self.config, self.exp.engine.place())
        if found is None:
            raise ConfigError(f"{claim.path} changed while it was verified; verify again")
        return found.state

    def play(self, claim: Claim | None, last: int) -> Iterator[Replayed]:
        """Yields the rounds after a state, up to `last`; raises RunError if a round cannot be completed."""
        state, exp = self.state(claim), replace(self.exp, rounds=last)
        with staffed(exp, self.world, state) as world:
            for after, row, sent in rounds(exp, world, state):
                clients = tuple(map(texts, attendance(exp, world, after, sent)))
                events = cluster_rows(after.memory.get("clustering", {}).get("events", ()))
                line = dict.fromkeys(metrics_columns(exp), "") | texts(row)
                yield Replayed(after, line, clients, tuple(map(texts, events)))

    def scores(self, claim: Claim) -> Line:
        """The scores of a state's models on the server's data, by column of metrics.csv."""
        world, model = self.world, self.state(claim).models[0]
        found: dict[str, Any] = world.score(model, world.test).columns("test")
        if world.validation is not None:
            found |= world.score(model, world.validation).columns("validation")
        accuracy = world.scorer.gauge.accuracy
        probed = {name: world.score_later(model, probe, accuracy).result() for name, probe in world.probes.items()}
        found |= {name: each.metrics["accuracy"] for name, each in probed.items()}
        return texts(found)


def texts(row: Mapping[str, Any]) -> Line:
    """The row of a table as it is written to CSV: every cell as text."""
    return {name: str(cell(value)) for name, value in row.items()}


def stage(config: dict[str, Any], engine: dict[str, str] | None) -> Stage:
    """Builds the world, with the engine of the run if it is known."""
    exp: Experiment = build(config)
    compatibility.refuse(exp)
    return Stage(config, build_world(exp, Choice(**engine) if engine else None, Crew()))
