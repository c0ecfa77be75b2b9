"""The models of a state on validation data, by which hyperparameters are chosen.

These are the server's examples, or with `evaluation.validation_at=clients` those that each client sets apart: then the
model that a client uses is scored on its own, and what is told are means over clients, each of which counts alike.
Malicious clients, and those without such examples, are left out; of more than `evaluation.personal_clients` a seeded
sample is scored, the same in every round.
"""

import torch

from fedexp.core.values import State, Weights
from fedexp.scoring.scorer import Scores
from fedexp.simulation.measures import server_data
from fedexp.simulation.measures.own_models import sample_holders, scoring_work
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World


def score(exp: Experiment, world: World, state: State) -> Scores:
    """The scores of a state's models on validation data, now."""
    if world.validation is not None:
        return server_data.score(exp, world, state, world.validation)
    owner, width = sample_holders(exp, world, world.client_validation), server_data.score_width(world)

    def score_model(site: int, weights: Weights) -> torch.Tensor:
        index = world.train.to_device(world.client_validation.shard(site))
        return server_data.score_row(world, weights, world.train, index)

    work = scoring_work(exp, world, state, owner, width, score_model)
    return server_data.MeanScore(work, world.pool.execute, world.scorer.metric_set).result()
