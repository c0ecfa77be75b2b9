"""Every option of every group runs two rounds; a new YAML file enrols itself."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networks
import numpy as np
import pandas as pd
import pytest
from own_targets import told

from fedexp.config.location import conf_dir
from fedexp.core import part as spec
from fedexp.maths.curve_metrics import SHARES, main_metric
from fedexp.run.run import run
from fedexp.run.tables import METRICS

CONF = conf_dir()
OPTIONS = sorted(f"{path.parent.name}={path.stem}" for path in CONF.glob("*/*.yaml"))
MADE = ("dataset=synthetic", "dataset.train_size=120", "dataset.test_size=60")
IMAGES = ("dataset.shape=[1,8,8]",)
PUBLIC = ("scenario.public_fraction=0.2",)
SIMULATED = "fleet=simulated"
SPENT = ("privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3")
RATED = ("server_optimizer=momentum",)
CANARIES = ("audit.count=60",)  # six guesses of each kind
NEEDS = {
    **{f"model={name}": words for name, words in networks.SMALLEST.items()},
    "federation=subject": ("dataset.subjects=4",),
    "federation=rotation": IMAGES,
    "setting=five_persons": ("dataset.subjects=6", "dataset.shape=[6,16]"),
    "setting=ten_persons": ("dataset.subjects=11", "dataset.shape=[6,16]"),
    "setting=ten_clients": ("dataset.subjects=11", "dataset.shape=[6,16]"),
    "setting=pooled": ("dataset.shape=[6,16]",),
    "setting=personal_autoencoder": ("dataset.subjects=6",),
    "features=autoencoder": PUBLIC,
    "pretraining=public": PUBLIC,
    "clustering=output_similarity": PUBLIC,
    "aggregator=fltrust": PUBLIC,
    **{f"server_schedule={name}": RATED for name in ("exponential", "step", "cosine", "linear")},
    "stop=simulated_time": (SIMULATED,),
    **{
        f"availability={name}": (SIMULATED, "availability.redraw_s=2")
        for name in ("markov", "day", "lognormal", "sin_lognormal")
    },
    "availability=trace": (SIMULATED,),
    "pacing=buffered": ("scenario.participants=3",),
    "pacing=periodic": ("scenario.participants=3",),
    "pacing=over_selection": (SIMULATED, "scenario.participants=3", "pacing.uploads=2"),
    "selector=fedcs": (SIMULATED,),
    "selector=hybridfl": (SIMULATED, "selector.upload_permission=0.9", "selector.round_s=2"),
    "selector=dyn_hybridfl": (SIMULATED,),
    "attack=backdoor": IMAGES,
    "audit=canaries": CANARIES,
    "augment=crop_flip": IMAGES,
    "augment=transforms": IMAGES,
    "local=fedem": ("model=mixture",),
    "local=feddyn": ("aggregator=feddyn",),
    "aggregator=feddyn": ("local=feddyn",),
    "privacy=dp_sgd": SPENT,
    "privacy=client_local": SPENT,
    "privacy=client_central": (*SPENT, "aggregator.weighting=uniform"),
    "stop=privacy_budget": ("privacy=dp_sgd", *SPENT, "stop.epsilon=1000"),
    "experiment=keras_mnist": (*MADE, *IMAGES),
    "experiment=performance_mnist": MADE,
    "experiment=performance_cifar10": (*MADE, *IMAGES),
    "experiment=resources_mnist": (*MADE, SIMULATED),
    "experiment=resources_cifar10": (*MADE, *IMAGES, SIMULATED),
    "experiment=afl_grid": MADE,
    "experiment=aggregation_thesis": MADE,
    "experiment=dp_audit": (*MADE, *CANARIES, "evaluation.every=1"),
    "algorithm=fedbn": ("model=complex_cnn", *IMAGES),
    "algorithm=dp_sgd": ("local.batch_size=4",),
    "experiment=dp_sgd": (*MADE, "local.batch_size=4"),
    "experiment=dp_sweep": (*MADE, "local.batch_size=4"),
    "experiment=clustered_har": (*MADE, "dataset.shape=[6,16]", "dataset.subjects=6", "evaluation.every=1"),
    "experiment=clustered_synthetic": ("dataset.train_size=240", "dataset.test_size=60", "evaluation.every=1"),
    "experiment=robustness": (*MADE, "evaluation.every=1"),
    "experiment=pacing_mnist": (*MADE, SIMULATED),
    "experiment=pacing_cifar10": (*MADE, "dataset.shape=[1,16,16]", SIMULATED, "evaluation.every_s=null"),
}
TARGETS = {"bce": "labels", "mse": "numbers", "mae": "numbers", "huber": "numbers", "next_token": "tokens"}  # of losses
REAL = {
    "dataset=mnist",
    "dataset=cifar10",
    "dataset=har",
    "dataset=emnist_digits",
    "dataset=npz",
    "dataset=huggingface",
    "dataset=leaf",
    "dataset=table",
    "dataset=torchvision",
    "federation=file",
    "availability=trace",
}
SUMMARY = {
    "loss_auc",
    "roa",
    "toa",
    "rounds",
    "updates",
    "host_s",
    "sim_s",
    "data_sha256",
    "split_sha256",
    "label_skew",
    "size_gini",
    "versions",
    "git",
    "device",
    "instructions",
    "engine",
}


OUTPUTS = Path(__file__).parents[1] / "docs" / "outputs.md"
DESCRIBED = set(re.findall(r"\w+(?:\.\w+)*", OUTPUTS.read_text()))


def scores(table: pd.DataFrame) -> list[str]:
    """The columns of metrics, which have the names of what is measured."""
    return [name for name in table.columns if re.match("(test|validation|personal|site)_", name)]


def complete(folder: Path, rounds: int) -> pd.DataFrame:
    """Checks what every run folder must hold; returns its metrics."""
    table = pd.read_csv(folder / "metrics.csv")
    assert [name for name in table.columns if name in METRICS] == list(METRICS)
    assert table["round"].tolist() == list(range(1, rounds + 1))
    main = main_metric(table.columns)
    assert main not in SHARES or table[f"test_{main}"].between(0, 1).all()
    assert (np.diff(table["host_s"]) > 0).all()
    clients = pd.read_csv(folder / "clients.csv")
    assert list(clients.columns[:5]) == ["round", "client", "examples", "loss_before", "loss_after"]
    assert (clients["client"].to_numpy() >= 0).sum() == table["participants"].to_numpy().sum()
    summary = json.loads((folder / "summary.json").read_text(), parse_constant=pytest.fail)
    assert summary.keys() >= SUMMARY
    assert summary[f"final_{main}"] == table[f"test_{main}"].iloc[-1]
    assert summary.keys() >= {f"best_{main}", f"{main}_auc"}
    measured = {name for name in summary if re.match(r"(final|best)_|\w+_auc$", name)}
    assert {*table.columns, *clients.columns, *summary} - measured - {*METRICS} <= DESCRIBED | set(scores(table))
    assert summary["updates"] == table["participants"].sum()
    assert (folder / "federation.csv").exists()
    assert (folder / "state.pt").exists()
    return table


@pytest.mark.usefixtures("_narrow")
@pytest.mark.parametrize("option", [option for option in OPTIONS if option not in REAL])
def test_two_rounds(tiny: Callable[..., dict[str, Any]], option: str, tmp_path: Path):
    config, loss = tiny(option, *NEEDS.get(option, ())), option.removeprefix("loss=")
    run(told(config, TARGETS[loss], loss) if loss in TARGETS else config, tmp_path)
    table = complete(tmp_path, 2)
    assert table["sim_s"].notna().to_numpy().all() == spec.build(config).has_clock


BASELINES = ("central", "local")  # what a federation is compared with, of no paper
PUBLISHED = [path for path in sorted(CONF.glob("algorithm/*.yaml")) if path.stem not in BASELINES]


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_every_algorithm_names_its_paper(path: Path):
    """What `fedexp list algorithm` shows ends with authors and year; the next line has the paper's number."""
    _, title, paper, *_ = path.read_text().splitlines()
    assert re.fullmatch(r"# .* \([A-Z][\w& .]+ \d{4}\)", title)
    assert re.match(r"# (arXiv \d{4}\.\d{5}|doi 10\.\S+)[:.,;]", paper)


def test_algorithms_have_the_numbers_of_their_papers(tiny: Callable[..., dict[str, Any]]):
    server = {name: tiny(f"algorithm={name}")["server_optimizer"] for name in ("fedavgm", "fedadam", "fedyogi")}
    assert (server["fedavgm"]["beta"], server["fedavgm"]["lr"]) == (0.9, 1.0)
    for name in ("fedadam", "fedyogi"):
        assert [server[name][key] for key in ("beta1", "beta2", "tau")] == [0.9, 0.99, 1e-3]
    assert tiny("algorithm=fedadagrad")["server_optimizer"]["tau"] == 1e-3
    assert tiny("algorithm=fedbn")["local"]["layers"] == "norms"


def test_pictures_are_drawn_unless_they_are_not_wanted(tiny: Callable[..., dict[str, Any]], tmp_path: Path):
    run(tiny("pictures=true"), tmp_path / "drawn")
    run(tiny(), tmp_path / "plain")
    for name in ("curves.png", "federation.png"):
        assert (tmp_path / "drawn" / name).read_bytes().startswith(b"\x89PNG")
        assert not (tmp_path / "plain" / name).exists()


def test_a_setting_inside_an_experiment_decides_its_parts(tiny: Callable[..., dict[str, Any]]):
    words = (*NEEDS["experiment=clustered_har"], "setting=personal_autoencoder")
    config = tiny("experiment=clustered_har", *words)
    targets = {config[name]["_target_"].rpartition(".")[2] for name in ("model", "local", "features", "clustering")}
    assert targets == {"MLP", "PersonalLayer", "Autoencoder", "OutputSimilarity"}


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_rounds_that_nobody_can_take_part_in(tiny: Callable[..., dict[str, Any]], engine: str, tmp_path: Path):
    config = tiny("selector=fedcs", SIMULATED, "selector.round_s=0.001", "stop=simulated_time", f"engine={engine}")
    run(config, tmp_path)
    table = complete(tmp_path, 2)
    assert table["participants"].tolist() == [0, 0]
    assert table["sim_s"].tolist() == [0.001, 0.002]
    assert len(set(table["test_loss"])) == 1


@pytest.mark.parametrize(
    "words", [("mnist", "mlp"), ("cifar10", "simple_cnn"), ("har", "har_cnn", "federation=subject")]
)
def test_two_rounds_on_the_real_files(
    tiny: Callable[..., dict[str, Any]], words: tuple[str, ...], tmp_path: Path, real_data: Path
):
    config = tiny(
        f"dataset={words[0]}",
        f"model={words[1]}",
        *words[2:],
        "scenario.clients=300",
        "local.epochs=null",
        "local.steps=2",
        f"data_dir={real_data}",
    )
    run(config, tmp_path)
    complete(tmp_path, 2)


def test_npz(tiny: Callable[..., dict[str, Any]], tmp_path: Path):
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {f"x_{name}": rng.normal(size=(40, 5)).astype(np.float32) for name in ("train", "test")}
    arrays |= {f"y_{name}": np.arange(40) % 4 for name in ("train", "test")}
    np.savez(tmp_path / "own.npz", **arrays)
    config = tiny("dataset=npz", f"dataset.path={tmp_path / 'own.npz'}")
    run(config, tmp_path / "run")
    complete(tmp_path / "run", 2)


@pytest.mark.parametrize("option", ["federation=file"])
def test_a_file_of_owners(tiny: Callable[..., dict[str, Any]], option: str, tmp_path: Path):
    pd.DataFrame({"hospital": np.arange(120) % 7}).to_csv(tmp_path / "who.csv", index=False)
    run(tiny(option, f"federation.path={tmp_path / 'who.csv'}"), tmp_path / "run")
    complete(tmp_path / "run", 2)
    assert len(pd.read_csv(tmp_path / "run" / "federation.csv")) == 7


def test_every_option_says_what_it_is():
    for option in OPTIONS:
        group, _, name = option.partition("=")
        first = (CONF / group / f"{name}.yaml").read_text().replace("# @package _global_\n", "")
        assert first.startswith("# "), f"{option}: the first comment describes the option"


def test_every_target_is_ours():
    for path in CONF.rglob("*.yaml"):
        for line in path.read_text().splitlines():
            if line.strip().startswith("_target_:"):
                assert spec.find_class(line.partition(":")[2].strip(), path.stem)
