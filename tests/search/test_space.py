"""What words mean to a search, by hand."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from fedexp.core.errors import ConfigError
from fedexp.search.space import Dimension, read
from fedexp.search.study import Budget, MethodTrials


def test_words_sorted_by_what_they_ask():
    words = ("rounds=5", "selector=random,afl", "seed=3,4", "local.lr=tag(log,interval(0.01,1))", "model=mlp")
    space = read((*words, "local.epochs=int(interval(1,4))", "local.batch_size=choice(5,full)"))
    assert space.fixed == ("rounds=5", "model=mlp")
    assert space.methods == (("selector=random",), ("selector=afl",))
    assert space.seeds == ("seed=3", "seed=4")
    assert space.dimensions == (
        Dimension("local.lr", 0.01, 1.0, log=True),
        Dimension("local.epochs", 1.0, 4.0, is_integer=True),
        Dimension("local.batch_size", options=("5", "full")),
    )


def test_without_lists_one_method_and_one_seed():
    space = read(("local.lr=interval(0.1,0.3)",))
    assert (space.fixed, space.methods, space.seeds) == ((), ((),), ("seed=0",))
    assert read(("local.lr=interval(0.1,0.3)", "seed=7")).seeds == ("seed=7",)


def test_every_combination_of_lists_is_a_method():
    space = read(("a=1,2", "b=x,y", "c=choice(1,2)"))
    assert space.methods == (("a=1", "b=x"), ("a=1", "b=y"), ("a=2", "b=x"), ("a=2", "b=y"))


def test_ranges_end_at_their_last_value():
    assert read(("a=range(1,6,step=2)",)).dimensions == (Dimension("a", 1.0, 5.0, step=2.0, is_integer=True),)
    assert read(("a=range(0.1,0.5,step=0.2)",)).dimensions[0].high == 0.3


def test_ends_are_written_as_overrides_are():
    assert Dimension("a", 1.0, 5.0, is_integer=True).extreme_overrides() == ("a=1", "a=5")
    assert Dimension("a", 0.5, 1e-7).extreme_overrides() == ("a=0.5", "a=1e-07")
    assert Dimension("a", options=("x", "[1,2]")).extreme_overrides() == ("a=x", "a=[1,2]")


@pytest.mark.skipif(find_spec("optuna") is None, reason="optuna is not installed")
@pytest.mark.parametrize(
    "word",
    [
        *("a=interval(0.1,0.3)", "a=tag(log,interval(1,1000))", "a=int(interval(1.5,7.2))", "a=choice(x,[1,2])"),
        *("a=range(1,6,step=2)", "a=range(0.1,0.5,step=0.2)", "a=range(0,1,step=0.1)", "a=range(0.3,7,step=0.7)"),
    ],
)
def test_a_trial_knows_its_own_space_from_others(word: str, tmp_path: Path):
    space = read((word,))
    with MethodTrials(tmp_path, (), Budget(trials=1)).next_trial() as trial:
        space.dimensions[0].suggest(trial)
    (drawn,) = MethodTrials(tmp_path, (), Budget(trials=1)).trials()
    assert space.foreign_key(drawn) is None
    assert read(("a=interval(0.1,0.35)",)).foreign_key(drawn) == "a"
    assert read(("b=interval(0.1,0.3)",)).foreign_key(drawn) == "a"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("algorithm=fedavg,fedavg",), "a search must have each listed value once, got algorithm=fedavg twice; leave"),
        (("local.momentum=0.5,0.50",), "got local.momentum=0.5 twice"),
        (("seed=0,1,0",), "got seed=0 twice"),
        (("local.epochs=choice(1,2,1)",), "got local.epochs=1 twice"),
        (("tracker=choice(none,mlflow)",), "tracker changes no result, so a search must have one value of it"),
        (("engine=choice(loop,stacked)",), "engine changes no result"),
        (("hydra.run.dir=choice(a,b)",), "hydra.run.dir changes no result"),
        (("hydra/launcher=choice(basic,joblib)",), "hydra/launcher changes no result"),
        (("pictures=choice(true,false)",), "pictures changes no result"),
        (("++checkpoint_s=interval(1,2)",), "checkpoint_s changes no result"),
        (
            ("evaluation.validation_fraction=interval(0.01,0.5)",),
            "evaluation.validation_fraction must have one value in a search, which judges all trials alike",
        ),
        (("evaluation.metrics=[accuracy],[f1]",), "evaluation.metrics must have one value in a search"),
        (("evaluation.validation=False",), "evaluation.validation must be true in a search, which judges trials on"),
    ],
)
def test_what_cannot_tell_good_values_from_bad_ones_is_refused(words: tuple[str, ...], told: str):
    with pytest.raises(ConfigError, match=re.escape(told)):
        read((*words, "local.lr=interval(0.1,1)")).refuse_useless()


@pytest.mark.parametrize(
    "words",
    [
        *(("engine.precision=choice(float32,bf16)",), ("evaluation.fine_tune_epochs=choice(1,5)",), ("seed=0,1",)),
        *(("evaluation.client_losses=running,exact",), ("evaluation.validation=true",), ("engine=loop,stacked",)),
    ],
)
def test_what_may_tell_them_is_left(words: tuple[str, ...]):
    read((*words, "local.lr=interval(0.1,1)")).refuse_useless()


def test_extremes_are_set_one_key_at_a_time_in_the_same_order():
    space = read(("a=interval(1.0,2.0)", "b=choice(x,y,z)"))
    assert list(space.extreme_overrides()) == [["a=1.0", "b=x"], ["a=2.0", "b=x"], ["a=1.0", "b=y"], ["a=1.0", "b=z"]]


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("local.lr=0.1", "a search must vary something"),
        ("local.lr=0.1,0.2", "a search must vary something"),
        ("local.lr=tag(log,interval(0,1))", "above 0 with log; got"),
        ("selector=glob(*)", "by choice, interval or range; got selector=glob"),
        ("local.lr=tag(log,range(0.1,1,step=0.1))", "cannot be searched in steps with log; use interval"),
        ("seed=range(0,3)", "seeds are listed, not searched: seed=0,1,2; got"),
        ("local.lr=interval(1,1)", "from a smaller to a larger value"),
        ("local.lr=tag(square,interval(1,2))", "has the tag square; a search knows only log"),
    ],
)
def test_what_cannot_be_searched_is_refused(word: str, told: str):
    with pytest.raises(ConfigError, match=told):
        read((word,))


@pytest.mark.parametrize("word", ["+", "'", "a=[", "a=interval(1,2"])
def test_what_cannot_be_read_is_told_in_one_line(word: str):
    with pytest.raises(ConfigError, match="cannot read") as refused:
        read((word,))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("word", ["a=range(0,1e9)", "a=range(0,1,step=0)", "a=range(0,1,step=1e-9)"])
def test_a_range_without_end_is_refused_at_once(word: str):
    with pytest.raises(ConfigError, match="a must be searched in at most 100,000 steps, got a=range"):
        read((word,))
