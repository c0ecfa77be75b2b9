"""Composing: every way to ask for what is not there, in one exact line, and what a good config becomes."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from composing import config
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import ConfigCompositionException
from hydra.types import RunMode
from omegaconf import OmegaConf

import fedexp
from fedexp.config import saved_config
from fedexp.config.compose import Request, make_composer, resolve_config
from fedexp.config.hydra_errors import explain_unknown_key
from fedexp.config.location import conf_dir
from fedexp.config.resolvers import register_resolvers
from fedexp.core.errors import ConfigError
from fedexp.run.validate import validate_config
from fedexp.sweep import points as sweep

PACKAGE = Path(fedexp.__file__).parent


@pytest.fixture(autouse=True)
def _no_global_hydra():
    yield
    GlobalHydra.instance().clear()


def composed(*overrides, conf=None, mode=RunMode.RUN):
    request = Request(conf or conf_dir(), list(overrides))
    composer = make_composer(request)
    return composer, composer.compose_config("config", request.overrides, mode)


def refusal(*overrides, conf=None):
    try:
        composer, config = composed(*overrides, conf=conf)
        validate_config(composer, config, overrides)
    except ConfigError as error:
        return str(error)
    return "nothing was refused"


NO_NULL, EACH = "choice takes no null, but a list does", "(in a search each of its values is a method)"
SPECIAL = "close brackets and quotes, and quote a value with special signs"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        # a key
        ("selector.cout=3", "unknown key selector.cout; did you mean selector.count?"),
        ("selectr=random", "unknown key or group selectr; did you mean selector?"),
        ("selectr.count=3", "unknown key selectr.count; did you mean selector.count?"),
        ("sed=1", "unknown key or group sed; did you mean seed?"),
        ("lr=0.3", "unknown key or group lr; did you mean local.lr?"),
        ("batchsize=3", "unknown key or group batchsize; did you mean local.batch_size?"),
        ("rounds.x=3", "unknown key rounds.x; did you mean rounds?"),
        (
            "scenario.qqq=3",
            "unknown key scenario.qqq; known: scenario.byzantine, scenario.clients, scenario.local_epochs, "
            "scenario.local_lr, scenario.malicious, scenario.malicious_hold_data, scenario.participants, "
            "scenario.public_fraction, scenario.training",
        ),
        ("hydra.run.dri=x", "unknown key hydra.run.dri; did you mean hydra.run.dir?"),
        ("scenario.part=3", "unknown key scenario.part; did you mean scenario.participants?"),
        ("+selector.cout=3", "unknown key selector.cout; did you mean count?"),
        ("+sed=3", "unknown key sed; did you mean seed?"),
        ("~sed", "unknown key or group sed; did you mean seed?"),
        ("modl@model=mlp", "unknown key or group modl; did you mean model?"),
        ("model@x=mlp", "unknown key or group model@x; did you mean model?"),
        (
            "optimizer=adam",
            "unknown key or group optimizer; write local=sgd, adam, adamw or rmsprop of the clients, "
            "server_optimizer=... of the server",
        ),
        ("alpha=0.1", "unknown key or group alpha; write federation=dirichlet federation.alpha=0.1"),
        (
            "scenario.participants=0.2",
            "scenario.participants must be an integer >= 1, got 0.2; a share is "
            "selector.fraction=0.1 selector.count=null",
        ),
        # an option
        ("dataset=CIFAR10", "unknown option dataset=CIFAR10; did you mean cifar10?"),
        (
            "dataset=fashion_mnist",
            "unknown option dataset=fashion_mnist; write dataset=torchvision dataset.name=FashionMNIST",
        ),
        ("algorithm=moon", "unknown option algorithm=moon; write local=moon"),
        ("model=mpl", "unknown option model=mpl; did you mean mlp?"),
        ("experiment=smok", "unknown option experiment=smok; did you mean smoke?"),
        ("hydra/launcher=bsic", "unknown option hydra/launcher=bsic; did you mean basic?"),
        ("+model=mlp", "model exists already; write model=mlp without +"),
        ("++model=mlp", "model exists already; write model=mlp without +"),
        ("+seed=3", "seed exists already; write seed=3 without +"),
        ("~selector", "selector must be given; set selector=..."),
        ("~selector=all", "selector=all is not chosen, so ~selector=all has nothing to take away"),
        # a value
        ("rounds=ten", "rounds must be an integer >= 1, got 'ten'"),
        ("rounds=", "rounds must be an integer >= 1, got ''"),
        ("rounds=???", "rounds must be given; set rounds=..."),
        ("seed=1,2", "seed=1,2 gives several values; add -m to run each of them, or write a list as seed=[1,2]"),
        ("model=mlp,keras_cnn", "model=mlp,keras_cnn gives several values; add -m to run each of them"),
        ("seed=range(3)", "seed=range(3) gives several values; add -m to run each of them"),
        ("seed=${sed}", "seed refers to an unknown key or group sed; did you mean seed?"),
        ("seed=${oc.env:NO_SUCH}", "seed: Environment variable 'NO_SUCH' not found"),
        ("data_dir=${nope:}", "data_dir: Unsupported interpolation type nope"),
        ("hydra.mode=X", "hydra.mode: Invalid value 'X', expected one of [RUN, MULTIRUN]"),
        # how it is written
        ("model", "cannot read 'model'; write key=value or group=option"),
        ("=3", "cannot read '=3'; write key=value or group=option"),
        ("model.hidden=[1,2", f"cannot read 'model.hidden=[1,2'; {SPECIAL}: model.hidden='\"...\"'"),
        ("seed==3", f"cannot read 'seed==3'; {SPECIAL}: seed='\"...\"'"),
        ("a b=3", "cannot read 'a b=3'; 'a b' is no key"),
        ("seed=choice(5, null)", f"cannot read 'seed=choice(5, null)'; {NO_NULL}: seed=5,null {EACH}"),
        ("seed=choice('null',5", f"cannot read \"seed=choice('null',5\"; {SPECIAL}: seed='\"...\"'"),
        # a combination
        (
            "stop=simulated_time",
            "stop=simulated_time needs a simulated clock, but the server has none; use fleet=simulated",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(override, message):
    assert refusal(override) == message


@pytest.mark.parametrize(("given", "shown"), [("3", "3"), ("null", "null"), ("[mlp,keras_cnn]", "[mlp,keras_cnn]")])
def test_an_option_must_be_one_name(given, shown):
    assert refusal(f"model={given}").endswith(f"two_conv_dropout, vgg11, got {shown}")


def test_a_reference_to_a_missing_value():
    assert refusal("seed=${rounds}", "rounds=???") == "seed refers to rounds, which must be given; set rounds=..."


def test_the_keys_of_the_chosen_option_are_the_known_ones():
    message = refusal("fleet=simulated", "fleet.bandwith_mbit=3")
    assert message == "unknown key fleet.bandwith_mbit; did you mean fleet.bandwidth_mbit?"


def test_unknown_root_config():
    composer = make_composer(Request(conf_dir(), [], "confg"))
    with pytest.raises(ConfigError, match=r"^unknown root config confg; "):
        composer.compose_config("confg", [], RunMode.RUN)


@pytest.fixture
def conf(tmp_path):
    """A small config folder of its own, to be filled with faults."""
    (tmp_path / "group").mkdir()
    (tmp_path / "group" / "one.yaml").write_text("# One\nsize: 1\n")
    (tmp_path / "config.yaml").write_text("defaults:\n  - _self_\n  - group: one\nseed: 0\n")
    return tmp_path


def test_a_group_that_must_be_chosen(conf):
    (conf / "config.yaml").write_text("defaults:\n  - _self_\n  - group: ???\n")
    assert refusal(conf=conf) == "group must be chosen; set group=... (`fedexp list group` shows the options)"


def test_a_faulty_file_is_named(conf):
    (conf / "group" / "one.yaml").write_text("size: [1\n")
    assert f'"{conf / "group" / "one.yaml"}", line' in refusal(conf=conf)


def test_a_file_that_asks_for_an_unknown_option(conf):
    (conf / "other").mkdir()
    (conf / "other" / "two.yaml").write_text("defaults:\n  - /group/deep: low\n")
    (conf / "config.yaml").write_text("defaults:\n  - _self_\n  - other: two\n")
    assert refusal(conf=conf) == "other/two.yaml: unknown option group/deep=low"


def test_a_conf_folder_of_ones_own(conf):
    _, config = composed("group.size=2", conf=conf)
    assert resolve_config(config) == {"seed": 0, "group": {"size": 2}}


def test_plain_resolves_and_drops_hydra():
    composer, config = composed("scenario.participants=4")
    found = validate_config(composer, config, []).config
    assert found["selector"]["count"] == 4
    assert "hydra" not in found
    assert type(found["model"]["hidden"]) is list


def test_data_root_follows_the_environment(monkeypatch):
    monkeypatch.setenv("FEDEXP_DATA", "/somewhere")
    _, config = composed()
    assert resolve_config(config)["data_dir"] == "/somewhere"
    register_resolvers()


def test_read_config_gives_what_ran(tmp_path):
    _, config = composed("seed=4")
    saved_config.save(tmp_path, config, resolve_config(config))
    assert saved_config.read_config(tmp_path) == resolve_config(config)
    (tmp_path / "config.json").write_text("[")
    with pytest.raises(ConfigError, match="cannot be read"):
        saved_config.read_config(tmp_path)


def test_points_of_a_sweep():
    composer, config = composed("seed=range(2)", "model=mlp,keras_cnn", mode=RunMode.MULTIRUN)
    points = sweep.expand_points(composer, config)
    assert [point.number for point in points] == [0, 1, 2, 3]
    assert str(points[3]) == "point 3 (seed=1 model=keras_cnn): "


def test_a_sweep_kind_that_is_not_supported():
    composer, config = composed("seed=interval(0,1)", mode=RunMode.MULTIRUN)
    with pytest.raises(ConfigError, match=r"^seed must list its values, got seed=interval\(0,1\); write seed=0,1 or "):
        sweep.expand_points(composer, config)


def test_a_very_long_sweep_is_checked_at_its_start(monkeypatch, caplog):
    monkeypatch.setattr(sweep, "CHECKED_AT_MOST", 2)
    seen = []

    def validate(_: object, __: object, point: sweep.Point, ___: object) -> tuple[None, SimpleNamespace]:
        seen.append(point.number)
        return None, SimpleNamespace(config={"seed": point.number})

    monkeypatch.setattr(sweep, "validate_point", validate)
    composer, config = composed("seed=range(5)", mode=RunMode.MULTIRUN)
    with caplog.at_level("INFO"):
        sweep.check_points(composer, config)
    assert seen == [0, 1]
    assert caplog.messages == ["Checked the first 2 of 5 points"]


def test_unknown_key_prefers_siblings_then_the_same_last_word():
    known = ["local", "local.lr", "server_optimizer", "server_optimizer.lr", "seed"]
    assert explain_unknown_key("lr", known) == "unknown key or group lr; did you mean local.lr or server_optimizer.lr?"
    assert explain_unknown_key("zzz", known) == "unknown key or group zzz; known: local, seed, server_optimizer"


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        (
            "federation.alhpa",
            r"did you mean federation\.alpha of federation=dirichlet( or federation=\w+)*\?",
        ),
        ("pacing.periods", r"did you mean pacing\.period_s of pacing=periodic\?"),
        (
            "fedaration.alpha",
            r"did you mean federation\.alpha of federation=dirichlet( or federation=\w+)*\?",
        ),
        ("pacing.zzz", r"known: pacing\.buffer, pacing\.clients, .*pacing\.uploads"),
    ],
)
def test_unknown_key_of_another_option(key: str, hint: str):
    message = explain_unknown_key(key, ["federation", "federation.clients", "pacing", "seed"])
    assert re.fullmatch(rf"unknown key {key}; {hint}", message), message


def test_the_short_way_of_the_tests_composes_what_the_command_composes():
    words = ("experiment=smoke", "selector=greedyfed", "rounds=7", "local.lr=0.3", "evaluation.roa=[0.5]")
    short = config(*words)
    assert config("scenario.participants=4")["selector"]["count"] == 4
    assert config()["selector"]["count"] != 4, "what was composed once is not written to"
    with pytest.raises(ConfigCompositionException, match=r"Could not override 'local\.rl'"):
        config("local.rl=3")
    assert short == resolve_config(composed(*words)[1])


def test_every_dataset_of_real_files_composes():
    """Every other option runs in test_every_option."""
    for option in ("mnist", "cifar10", "har", "emnist_digits", "npz"):
        assert (
            resolve_config(composed(f"dataset={option}")[1])["_target_"]
            == "fedexp.simulation.setup.experiment.Experiment"
        )


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((100, 20, 20), 8),
        ((100, 20, 8), 4),
        ((10, 10, 3), 3),
        ((10, 3, 0), 0),
        ((10, 30, 20), 10),
        ((100, 20, "x"), "x"),
    ],
)
def test_what_99_of_100_rounds_bring_at_most(counts, expected):
    register_resolvers()
    names = ("clients", "participants", "malicious")
    config = OmegaConf.create(
        {**dict(zip(names, counts, strict=True)), "f": "${likely_malicious:${clients},${participants},${malicious}}"}
    )
    assert config.f == expected


@pytest.mark.parametrize(
    ("pacing", "expected"),
    [({"buffer": 20}, 8), ({"uploads": 6}, 4), ({"uploads": 50}, 5), ({"period_s": 5}, 5), ({"buffer": "x"}, 5)],
)
def test_of_a_step_that_takes_others_than_its_participants_the_uploads_count(pacing: dict[str, Any], expected: int):
    """Of 100 clients 20 are malicious: of 20 that are drawn 8 at most, of 10 that are asked 5, of 6 of these 4."""
    register_resolvers()
    config = OmegaConf.create({"pacing": pacing, "scenario": {"f": "${likely_malicious:100,10,20}"}})
    assert config.scenario.f == expected


@pytest.mark.parametrize(
    ("clients", "unseen", "hold", "expected"),
    [
        (20, 0.0, True, 1),  # both of two malicious clients are the two of 20 in one round of 190
        (20, 0.3, True, 2),  # of 14 that train, in one of 91
        (20, 0.3, False, 1),  # of 18 honest ones 5 never train: both of 15 are drawn in one round of 105
        (20, "x", True, 1),  # refused where it was given
    ],
)
def test_who_never_trains_is_not_drawn(clients: int, unseen: Any, hold: bool, expected: int):
    register_resolvers()
    scenario = {"clients": clients, "malicious_hold_data": hold, "f": f"${{likely_malicious:{clients},2,2}}"}
    config = OmegaConf.create({"scenario": scenario, "evaluation": {"unseen_fraction": unseen}})
    assert config.scenario.f == expected


def test_options_of_ones_own_are_there_only_for_the_command_that_names_them(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text("# Mine\n")
    assert "mine" in make_composer(Request(conf_dir(), [], config_dir=tmp_path)).options("model")
    assert "mine" not in make_composer(Request(conf_dir(), [])).options("model")


def test_hydras_internals_are_imported_where_the_line_says_why():
    lines = [line for path in PACKAGE.rglob("*.py") for line in path.read_text().splitlines()]
    found = [line for line in lines if line.lstrip().startswith(("import hydra._internal", "from hydra._internal"))]
    assert [line.partition("  # ")[0] for line in found] == ["from hydra._internal.callbacks import Callbacks"]
    assert all(line.partition("  # ")[2] for line in found)
