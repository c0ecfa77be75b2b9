"""The first draws of a search: the same for every method, whatever else it searches, and after every kill."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from fedexp.core.random_streams import stream
from fedexp.search import space
from fedexp.search.study import Budget, MethodTrials

pytestmark = pytest.mark.skipif(find_spec("optuna") is None, reason="optuna is not installed")
RATE = "local.lr=tag(log,interval(0.01,1))"
FIRST = 5  # trials before the sampler learns


def draws(folder: Path, words: tuple[str, ...], trials: int = FIRST, seed: int = 0, worth: float = 1.0) -> list[dict]:
    """The hyperparameters of the trials of one method; each is worth `worth` times its rate."""
    folder.mkdir(exist_ok=True)
    read = space.read(words)
    study = MethodTrials(folder, read.methods[0], Budget(trials=trials, seed=seed))
    for _ in range(trials):
        with study.next_trial() as trial:
            for dimension in read.dimensions:
                dimension.suggest(trial)
            study.study.tell(trial, worth * trial.params["local.lr"])
    return [trial.params for trial in study.trials()]


def rates(*arguments, **options) -> list[float]:
    return [params["local.lr"] for params in draws(*arguments, **options)]


def test_a_shared_key_has_the_same_first_values_whatever_else_a_method_has(tmp_path: Path):
    plain = rates(tmp_path / "plain", ("algorithm=fedavg", RATE))
    more = draws(
        tmp_path / "more", ("local.mu=interval(0,1)", "a=1,2", RATE, "local.epochs=choice(1,2)", "b=range(1,9)")
    )
    assert [params["local.lr"] for params in more] == plain
    assert len(set(plain)) == FIRST
    assert rates(tmp_path / "other", (RATE,), seed=1) != plain


def test_the_first_values_are_those_of_the_named_stream(tmp_path: Path):
    import numpy as np

    def value(number: int) -> float:
        seed = int(stream(0, "search", "draw", "local.lr", number).integers(2**32))
        return float(np.exp(np.random.RandomState(seed).uniform(np.log(0.01), np.log(1.0))))

    assert rates(tmp_path / "a", (RATE,)) == pytest.approx([value(number) for number in range(FIRST)])


def test_after_that_each_method_learns_from_its_own_trials(tmp_path: Path):
    up = rates(tmp_path / "up", (RATE,), trials=9)
    down = rates(tmp_path / "down", (RATE,), trials=9, worth=-1.0)
    assert up[:FIRST] == down[:FIRST]
    assert up[FIRST:] != down[FIRST:]


@pytest.mark.parametrize("number", [1, 6])
def test_a_trial_that_died_before_its_values_were_drawn_has_the_same_ones(number: int, tmp_path: Path):
    words = (RATE, "local.mu=interval(0,1)")
    whole, folder = draws(tmp_path / "whole", words, trials=number + 1), tmp_path / "cut"
    draws(folder, words, trials=number)
    read = space.read(words)
    with MethodTrials(folder, (), Budget(trials=number + 1)).next_trial() as trial:
        read.dimensions[0].suggest(trial)  # then the process is killed
    study = MethodTrials(folder, (), Budget(trials=number + 1))
    with study.next_trial() as trial:
        assert trial.number == number
        for dimension in read.dimensions:
            dimension.suggest(trial)
        assert trial.params == whole[number]
