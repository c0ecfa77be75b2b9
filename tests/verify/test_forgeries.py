"""Folders that somebody altered so that a reader is told something else; what else was altered was made to fit.

So are the hash chains in digests.csv.
"""

import json
import shutil
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from fedexp.cli import main
from fedexp.config import saved_config
from fedexp.core.values import Layout, Weights
from fedexp.files.run_tables import Line, read_lines
from fedexp.run import digests
from fedexp.run.tables import TABLES

SMALL = (
    *("dataset=synthetic", "dataset.train_size=120", "dataset.test_size=60", "dataset.classes=3", "dataset.shape=[4]"),
    *("scenario.clients=6", "scenario.participants=3", "engine=loop", "engine.workers=1", "pictures=false"),
)
RUNS = {
    "run": ("rounds=6", "evaluation.every=2", "keep_states=2", "selector=ucb", "evaluation.roa=[0.3,0.9]"),
    "clustered": ("rounds=3", "clustering=ifca", "evaluation.personal_fraction=0.2", "fleet=simulated"),
    "stopped": (
        *("rounds=4", "stop=simulated_time", "stop.minutes=1000", "fleet=simulated"),
        "evaluation.every_s=1",  # after rounds 2, 3 and 4
    ),
    "private": ("rounds=3", "privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3"),
    "confused": ("rounds=2", "evaluation.metrics=[accuracy,auroc,confusion_matrix]"),
    "away": ("rounds=4", "fleet=simulated", "availability=markov", "availability.redraw_s=2"),
}
Forge = Callable[[Path], Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of honest runs and of a sweep."""
    place = tmp_path_factory.mktemp("honest")
    for name, words in RUNS.items():
        assert main(["run", *SMALL, *words, f"hydra.run.dir={place / name}"]) == 0
    assert main(["run", *SMALL, "seed=1", *RUNS["run"], f"hydra.run.dir={place / 'other'}"]) == 0
    swept = ("-m", "rounds=2", "local.lr=0.01,0.3", "seed=0,1", "evaluation.rank_on=test")
    assert main(["run", *SMALL, *swept, f"hydra.sweep.dir={place / 'sweep'}"]) == 0
    return place


@pytest.fixture
def place(made: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copies that a test may alter, seen from the folder that holds them."""
    for name in {request.node.callspec.params.get("name", "sweep"), "other"}:
        shutil.copytree(made / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return Path()


def lines(name: str, change: Callable[[list[list[str]]], Iterable[list[str]]]) -> Forge:
    """Changes the lines of a table, the header with them."""

    def forge(run: Path) -> None:
        path = run / name
        cells = [line.split(",") for line in path.read_text().splitlines()]
        path.write_text("".join(",".join(line) + "\n" for line in change(cells)))

    return forge


def cell(name: str, row: int, column: str, value: str | Callable[[str], str]) -> Forge:
    """Changes a cell of the line with this number, from 1."""

    def change(cells: list[list[str]]) -> list[list[str]]:
        at = cells[0].index(column)
        cells[row][at] = value if isinstance(value, str) else value(cells[row][at])
        return cells

    return lines(name, change)


def column(name: str, title: str, value: str) -> Forge:
    return lines(name, lambda cells: [[*line, title if not number else value] for number, line in enumerate(cells)])


def without(name: str, title: str) -> Forge:
    def change(cells: list[list[str]]) -> list[list[str]]:
        at = cells[0].index(title)
        return [[*line[:at], *line[at + 1 :]] for line in cells]

    return lines(name, change)


def summary(**values: Any) -> Forge:
    def forge(run: Path) -> None:
        told = json.loads((run / "summary.json").read_text())
        for key, value in values.items():
            *path, last = key.split("__")
            node = told
            for step in path:
                node = node[step]
            node[last] = value
            if value is ...:
                del node[last]
        (run / "summary.json").write_text(json.dumps(told))

    return forge


def states(change: Callable[[dict[str, Any]], Any], pattern: str = "**/*.pt") -> Forge:
    def forge(run: Path) -> None:
        paths = sorted(run.glob(pattern))
        assert paths
        for path in paths:
            content = torch.load(path, weights_only=True)
            change(content)
            torch.save(content, path)

    return forge


def state(change: Callable[[dict[str, Any]], Any]) -> Forge:
    return states(change, "state.pt")


def replaced(name: str, before: str, after: str) -> Forge:
    def forge(run: Path) -> None:
        path = run / name
        assert before in path.read_text()
        path.write_text(path.read_text().replace(before, after))

    return forge


def saved(change: Callable[[dict[str, Any]], Any]) -> Forge:
    """Changes config.json, and what lies in `.hydra/` so that it agrees."""

    def forge(run: Path) -> None:
        path, hydra = run / "config.json", run / ".hydra" / "hydra.yaml"
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))
        noted = yaml.safe_load(hydra.read_text())
        noted["hydra"]["runtime"]["choices"] = content["choices"]
        for name, node in (
            ("hydra", noted),
            ("config", saved_config.read(run).raw_config),
            ("overrides", content["overrides"]),
        ):
            (run / ".hydra" / f"{name}.yaml").write_text(yaml.safe_dump(node))

    return forge


def choice(group: str, option: str) -> Forge:
    return saved(lambda content: content["choices"].update({group: option}))


def words(change: Callable[[list[str]], list[str]]) -> Forge:
    return saved(lambda content: content.update(overrides=change(content["overrides"])))


def local_rate(content: dict[str, Any]) -> None:
    content["config"]["scenario"]["local_lr"] = content["config"]["local"]["lr"] = 0.2


def together(*forges: Forge) -> Forge:
    def forge(run: Path) -> None:
        for each in forges:
            each(run)

    return forge


def gone(name: str) -> Forge:
    return lambda run: (run / name).unlink()


def written(name: str, text: str) -> Forge:
    return lambda run: (run / name).write_text(text)


def rechain(run: Path) -> None:
    """Makes every link in digests.csv fit the tables, as whoever knows how would."""
    lines = [*read_lines(run / digests.NAME, digests.COLUMNS)]
    names = [name for name in TABLES if lines and name in lines[0]]
    chains = digests.make_chains(lines, {name: read_lines(run / name, TABLES[name]) for name in names})
    previous: Line = {}
    for line in lines:
        for name in names:
            content = chains.contents[name].get(int(line["round"]), digests._content(()))
            line[name] = digests._link(previous.get(name, ""), line["digest"], content)
        previous = line
    if lines:
        text = "".join(",".join(cells) + "\n" for cells in ([*lines[0]], *(line.values() for line in lines)))
        (run / digests.NAME).write_text(text)


def of_other(*names: str) -> Forge:
    """Files of a run with another seed."""
    return lambda run: [shutil.copy(run.parent / "other" / name, run / name) for name in names]


def forged_last_model(run: Path) -> None:
    """Another last model, with its digest in the table."""
    states(lambda content: content["models"][0][0].mul_(1.5), "state.pt")(run)
    shutil.copy(run / "state.pt", run / "states" / "000006.pt")
    content = torch.load(run / "state.pt", weights_only=True)
    flat, told = content["models"][0]
    layout = Layout(tuple(told["names"]), tuple(map(tuple, told["shapes"])), told["trainable"])
    cell("digests.csv", 6, "digest", digests.digest([Weights(flat, layout)]))(run)


def forged_from_round_4(run: Path) -> None:
    """All that tells of rounds 4 to 6 is that of another seed, but for the config in the states."""
    own = torch.load(run / "state.pt", weights_only=True)["config"]
    for name in ("state.pt", "state.previous.pt", "states/000004.pt", "states/000006.pt"):
        of_other(name)(run)
        states(lambda content: content.update(config=own), name)(run)
    for name in ("metrics.csv", "clients.csv", "digests.csv"):
        theirs = [line.split(",") for line in (run.parent / "other" / name).read_text().splitlines()[1:]]
        late = [line for line in theirs if int(line[0]) > 3]
        lines(name, lambda cells, late=late: [*[c for c in cells if not c[0].isdecimal() or int(c[0]) < 4], *late])(run)


def stop_reason(content: dict[str, Any]) -> None:
    content["memory"]["stop"]["reason"] = "validation loss has converged"


def ended_early(run: Path) -> None:
    """Two rounds of four, as if a rule had stopped the run."""
    for name in ("metrics.csv", "clients.csv", "digests.csv"):
        lines(name, lambda cells: [one for one in cells if not one[0].isdecimal() or int(one[0]) < 3])(run)
    for path in run.glob("state*.pt"):
        path.unlink()
    summary(rounds=2, updates=6, stopped="the clock")(run)


def another_torch(run: Path) -> None:
    """All say another PyTorch, and an accuracy is a little better."""
    states(lambda content: content["surroundings"].update(torch="9.9"))(run)
    summary(versions__torch="9.9")(run)
    cell("metrics.csv", 2, "test_accuracy", lambda text: repr(float(text) + 0.005))(run)
    told = [line.split(",") for line in (run / "metrics.csv").read_text().splitlines()]
    at = told[0].index("test_accuracy")
    values = [float(line[at]) for line in told[1:] if line[at]]
    area = sum(a + b for a, b in pairwise(values))
    summary(best_accuracy=max(values), accuracy_auc=area)(run)


LATE = (cell("metrics.csv", 6, "test_accuracy", "0.99"), summary(final_accuracy=0.99, best_accuracy=0.99))
GREEDY = "fedexp.parts.selector.greedyfed.GreedyFed"
FORGERIES: dict[str, tuple[str, Forge, str]] = {
    # names
    "hydra.yaml: a selector": (
        "run",
        replaced(".hydra/hydra.yaml", "selector: ucb", "selector: greedyfed"),
        "hydra.yaml has selector=greedyfed, but config.json has ucb",
    ),
    "choices: a selector": ("run", choice("selector", "greedyfed"), "says selector=greedyfed among its choices, but"),
    "choices: an aggregator": ("run", choice("aggregator", "krum"), "says aggregator=krum among its choices, but"),
    "choices: a dataset": ("run", choice("dataset", "cifar10"), "says dataset=cifar10 among its choices, but"),
    "overrides.yaml: a word": (
        "run",
        replaced(".hydra/overrides.yaml", "- rounds=6", "- rounds=600"),
        "overrides.yaml must hold the overrides of config.json, but has other words",
    ),
    "overrides: a selector": (
        "run",
        words(lambda typed: [*typed, "selector=greedyfed"]),
        "config.json says selector=greedyfed among its overrides, but its config has ucb",
    ),
    "overrides: a value": ("run", words(lambda typed: [*typed, "local.lr=9"]), "says local.lr=9 among its overrides"),
    "overrides: rounds": ("run", words(lambda typed: [*typed, "rounds=900"]), "says rounds=900 among its overrides"),
    "overrides: a mark": ("run", words(lambda typed: [*typed, "+certified=true"]), "says certified=True among its"),
    "overrides: nonsense": ("run", words(lambda typed: ["a b c=,"]), "config.json are no words of a run"),
    "overrides.yaml is gone": ("run", gone(".hydra/overrides.yaml"), ".hydra/overrides.yaml is missing"),
    "hydra.yaml is gone": ("run", gone(".hydra/hydra.yaml"), ".hydra/hydra.yaml is missing"),
    "config.yaml: a rate": (
        "run",
        replaced(".hydra/config.yaml", "local_lr: 0.1", "local_lr: 0.2"),
        "config.yaml has scenario.local_lr=0.2, but config.json has 0.1",
    ),
    "config: a selector": (
        "run",
        saved(lambda content: content["config"]["selector"].update(_target_=GREEDY)),
        "belongs to another config",
    ),
    "config: a rate": ("run", saved(local_rate), "belongs to another config"),
    "config and states: a rate": ("run", together(saved(local_rate), states(local_rate)), "round 1 differs: "),
    "config and states: a seed": (
        "run",
        together(*(change(lambda content: content["config"].update(seed=3)) for change in (saved, states))),
        "round 1 differs: ",
    ),
    # metrics.csv
    "metrics.csv: the last accuracy": ("run", together(*LATE), "test_accuracy is 0.99 in metrics.csv, but the models"),
    "metrics.csv: an accuracy": ("run", cell("metrics.csv", 2, "test_accuracy", "0.99"), "round 2 differs: test_acc"),
    "metrics.csv: where nobody looked": ("run", cell("metrics.csv", 3, "test_accuracy", "0.99"), "round 3 differs: "),
    "metrics.csv: a loss": ("run", cell("metrics.csv", 4, "test_loss", "0.01"), "round 4 differs: test_loss is 0.01"),
    "metrics.csv: emptied": ("run", cell("metrics.csv", 4, "test_accuracy", ""), "round 4 differs: test_accuracy is"),
    "metrics.csv: megabytes": ("run", cell("metrics.csv", 5, "mb_up", "0.0"), "round 5 differs: mb_up is 0.0"),
    "metrics.csv: a column": ("run", column("metrics.csv", "personal_accuracy", "0.99"), "a column personal_accuracy"),
    "metrics.csv: an empty column": ("run", column("metrics.csv", "certified", ""), "has a column certified, which no"),
    "metrics.csv: no column": ("run", without("metrics.csv", "aggregator.dropped"), "no column aggregator.dropped"),
    "metrics.csv: simulated seconds": ("clustered", cell("metrics.csv", 2, "sim_s", "0.5"), "round 2 differs: sim_s"),
    "metrics.csv: epsilon": ("private", cell("metrics.csv", 2, "privacy.epsilon_rdp", "0.1"), "round 2 differs: "),
    "metrics.csv: no epsilon": ("private", without("metrics.csv", "privacy.epsilon_rdp"), "metrics.csv has no column"),
    "metrics.csv: of another seed": ("run", of_other("metrics.csv"), "round 1 differs: "),
    "metrics.csv: gone": ("run", gone("metrics.csv"), "has no finished round in metrics.csv"),
    # clients.csv, digests.csv
    "clients.csv: another client": ("run", cell("clients.csv", 8, "client", "0"), "round 3 differs: "),
    "clients.csv: a loss": ("run", cell("clients.csv", 5, "loss_before", "0.1"), "round 2 differs: loss_before of"),
    "clients.csv: a column": ("run", column("clients.csv", "contribution", "0.9"), "has a column contribution, which"),
    "clients.csv: spent": ("private", cell("clients.csv", 4, "epsilon_rdp", "0.1"), "epsilon_rdp of client "),
    "clients.csv: no spending": ("private", without("clients.csv", "epsilon_rdp"), "has no column epsilon_rdp"),
    "clients.csv: of another seed": ("run", of_other("clients.csv"), "differs: "),
    "clients.csv: gone": ("run", gone("clients.csv"), "round 1 differs: 0 lines in clients.csv, 3 now"),
    "digests.csv: a digest": ("run", cell("digests.csv", 3, "digest", "0" * 32), "the models' digest is 000"),
    "digests.csv: of another seed": ("run", of_other("digests.csv"), "round 1 differs: "),
    "digests.csv: a column": ("run", column("digests.csv", "signed", "yes"), "digests.csv has a column signed"),
    "digests.csv: gone": ("run", gone("digests.csv"), "digests.csv is missing"),
    # federation.csv, clusters.csv, client_scores.csv
    "federation.csv: a count": ("run", cell("federation.csv", 1, "examples", "99"), "is not the federation that the"),
    "federation.csv: gone": ("run", gone("federation.csv"), "federation.csv is missing"),
    "clusters.csv: a cluster": (
        "clustered",
        cell("clusters.csv", 1, "cluster", lambda text: str(1 - int(text or 0))),
        "round 1 differs: cluster of client ",
    ),
    "clusters.csv: another client": (
        "clustered",
        cell("clusters.csv", 3, "client", lambda text: str((int(text) + 1) % 6)),
        "in clusters.csv",
    ),
    "clusters.csv: a model for a cluster": (
        "clustered",
        cell("clusters.csv", 1, "event", lambda text: "join" if text == "model" else "model"),
        "round 1 differs: event of client ",
    ),
    "clusters.csv: a distance": ("clustered", cell("clusters.csv", 2, "distance", "0.5"), "distance of client "),
    "clusters.csv: a line more": ("clustered", lines("clusters.csv", lambda cells: [*cells, cells[-1]]), "lines in"),
    "clusters.csv: lines change places": (
        "clustered",
        lines("clusters.csv", lambda cells: [cells[0], cells[2], cells[1], *cells[3:]]),
        "round 1 differs: ",
    ),
    "clusters.csv: a column": ("clustered", column("clusters.csv", "fair", "1"), "clusters.csv has a column fair"),
    "clusters.csv: no line": ("clustered", lines("clusters.csv", lambda cells: cells[:-1]), "lines in clusters.csv"),
    "clusters.csv: gone": ("clustered", gone("clusters.csv"), "clusters.csv is missing"),
    "clusters.csv: of no clusters": (
        "run",
        written("clusters.csv", "round,event,client,cluster,distance\n1,join,0,1,\n"),
        "clusters.csv is there, but no such run writes it",
    ),
    "confusion_matrix.csv: a count": (
        "confused",
        cell("confusion_matrix.csv", 1, "0", "100"),
        "confusion_matrix.csv: 0 is 100 in confusion_matrix.csv",
    ),
    "confusion_matrix.csv: gone": ("confused", gone("confusion_matrix.csv"), "0 lines in confusion_matrix.csv"),
    "confusion_matrix.csv: of no measurement": (
        "run",
        written("confusion_matrix.csv", "true class,0,1,2\n0,60,0,0\n1,0,0,0\n2,0,0,0\n"),
        "confusion_matrix.csv is there, but no such run writes it",
    ),
    "presence.csv: never away": ("away", cell("presence.csv", 1, "present", "2"), "present of client 0 is 2 in"),
    "presence.csv: a moment": ("away", cell("presence.csv", 1, "to_s", "0.001"), "to_s of client 0 is 0.001 in"),
    "presence.csv: a line left out": ("away", lines("presence.csv", lambda cells: cells[:-1]), "lines in presence.csv"),
    "presence.csv: a column": ("away", column("presence.csv", "fair", "1"), "presence.csv has a column fair"),
    "presence.csv: of clients that stay": (
        "run",
        written("presence.csv", "client,from_s,to_s,present\n0,0.0,9.0,0\n"),
        "presence.csv is there, but no such run writes it",
    ),
    "metrics.csv: a look at the test data left out": (
        "stopped",
        cell("metrics.csv", 2, "test_accuracy", ""),
        "test_accuracy is empty in metrics.csv",
    ),
    "metrics.csv: an auroc": ("confused", cell("metrics.csv", 2, "test_auroc", "0.999"), "test_auroc is 0.999"),
    "client_scores.csv: an accuracy": (
        "clustered",
        cell("client_scores.csv", 1, "personal", "1.0001"),
        "personal of client 0 is 1.0001 in client_scores.csv",
    ),
    "client_scores.csv: a client left out": (
        "clustered",
        lines("client_scores.csv", lambda cells: cells[:-1]),
        "client_scores.csv: 5 lines",
    ),
    "client_scores.csv: a column": (
        "clustered",
        column("client_scores.csv", "fair", "1"),
        "client_scores.csv has a column fair",
    ),
    "client_scores.csv: gone": ("clustered", gone("client_scores.csv"), "0 lines in client_scores.csv"),
    "client_scores.csv: of no measurement": (
        "run",
        written("client_scores.csv", "client,examples,global,personal\n0,9,0.9,1.0\n"),
        "client_scores.csv is there, but no such run writes it",
    ),
    # summary.json
    "summary.json: a mark": ("run", summary(certified=True), "says certified, which no such run writes"),
    "summary.json: an accuracy": ("run", summary(personal_accuracy=0.99), "says personal_accuracy, which no such run"),
    "summary.json: inside versions": ("run", summary(versions__audited="yes"), "says versions.audited, which no such"),
    "summary.json: inside git": ("run", summary(git={"commit": "0" * 40, "signed": True}), "says git.signed, which no"),
    "summary.json: the end": ("run", summary(final_accuracy=0.99), "says final_accuracy 0.99, but it comes to"),
    "summary.json: the area": ("run", summary(accuracy_auc=4.9), "says accuracy_auc 4.9, but it comes to"),
    "summary.json: never reached": ("run", summary(roa={"0.3": 1, "0.9": 2}), "says roa.0.3 1, but it comes to 2"),
    "summary.json: a thing left out": ("run", summary(label_skew=...), "does not say label_skew, which comes to"),
    "summary.json: other data": ("run", summary(data_sha256="0" * 64), "says data_sha256"),
    "summary.json: no data": ("run", summary(data_sha256=...), "does not say data_sha256"),
    "summary.json: stopped": ("stopped", summary(stopped="converged"), 'stopped "converged", but it comes to null'),
    "summary.json: privacy": ("run", summary(privacy={"epsilon_rdp": 0.1, "promise": "(0.1, 0)-DP"}), "says privacy "),
    "summary.json: less epsilon": ("private", summary(privacy__epsilon_rdp=0.1), "says privacy.epsilon_rdp 0.1, but"),
    "summary.json: no promise": ("private", summary(privacy=...), "does not say privacy"),
    "summary.json: an audit": ("run", summary(audit={"statement": "it holds"}), "says audit "),
    "summary.json: of another seed": ("run", of_other("summary.json"), "summary.json says "),
    # states
    "a stop reason of no rule": (
        "run",
        together(state(stop_reason), summary(stopped="validation loss has converged")),
        "says stopped",
    ),
    "a stop reason in the state alone": ("run", state(stop_reason), "stop.reason in the memory of state.pt is"),
    "a stop of a rule that says no": (
        "stopped",
        together(state(stop_reason), summary(stopped="validation loss has converged")),
        "says stopped",
    ),
    "an early end that no rule made": ("stopped", ended_early, "round 3 differs: metrics.csv ends before it"),
    "a selector's memory": (
        "run",
        state(lambda content: content["memory"]["selector"].update(favourite=3)),
        "selector.favourite in the memory of state.pt is not what it is now",
    ),
    "a selector's values": (
        "run",
        state(lambda content: next(t for t in content["memory"]["selector"].values() if torch.is_tensor(t)).add_(1)),
        "in the memory of state.pt is not what it is now",
    ),
    "a memory of nobody": (
        "run",
        state(lambda content: content["memory"].update(judge={"verdict": "good"})),
        "judge.verdict in the memory of state.pt is not what it is now",
    ),
    "an accountant's ledger": (
        "private",
        state(lambda content: content["memory"].update(privacy={})),
        "in the memory of state.pt is not what it is now",
    ),
    "the model": ("run", state(lambda content: content["models"][0][0].mul_(2)), "the models in state.pt have the"),
    "the model and its digest": ("run", forged_last_model, "but the models in states/000006.pt score"),
    "a model in states": (
        "run",
        states(lambda content: content["models"][0][0].mul_(2), "states/000004.pt"),
        "the models in states/000004.pt have the digest",
    ),
    "a state of another seed": ("run", of_other("state.pt"), "belongs to another config"),
    "the second half of another seed": ("run", forged_from_round_4, "round 4 differs: "),
    "no state": ("run", gone("state.pt"), "state.pt is missing"),
    "a damaged state": ("run", written("state.pt", "nothing"), "state.pt is damaged"),
    "simulated seconds in the state": ("clustered", state(lambda content: content.update(sim_s=1.0)), "sim_s is 1.0"),
    # versions
    "another PyTorch, a little better": ("run", another_torch, "is as it was written within rounding, not bit by bit"),
    "another PyTorch in the states": (
        "run",
        states(lambda content: content["surroundings"].update(torch="9.9")),
        "within rounding, not bit by bit",
    ),
    "another PyTorch in the summary": ("run", summary(versions__torch="9.9"), "within rounding, not bit by bit"),
    "another device": ("run", summary(device="NVIDIA H200"), "within rounding, not bit by bit"),
}  # fmt: skip
SWEEPS: dict[str, tuple[Forge, str]] = {
    "sweep.csv: a mean": (cell("sweep.csv", 1, "final test accuracy", "0.99"), "sweep.csv is not the table"),
    "sweep.csv: the ranks": (cell("sweep.csv", 2, "rank", "1"), "sweep.csv is not the table that the points come to"),
    "sweep.csv: a line left out": (lines("sweep.csv", lambda cells: cells[:-1]), "sweep.csv is not the table"),
    "sweep.csv: a column": (column("sweep.csv", "certified", "yes"), "sweep.csv is not the table"),
    "sweep.csv: gone": (gone("sweep.csv"), "sweep.csv is missing"),
    "a point's metrics": (
        lambda at: cell("metrics.csv", 2, "test_accuracy", "0.9")(at / "1"),
        "sweep/1: round 2 differs",
    ),
    "a point's words": (
        lambda at: words(lambda typed: [word.replace("0.01", "0.3") for word in typed])(at / "0"),
        "config.json says local.lr=0.3 among its overrides, but its config has 0.01",
    ),
    "a point is gone": (lambda at: shutil.rmtree(at / "3"), "sweep/3 is missing, the point "),
    "points changed places": (
        lambda at: [(at / a).rename(at / b) for a, b in (("0", "x"), ("2", "0"), ("x", "2"))],
        "sweep/0 must be the point ",
    ),
    "a point twice": (lambda at: shutil.copytree(at / "3", at / "4"), "sweep/4 is no point of the sweep"),
}


def told_of(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["verify", *words])
    said = capsys.readouterr()
    assert said.err.count("\n") == (code != 0)
    assert "Traceback" not in said.err
    return code, said.out + said.err


@pytest.mark.parametrize("name", [*RUNS, "sweep"])
@pytest.mark.usefixtures("place")
def test_the_honest_ones_pass(name: str, capsys: pytest.CaptureFixture[str]):
    assert told_of([name], capsys)[0] == 0, capsys.readouterr()


@pytest.mark.parametrize(("name", "forge", "what"), FORGERIES.values(), ids=FORGERIES)
def test_no_forgery_passes(place: Path, name: str, forge: Forge, what: str, capsys: pytest.CaptureFixture[str]):
    forge(place / name)
    rechain(place / name)
    code, told = told_of([name], capsys)
    assert what in told
    assert code == 3 if "bit by bit" in what else code in (1, 2)


@pytest.mark.parametrize(
    ("name", "table"),
    [
        *(("clustered", table) for table in ("metrics", "clients", "clusters", "digests", "client_scores")),
        *(("confused", "confusion_matrix"), ("away", "presence")),
    ],
)
def test_text_behind_the_last_line_break_is_seen(
    place: Path, name: str, table: str, capsys: pytest.CaptureFixture[str]
):
    with (place / name / f"{table}.csv").open("a") as file:
        file.write("4,1.2,0.9999")
    code, told = told_of([name, "--all"], capsys)
    assert code == 1
    assert f"{table}.csv has text behind its last line break, which no such run writes: '4,1.2,0.9999'" in told


@pytest.mark.parametrize("name", ["run"])
def test_the_line_that_a_killed_run_was_writing_is_none(place: Path, name: str, capsys: pytest.CaptureFixture[str]):
    (place / name / "summary.json").unlink()
    with (place / name / "metrics.csv").open("a") as file:
        file.write("7,1.2,0.9")
    assert told_of([name], capsys)[0] == 0


@pytest.mark.parametrize(("table", "column"), [("metrics", "mb_up"), ("clients", "loss_after"), ("clusters", "client")])
@pytest.mark.parametrize("name", ["clustered"])
def test_a_line_that_does_not_fit_its_chain_needs_no_rounds(
    place: Path, name: str, table: str, column: str, capsys: pytest.CaptureFixture[str]
):
    def change(cells: list[list[str]]) -> list[list[str]]:
        at = cells[0].index(column)
        line = next(line for line in cells if line[0] == "2")
        line[at] = "5" if line[at] != "5" else "4"
        return cells

    lines(f"{table}.csv", change)(place / name)
    code, told = told_of([name, "--rounds", "1"], capsys)
    assert code == 1
    assert f"fedexp: round 2 differs: {table}.csv is not what digests.csv says\n" in told


@pytest.mark.parametrize(("forge", "what"), SWEEPS.values(), ids=SWEEPS)
def test_no_forgery_of_a_sweep_passes(place: Path, forge: Forge, what: str, capsys: pytest.CaptureFixture[str]):
    forge(place / "sweep")
    code, told = told_of(["sweep"], capsys)
    assert code == 1
    assert what in told


@pytest.mark.parametrize("name", ["run", "sweep"])
def test_what_nothing_looks_into_is_said(place: Path, name: str, capsys: pytest.CaptureFixture[str]):
    others = ("certificate.txt", "curves.png", "fedexp.log", "report.html")
    for other in others:
        (place / name / other).write_text("an accuracy of 0.99")
    code, told = told_of([name, "--rounds", "1"], capsys)
    assert code == 0
    assert ", ".join(others) in told.rpartition("not checked: ")[2]
