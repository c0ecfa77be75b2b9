"""What does not change during a run: tensors on the device, the network, the federation, the engine."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import ReferenceType

import numpy as np
import torch
from torch import nn

from fedexp.core.replace_unchecked import replace_unchecked
from fedexp.core.values import SERVER, Canaries, Layout, State, Weights
from fedexp.parts.features.contract import Encoding
from fedexp.parts.federation.partition import Partition
from fedexp.parts.federation.statistics import class_counts
from fedexp.parts.local.contract import LocalRule
from fedexp.parts.privacy.contract import Privacy
from fedexp.scoring.metrics import MetricSet
from fedexp.scoring.mixtures import MixtureScorer
from fedexp.scoring.scorer import DeferredScore, Scorer, Scores
from fedexp.scoring.side_stream import PendingScore, SideStreamScorer
from fedexp.simulation.checks.contract_checks import checked_timeline
from fedexp.simulation.presence import Presence
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.setup.pretraining import Figures
from fedexp.training.client.examples import Examples
from fedexp.training.client.objective import Objective
from fedexp.training.client.recipe import TrainerSpec
from fedexp.training.engine.contract import EngineChoice
from fedexp.training.loop.trainer import Trainer
from fedexp.training.per_example.gradients import PerExampleGradients
from fedexp.training.workers.pool import Work, WorkerPool


@dataclass(frozen=True)
class PreparedRun:
    """The examples on the device, and the model that the first round begins with."""

    encoding: Encoding  # how the examples were transformed before
    first: Weights
    train: Examples
    validation: Examples | None
    public: Examples | None  # the server's own, which no client has
    public_index: np.ndarray  # which training examples these are, ascending
    client_validation: Partition  # training examples that clients set apart to choose by, instead of the server's
    judging: Partition  # training examples that clients judge each other's models by
    test: Examples
    probes: dict[str, Examples]  # by the column that the accuracy on them is
    data_doubts: tuple[str, ...]  # what may not be what the user means, in sentences
    preparation_figures: dict[str, Figures]  # what is worth telling of what was done before the first round, by role


@dataclass(frozen=True)
class World(PreparedRun):
    """What does not change during a run."""

    exp: Experiment
    partition: Partition  # what the clients of the rounds train on
    sites: Partition  # the same examples by whose they are, where `partition` pools them
    held_out: Partition  # what of `client_eval_data` they measure models on
    unseen: Partition  # what of `client_eval_data` clients that never train measure models on
    site_names: tuple[str, ...] | None  # of the sites, and behind them of the clients that never train
    malicious: np.ndarray  # ascending
    canaries: Canaries  # the last training examples
    labels: np.ndarray  # of all training examples; 0 where targets are no classes
    data_sha256: str  # of the dataset as it was loaded
    groups: np.ndarray | None  # [N], which clients belong together, where that is known
    class_names: tuple[str, ...]
    choice: EngineChoice
    trainer_spec: TrainerSpec
    trainer: Trainer
    scorer: Scorer
    mixture_scorer: MixtureScorer
    pool: WorkerPool

    @property
    def layout(self) -> Layout:
        """The names and shapes of the entries of a row."""
        return self.first.layout

    @property
    def client_eval_data(self) -> Examples:
        """The split that held-out examples are taken from: the training data, or the test data with `own_test`."""
        return self.test if self.exp.evaluation.own_test else self.train

    @property
    def validation_size(self) -> int:
        """How many validation examples there are, of the server or of all clients."""
        return len(self.client_validation.indices) if self.validation is None else len(self.validation)

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names that labels index: the classes, or `all` where a target is more than one number."""
        return self.class_names if self.train.y.dim() == 1 else ("all",)

    @cached_property
    def class_counts(self) -> np.ndarray:
        """How many examples of each class the sites hold, `[N, K]`."""
        return class_counts(self.sites, self.labels, len(self.label_names))

    def shard(self, owner: int) -> np.ndarray:
        """The training examples `[n]` of a client of the rounds; of the server its public ones."""
        return self.public_index if owner == SERVER else self.partition.shard(owner)

    def trainer_of(self, site: np.ndarray) -> np.ndarray:
        """The clients `[n]` of the rounds that train on what these sites hold: themselves, or the only one."""
        return site if self.partition.clients == self.sites.clients else np.zeros_like(site)

    @property
    def client_names(self) -> tuple[str, ...] | None:
        """The names of the clients of the rounds; None where they have none, as the only one of pooled data."""
        return self.site_names if self.partition.clients == self.sites.clients else None

    def with_pool(self, pool: WorkerPool) -> "World":
        """The same world with another worker pool."""
        return replace(self, pool=self.pool.rebind(pool))

    def with_rule(self, rule: LocalRule) -> "World":
        """The same world with clients that train by another rule, and keep what comes of it: nothing is noised."""
        if rule not in self._worlds_by_rule:
            spec = self.trainer_spec

            def build_network() -> nn.Module:
                return rule.wrap_network(spec.build_network())

            layout = Layout.of(build_network())
            evaluation = replace_unchecked(self.exp.evaluation, client_losses="running")
            exp = replace_unchecked(self.exp, local=rule, privacy=Privacy(), evaluation=evaluation)
            recipe = replace(spec.recipe, rule=rule, privacy=exp.privacy)
            trainer = self.choice.make_trainer(
                TrainerSpec(build_network, layout, spec.examples, recipe, spec.memory_mb, spec.participants)
            )
            first = Weights(rule.extend_rows(self.first.flat[None], self.layout)[0], layout)
            self._worlds_by_rule[rule] = replace(self, exp=exp, trainer=trainer, first=first)
        return self._worlds_by_rule[rule]

    @cached_property
    def _worlds_by_rule(self) -> "dict[LocalRule, World]":
        return {}

    @cached_property
    def presence(self) -> Presence | None:
        """Who is there; None where all always are."""
        if not self.exp.availability.changes:
            return None
        clients = self.partition.clients
        return Presence(checked_timeline(self.exp, clients), clients)

    @cached_property
    def side_stream_scorer(self) -> SideStreamScorer:
        """Scores models on a GPU's second stream."""
        return SideStreamScorer(self.scorer, self.trainer_spec.build_network)

    @property
    def evaluates_later(self) -> bool:
        """Whether models are scored beside the next round: by an idle worker, or on a GPU's second stream."""
        return self.pool.size > 1 or self._has_second_stream

    @property
    def _has_second_stream(self) -> bool:
        return self.pool.size == 1 and not self.pool.times_jobs and self.first.flat.device.type == "cuda"

    def score_later(
        self, weights: Weights, examples: Examples, metric_set: MetricSet | None = None
    ) -> DeferredScore | PendingScore:
        """Starts scoring a model; idle workers take the jobs, at the latest when the result is asked for.

        They are those of the run's metrics, unless other metrics are given.
        """
        metric_set = metric_set or self.scorer.metric_set
        if self._has_second_stream:
            return self.side_stream_scorer.begin(weights, examples, metric_set)
        work = self.scorer.work(weights, examples, metric_set)
        self.pool.defer(work)
        return DeferredScore(work, self.pool.finish, examples.y, metric_set)

    def score(self, weights: Weights, examples: Examples) -> Scores:
        """Scores of a model, now."""
        return self.score_later(weights, examples).result()

    def defer_rows(self, jobs: Sequence[Callable[[], torch.Tensor]], width: int) -> Work:
        """Starts jobs that compute a float64 row `[width]` each; idle workers take them."""
        work = Work(torch.zeros((len(jobs), width), dtype=torch.float64, device=self.first.flat.device))
        work.jobs = [(np.array([position]), lambda job=job: job()[None]) for position, job in enumerate(jobs)]
        self.pool.defer(work)
        return work

    @cached_property
    def validation_parts(self) -> dict[range, Examples]:
        """Parts of the validation data that were asked for, by positions in an order that is drawn once a run."""
        return {}

    @cached_property
    def kept_scores(self) -> dict[str, tuple[ReferenceType[State], np.ndarray]]:
        """The latest scores `[n, w]` of the clients' own models, by the data; and the state of these models."""
        return {}

    @cached_property
    def gradients(self) -> PerExampleGradients:
        """Gradients of single training examples."""
        network = self.trainer_spec.build_network()
        clip = self.exp.privacy.example_clip or math.inf
        objective = Objective(self.exp.loss, self.exp.local, network)
        return PerExampleGradients(network, self.layout, clip, self.train, objective.per_example)

    def initial_state(self) -> State:
        """The state before the first round."""
        return State(0, (self.first,))


def with_client_name(line: dict[str, Any], names: tuple[str, ...] | None) -> dict[str, Any]:
    """The line of a table with the name of its client, where clients have names; empty for the server."""
    if names is None or "client" not in line:
        return line
    client = line["client"]
    return {"client": client, "name": names[client] if client >= 0 else "", **line}
