"""Every row of the table refuses what it says, and what it says to use instead is accepted."""

import re

import pytest
from composing import CONF, config

from fedexp.config import catalog, roles
from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.simulation.setup import compatibility
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.setup.incompatibility import Incompatibility
from fedexp.simulation.setup.incompatible_pairs import ROWS
from scripts import compatibility_page

SETTINGS = {
    ("fleet", "deadline_s"): ["fleet=simulated", "fleet.deadline_s=100"],
    ("fleet", "changes_idle_s"): ["fleet=simulated", "fleet.idle_s=60"],
    ("pacing", "discards_uploads"): ["pacing=buffered", "pacing.max_staleness=5"],
    ("evaluation", "every_s"): ["evaluation.every_s=60"],
    ("evaluation", "local_models"): ["evaluation.local_models=true"],
    ("evaluation", "confusion_matrix"): ["evaluation.metrics=[accuracy,confusion_matrix]"],
    ("evaluation", "unseen_fraction"): ["evaluation.unseen_fraction=0.2", "evaluation.personal_fraction=0.2"],
    ("evaluation", "validates_at_clients"): ["evaluation.validation_at=clients"],
    ("evaluation", "fine_tune_epochs"): ["evaluation.fine_tune_epochs=1", "evaluation.personal_fraction=0.2"],
    ("scenario", "copies"): ["scenario.malicious=2", "scenario.malicious_hold_data=false"],
    ("scenario", "malicious"): ["scenario.malicious=1"],
    ("scenario", "trains_alone"): ["scenario.training=local"],
    ("scenario", "pools_data"): ["scenario.training=central"],
    ("", "clients_judge"): ["local=fedfomo"],
}


def example(row: Incompatibility, *instead: str) -> Experiment:
    """An experiment in which the row holds, but for what is given instead."""
    sides = [(row.role, row.flag), (row.other_role, row.other_flag)]
    words = [f"{role}={compatibility_page.options(role, flag)[0]}" for role, flag in sides if is_option(role, flag)]
    settings = [word for side in sides for word in SETTINGS.get(side, ())]
    chosen = {word.partition("=")[0]: word for word in (*words, *settings, *instead)}
    return spec.build(compatibility_page.whole(*chosen.values()))


def is_option(role: str, flag: str) -> bool:
    """Whether a role's options have the flag by themselves, and no setting gives it to them."""
    return role in roles.role_names() and (role, flag) not in SETTINGS


def cure(row: Incompatibility) -> list[str]:
    """The words of the first thing to use instead."""
    words = re.split(r", or | or ", row.use)[0].split()
    return ["evaluation.local_models=false"] if words == ["evaluation.personal_fraction"] else words


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.role}.{row.flag}-{row.other_role}.{row.other_flag}")
class TestRow:
    def test_refuses_what_it_says(self, row: Incompatibility):
        exp = example(row)
        assert row.holds(exp)
        told = row.sentence(exp)
        assert re.fullmatch(r"\S.*, but \S.*; use \S.*", told)
        assert "{" not in told
        with pytest.raises(ConfigError) as refused:
            compatibility.refuse(exp)
        assert ", but " in str(refused.value)

    def test_what_it_says_to_use_is_accepted(self, row: Incompatibility):
        assert not row.holds(example(row, *cure(row)))

    def test_some_options_have_each_flag_and_some_have_not(self, row: Incompatibility):
        for role, flag in ((row.role, row.flag), (row.other_role, row.other_flag)):
            if is_option(role, flag) and flag != "not averages_uniformly":  # by default no mean weighs alike
                assert 0 < len(compatibility_page.options(role, flag)) < len(catalog.options(CONF, role)), (role, flag)


def test_the_page_has_a_line_for_every_row():
    page = compatibility_page.lines()
    assert len([line for line in page if line.startswith("* ")]) == len(ROWS)
    assert "{" not in "".join(page)
    line = "* `stop=simulated_time` needs a simulated clock, but the server has none: use fleet=simulated"
    assert line in page


def test_the_defaults_go_together():
    exp = spec.build(config())
    assert not [row for row in ROWS if row.holds(exp)]


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (("algorithm=feddyn", "pacing=buffered"), "local=sgd aggregator=fedavg"),
        (("algorithm=feddyn", "clustering=ifca"), "local=sgd aggregator=geometric_median"),
        (("algorithm=scaffold", "pacing=buffered"), "local=sgd"),
        (("local=feddyn",), "aggregator=feddyn, or algorithm=feddyn"),
        (("aggregator=feddyn",), "local=feddyn, or algorithm=feddyn"),
    ],
)
def test_where_one_half_of_a_rule_must_go_both_are_named(words: tuple[str, ...], instead: str):
    with pytest.raises(ConfigError, match=f"; use {instead}$"):
        compatibility.refuse(spec.build(compatibility_page.whole(*words)))


BUFFERED = ("pacing=buffered", "fleet=simulated", "privacy=client_local", "privacy.clip=1", "privacy.delta=1e-3")


@pytest.mark.parametrize(
    ("words", "use"),
    [
        (("fleet.dropout=0.1", "fleet.dropout_in=both"), "fleet.dropout_in=training"),
        (("availability=markov",), "availability.interrupts=false"),
    ],
)
def test_uploads_that_break_off_are_refused_where_the_ledger_counts_what_arrives(words: tuple[str, ...], use: str):
    told = (*BUFFERED, "privacy.noise_multiplier=1", *words)
    with pytest.raises(ConfigError, match=rf"counts what arrives with pacing=buffered, but .*; use {use} or pacing="):
        compatibility.refuse(spec.build(config(*told)))
    compatibility.refuse(spec.build(config(*told, use)))
    compatibility.refuse(spec.build(config(*told, "pacing=synchronous")))


CENTRAL = ("privacy=client_central", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3")
LOCAL = ("privacy=client_local", *CENTRAL[1:])


@pytest.mark.parametrize("option", sorted({*catalog.options(CONF, "pre_aggregation")} - {"none"}))
def test_what_changes_rows_by_others_is_refused_where_their_mean_is_noised(option: str):
    words = (f"pre_aggregation={option}", "aggregator.weighting=uniform")
    with pytest.raises(ConfigError, match=f"but pre_aggregation={option} changes them before"):
        compatibility.refuse(spec.build(config(*words, *CENTRAL)))
    compatibility.refuse(spec.build(config(*words, *LOCAL)))


@pytest.mark.parametrize("words", [("attack=ipm",), ("attack=mimic",), ("attack=min_max",), ("attack=alie",)])
def test_attackers_that_read_others_are_refused_where_each_upload_is_counted_by_itself(words: tuple[str, ...]):
    few = ("scenario.malicious=3", "aggregator.weighting=uniform")
    for private in (CENTRAL, LOCAL):
        with pytest.raises(ConfigError, match=f"but {words[0]} has malicious clients send"):
            compatibility.refuse(spec.build(config(*words, *few, *private)))
    compatibility.refuse(spec.build(config(*words, *few, "privacy=dp_sgd", *CENTRAL[1:])))
    compatibility.refuse(spec.build(config("attack=alie", "attack.knows=own", *few, *LOCAL)))
