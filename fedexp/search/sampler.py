"""The sampler of a search: first draws that all methods share, then Optuna's tree-structured Parzen estimator.

The first values of a key come from the stream (seed, key, trial number). So `local.lr` of trial 0 is the same for every
method, however many other keys a method has: none is luckier at the start.
"""

from typing import Any

from optuna.samplers import RandomSampler, TPESampler
from optuna.trial import TrialState

from fedexp.core.random_streams import stream

RANDOM_TRIALS = 5  # trials drawn at random, before the sampler and the pruner use earlier ones
_SEEDS = 2**32  # that Optuna's generators take


class SharedStartSampler(TPESampler):
    """Learns as TPE does; what is drawn at random before that depends on the seed, the key and the trial alone."""

    def __init__(self, seed: int, method: str, number: int) -> None:
        super().__init__(seed=_seed(seed, "search", "learn", method, number), n_startup_trials=RANDOM_TRIALS)
        self.search_seed = seed

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        ended = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))
        if len(ended) >= RANDOM_TRIALS:
            return super().sample_independent(study, trial, param_name, param_distribution)
        sampler = RandomSampler(seed=_seed(self.search_seed, "search", "draw", param_name, trial.number))
        return sampler.sample_independent(study, trial, param_name, param_distribution)


def _seed(seed: int, *name: str | int) -> int:
    return int(stream(seed, *name).integers(_SEEDS))
