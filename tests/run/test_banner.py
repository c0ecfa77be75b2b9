"""The first lines of a run say what was composed, and when a selector has nothing to choose."""

import numpy as np
import pytest
from composing import experiment

from fedexp import run
from fedexp.run import banner


def lines(exp, clients):
    return [*banner.lines(exp, clients), *banner.notes(exp, clients)]


def test_two_words_bring_an_experiment():
    told = list(lines(experiment("selector=greedyfed", "dataset=cifar10"), 100))
    assert told == [
        "dataset=cifar10 federation=dirichlet federation.alpha=0.5 model=simple_cnn "
        "local=sgd selector=greedyfed aggregator=fedavg",
        "30 rounds, 10 of 100 clients a round, 5 epochs of batches of 20 at rate 0.05",
    ]


def test_that_windows_share_samples_is_said_where_scores_are_of_such():
    told = "scores on examples that clients hold out or set apart are too good, since each window shares half"
    for words, is_said in (((), False), (("evaluation.personal_fraction=0.2",), True)):
        assert any(line.startswith(told) for line in lines(experiment("dataset=har", *words), 21)) == is_said


def test_a_part_inside_of_another_is_named_where_it_is_not_the_usual():
    first, *_ = lines(experiment("model=mixture", "model.component.hidden=[8]"), 10)
    assert " model=mixture model.component.hidden=[8] local=sgd " in first
    first, *_ = lines(experiment("model=mixture", "model@model.component=logistic"), 10)
    assert " model=mixture model@model.component=logistic local=sgd " in first


def test_every_part_that_is_not_usual_is_named():
    words = (
        "attack=alie",
        "scenario.malicious=3",
        "privacy=client_local",
        "privacy.clip=1",
        "privacy.epsilon=5",
        "privacy.delta=1e-5",
    )
    first, *rest = lines(experiment(*words, "schedule=cosine", "codec=float16"), 10)
    assert first.endswith(
        " aggregator=fedavg schedule=cosine codec=float16 attack=alie privacy=client_local privacy.clip=1 "
        "privacy.epsilon=5 privacy.delta=1e-05"
    )
    assert len(rest) == 1


@pytest.mark.parametrize(
    ("words", "parts", "numbers"),
    [
        (("dataset=mnist",), ("dirichlet", "mlp"), (100, 10, 1)),
        (("dataset=emnist_digits",), ("dirichlet", "mlp"), (100, 10, 1)),
        (("dataset=har",), ("subject", "har_cnn"), (10, 10, 1)),
        (("dataset=digits",), ("iid", "mlp"), (10, 10, 1)),
        (("dataset=cifar10", "model=mlp", "federation=iid"), ("iid", "mlp"), (100, 10, 5)),
        (("dataset=cifar10", "scenario.clients=7", "local.epochs=2"), ("dirichlet", "chain"), (7, 10, 2)),
        (("dataset=cifar10", "local=full_batch_step"), ("dirichlet", "chain"), (100, 10, 1)),
    ],
)
def test_what_a_dataset_brings_gives_way_to_what_is_asked(words, parts, numbers):
    exp = experiment(*words)
    assert tuple(type(part).__module__.rpartition(".")[2] for part in (exp.federation, exp.model)) == parts
    assert (exp.scenario.clients, exp.scenario.participants, exp.local.epochs) == numbers


def test_the_learning_rate_is_that_of_plain_gradients():
    assert experiment("dataset=cifar10").local.lr == 0.05
    assert experiment("dataset=cifar10", "local=prox").local.lr == 0.05
    assert experiment("dataset=cifar10", "local=adam").local.lr == 0.001
    assert experiment("dataset=mnist").local.lr == 0.1


def test_a_selector_that_learns_and_cannot_choose_says_so():
    *_, told = lines(experiment("selector=greedyfed"), 10)
    assert told == (
        "selector=greedyfed has nothing to choose: all 10 clients take part in every round; lower "
        "scenario.participants or raise scenario.clients"
    )
    for words in ((), ("selector=all",), ("selector=greedyfed", "scenario.participants=3")):
        assert len(list(lines(experiment(*words), 10))) == 2


ATTACKED_STEPS = (
    "attack=sign_flip",
    "aggregator=trimmed_mean",
    "aggregator.byzantine=1",
    "pacing=buffered",
    "pacing.clients=8",
    "fleet=simulated",
)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("attack=alie",), "attack=alie does nothing: nobody is malicious; set scenario.malicious"),
        (("scenario.malicious=3",), "scenario.malicious=3, but nobody attacks: choose an attack"),
        (
            ("evaluation.validation_at=clients",),
            "evaluation.validation_at=clients has nothing to measure: add evaluation.validation=true",
        ),
        (("evaluation.validation_at=clients", "stop=patience"), None),
        (("scenario.participants=20",), "scenario.participants=20 is more than there are clients: all 10 take part"),
        (("attack=alie", "scenario.malicious=3"), None),
        (
            ("attack=alie", "scenario.malicious=2"),
            "attack=alie does no harm: with 2 malicious of 10 participants, as are to be expected, its z is 0 and they "
            "send the plain mean of the others: it takes 3 to 5, or set attack.z",
        ),
        (("attack=alie", "scenario.malicious=2", "attack.z=1"), None),
        (("scenario.participants=10",), None),
        (
            ("scenario.malicious=3", "attack=sign_flip", "aggregator=krum", "scenario.byzantine=1"),
            "aggregator=krum expects 1 bad upload in a round, but of its 10 uploads 3 are malicious on average; "
            "raise aggregator.byzantine",
        ),
        (("scenario.malicious=3", "attack=sign_flip", "aggregator=krum"), None),
        (
            ("scenario.malicious=3", *ATTACKED_STEPS, "pacing.buffer=8"),
            "aggregator=trimmed_mean expects 1 bad upload in a round, but of its 8 uploads 2.4 are malicious on "
            "average; raise aggregator.byzantine",
        ),
        (("scenario.malicious=3", *ATTACKED_STEPS, "pacing.buffer=3"), None),
        (("scenario.malicious=3", "attack=sign_flip", "aggregator=krum", "scenario.byzantine=9"), None),
        (
            ("scenario.malicious=3", "attack=sign_flip", "aggregator=trimmed_mean", "aggregator.beta=0.05"),
            "aggregator=trimmed_mean expects no bad upload in a round and guards against none; set aggregator.beta",
        ),
        (("scenario.malicious=3", "attack=sign_flip", "aggregator=trimmed_mean", "aggregator.beta=0.3"), None),
        (
            ("aggregator=krum",),
            "aggregator=krum expects no bad upload in a round and guards against none; set scenario.malicious, or "
            "aggregator.byzantine",
        ),
        (
            ("scenario.malicious=3", "attack=label_flip", "attack.source=3", "attack.target=3"),
            "attack=label_flip does no harm: attack.source and attack.target are the same class 3",
        ),
        (
            ("scenario.malicious=3", "attack=backdoor", "attack.fraction=0"),
            "attack=backdoor does no harm: attack.fraction=0 marks no image, and attack.scale=1 changes no update",
        ),
        (("scenario.malicious=3", "attack=backdoor", "attack.fraction=0", "attack.scale=5"), None),
    ],
)
def test_what_has_no_effect_is_said(words: tuple[str, ...], told: str | None):
    assert list(lines(experiment(*words), 10))[2:] == ([] if told is None else [told])


@pytest.mark.parametrize(
    "word",
    [
        "prox local.mu=0",
        "moon local.mu=0",
        "fedlc local.tau=0",
        "fedntd local.beta=0",
        "fedrs local.alpha=1",
        "fedrep local.layers=[]",
    ],
)
def test_a_rule_that_adds_nothing_says_so_and_is_plain(word, tmp_path):
    rule, value = word.split()
    *_, told = lines(experiment(f"local={rule}", value), 10)
    assert told == f"{value} turns off what local={rule} adds: its steps are plain ones"
    usual = ("rounds=2", "model=mlp", "federation=dirichlet", "pictures=false")
    runs = [run(*usual, *words, folder=tmp_path / words[0]) for words in ((f"local={rule}", value), ("local=sgd",))]
    np.testing.assert_allclose(*(done.summary["loss_auc"] for done in runs), rtol=1e-6)


def test_a_pacing_on_a_fleet_of_equals_is_said():
    note = "pacing=buffered with fleet=none: all clients take the same time, so none is late because it is slow"
    told = list(
        lines(experiment("algorithm=fedbuff", "scenario.clients=20", "pacing.clients=5", "pacing.buffer=1"), 20)
    )
    assert any(line.startswith(note) for line in told)
    assert told[1].startswith("30 rounds, 5 of 20 clients at a time, a step after 1 upload, ")
    words = ("algorithm=fedbuff", "scenario.clients=20", "pacing.clients=5", "pacing.buffer=1", "fleet=simulated")
    assert not any(line.startswith("pacing=") for line in lines(experiment(*words), 20))
    more = list(lines(experiment(*words, "pacing.buffer=21"), 20))
    assert "pacing=buffered waits for 21 uploads a step, but a client is asked at most once a step, so that" in more[-1]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("pacing.staleness=constant", "pacing.exponent=3"),
            "pacing.exponent does nothing with pacing.staleness=constant",
        ),
        (("pacing.knee=1",), "pacing.knee does nothing with pacing.staleness=polynomial"),
        (("fleet.dropout_in=upload",), "fleet.dropout_in does nothing with fleet.dropout=0.0"),
        (("fleet.classes=[[1,20]]", "fleet.speed_low=5"), "fleet.speed_low does nothing with fleet.classes"),
        (
            ("fleet.classes=[[1,20,2,1]]", "fleet.bandwidth_mbit=2"),
            "fleet.bandwidth_mbit does nothing with fleet.classes",
        ),
        (("fleet.jitter_range=0", "fleet.jitter_std=0.2"), "fleet.jitter_std does nothing with fleet.jitter_range=0.0"),
        (("fleet.jitter_std=0", "fleet.jitter_range=0.3"), "fleet.jitter_range does nothing with fleet.jitter_std=0.0"),
        (("fleet.jitter_std=0", "fleet.jitter_range=0"), None),
        (("fleet.trace=x.csv", "fleet.speed_high=200"), "fleet.speed_high does nothing with fleet.trace"),
        (("fleet.classes=[[1,20]]", "fleet.bandwidth_mbit=2", "fleet.jitter_std=0.2"), None),
        (("pacing.exponent=3", "fleet.dropout=0.1", "fleet.dropout_in=upload"), None),
        (("pacing.staleness=hinge", "pacing.knee=1", "pacing.slope=2"), None),
        (("algorithm=fadas",), None),
    ],
)
def test_keys_of_a_clock_that_do_nothing_are_said(words: tuple[str, ...], told: str | None):
    exp = experiment("algorithm=fedbuff", "scenario.clients=20", "pacing.clients=10", "fleet=simulated", *words)
    assert list(lines(exp, 20))[2:] == ([] if told is None else [told])


def test_models_that_are_to_be_scored_on_no_test_data_are_said():
    words = ("evaluation.local_models=true", "evaluation.test=false", "evaluation.validation=true")
    *_, note = lines(experiment(*words), 20)
    assert note.startswith("evaluation.local_models=true does nothing with evaluation.test=false")
    assert "evaluation.local_models" not in " ".join(lines(experiment(words[0]), 20))


def test_over_selection_says_who_counts():
    words = ("pacing=over_selection", "pacing.uploads=5", "scenario.clients=20", "fleet=simulated")
    over, equal = (list(lines(experiment(*words, f"scenario.participants={asked}"), 20)) for asked in (8, 5))
    assert over[1].startswith("30 rounds, 8 of 20 clients a round, of whom the first 5 count, ")
    assert len(over) == 2
    assert equal[2].startswith("pacing=over_selection throws nobody away: all 5 clients that take part count;")


@pytest.mark.parametrize(
    ("words", "shared"),
    [
        (("dataset=npz", "dataset.normalise=train"), "mean and deviation of all training examples"),
        (("dataset=text",), "the vocabulary, which is that of all training lines"),
        (("dataset=digits",), None),
    ],
)
def test_what_clients_share_that_train_alone_is_said(words, shared, tmp_path):
    x, y = np.ones((20, 3), np.float32), np.arange(20) % 2
    np.savez(tmp_path / "mine.npz", x_train=x, x_test=x, y_train=y, y_test=y)
    file = (f"dataset.path={tmp_path / 'mine.npz'}",) if words[0] == "dataset=npz" else ()
    told = [line for line in lines(experiment("algorithm=local", *words, *file), 10) if "encoded by" in line]
    expected = f"every client trains alone, but its examples are encoded by what was learnt of everybody's: {shared}"
    assert told == ([] if shared is None else [expected])
    assert not any("encoded by" in line for line in lines(experiment(*words, *file), 10))
