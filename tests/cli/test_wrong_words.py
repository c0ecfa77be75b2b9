"""What was asked wrongly is one line on stderr and exit code 2."""

from pathlib import Path

import pytest
from command_line import complaint, python

from fedexp import cli


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            [],
            "a command must be given: run, plan, resume, search, contest, report, compare, verify, export, predict, "
            "replay, list, new, data, completion; see fedexp --help",
        ),
        (["rnu"], "unknown command rnu; did you mean run? (fedexp --help)"),
        (["seed=3"], "unknown command seed=3; write fedexp run seed=3 ... (fedexp --help)"),
        (["run", "--cfg", "jb"], "--cfg must be one of job, hydra, all, got jb"),
        (["run", "--cfg"], "--cfg must be one of job, hydra, all, got none"),
        (["run", "--package"], "--package must be given, got none"),
        (["run", "--resolve=yes", "--cfg", "job"], "--resolve takes no value, got 'yes'"),
        (["run", "--multi"], "unknown flag --multi; did you mean --multirun?"),
        (["run", "--local-lr", "0.1"], "unknown flag --local-lr; keys are written without dashes: local_lr=0.1"),
        (
            ["verify", "x", "--all", "--rounds", "2"],
            "verify takes --all or --rounds, got --all and --rounds 2; leave one out",
        ),
        (["run", "seed=1", "--jobs", "2"], "unknown flag --jobs; it belongs to resume, search, contest"),
        (["run", "--multrun"], "unknown flag --multrun; did you mean --multirun?"),
        (["run", "--resolve"], "--resolve needs --cfg; write --cfg job too"),
        (["run", "-m", "--cfg", "job"], "only one of --multirun, --cfg and --info can be given"),
        (["run", "--cfg", "job", "-p", "selectr"], "unknown key or group selectr; did you mean selector?"),
        (
            ["run", "hydra.searchpath=[pkg://nowhere]"],
            "hydra.searchpath must name folders or packages that are there, got nowhere; write file:///FOLDER, "
            "pkg://PACKAGE or --config-dir FOLDER",
        ),
        (["run", "--config-dir", "mine"], "--config-dir must be a folder, got mine"),
        (
            ["resume"],
            "resume needs the folder of a run, a sweep, a search or a contest, e.g. fedexp resume outputs/latest",
        ),
        (["resume", "x"], "there is no folder x; go to where the run was started, or give its path"),
        (
            ["resume", ".", "--jobs", "2"],
            "--jobs is for a search or a contest, which . is not; a sweep takes hydra/launcher=joblib",
        ),
        (["resume", ".", "--trials", "2"], "unknown flag --trials; it belongs to search, contest"),
        (["resume", "."], ". is no run folder: it has no config.json; give a folder that fedexp run has made"),
        (["list", "a", "b", "c"], "list shows a group or one of its options, got 3 words: a b c"),
        (["list", "--config-dir", "mine", "selector"], "--config-dir must be a folder, got mine"),
        (
            ["list", "Krum"],
            "Krum is no group, but an option of aggregator and algorithm; its keys: fedexp list aggregator krum or "
            "fedexp list algorithm krum",
        ),
        (
            ["list", "greedyfed"],
            "greedyfed is no group, but an option of selector; its keys: fedexp list selector greedyfed",
        ),
        (["list", "feddf"], "unknown group feddf; feddf is not here, the nearest in kind: local=fedntd"),
        (["list", "qffl"], "unknown group qffl; write algorithm=qfedavg"),
        (
            ["list", "privacy", "dp"],
            "unknown option of privacy dp; write privacy=dp_sgd, client_central or client_local",
        ),
        (
            ["list", "algorithm", "greedyfed"],
            "unknown option of algorithm greedyfed; write selector=greedyfed",
        ),
        (
            ["replay", "FLUTE"],
            "unknown table FLUTE; lr_1000_clients speaks of it; a table of your own is a file NAME.yml",
        ),
        (
            ["replay", "lr_100_clients"],
            "unknown table lr_100_clients; did you mean lr_1000_clients?; a table of your own is a file NAME.yml",
        ),
        (
            ["new", "metric", "f2"],
            "metric cannot be an own part: it is a function f2(probabilities, targets) that returns a number; write it "
            "into my_metrics.py and add 'evaluation.metrics=[accuracy,my_metrics:f2]'",
        ),
        (["list", "model", "mpl"], "unknown option of model mpl; did you mean mlp?"),
        (["run", "fleet.dropout=0.3"], "unknown key fleet.dropout; it belongs to fleet=half_normal or fleet=simulated"),
        (["run", "audit.count=3"], "unknown key audit.count; it belongs to audit=canaries"),
        (["run", "audit=canary"], "unknown option audit=canary; did you mean canaries?"),
        (
            ["run", "experiment=greedyfed"],
            "unknown option experiment=greedyfed; greedyfed belongs to selector; write selector=greedyfed",
        ),
        (
            ["run", "local=krum"],
            "unknown option local=krum; krum belongs to aggregator and algorithm; write aggregator=krum or "
            "algorithm=krum",
        ),
        (["run", "greedyfed"], "cannot read 'greedyfed'; it belongs to selector; write selector=greedyfed"),
        (["run", "nonsense"], "cannot read 'nonsense'; write key=value or group=option"),
        (["run", "model=q-ffl"], "unknown option model=q-ffl; write algorithm=qfedavg"),
        (["run", "algorithm=Q-FFL"], "unknown option algorithm=Q-FFL; write algorithm=qfedavg"),
        (["run", "algorithm=tilted"], "unknown option algorithm=tilted; write algorithm=term"),
        (["run", "algorithm=agnostic_fl"], "unknown option algorithm=agnostic_fl; write algorithm=agnostic"),
        (["run", "availability=SLN"], "unknown option availability=SLN; write availability=sin_lognormal"),
        (["run", "churn=0.1"], "unknown key or group churn; write availability=markov"),
        (["run", "local_lr=0.1"], "unknown key or group local_lr; write local.lr=0.1"),
        (["run", "rounds=2 seed=3"], "cannot read 'rounds=2 seed=3'; write each apart: rounds=2 seed=3"),
        (["run", "mu=0.1"], "unknown key or group mu; write algorithm=fedprox local.mu=0.1"),
        (["run", "--mu", "0.3"], "unknown flag --mu; write algorithm=fedprox local.mu=0.3"),
        (["run", "device=cpu"], "unknown key or group device; write engine.device=cpu"),
        (["run", "method=Q-FFL"], "unknown key or group method; write algorithm=qfedavg"),
        (
            ["run", "strategy=krum"],
            "unknown key or group strategy; krum belongs to aggregator and algorithm; write aggregator=krum or "
            "algorithm=krum",
        ),
        (["run", "method=nonsense"], "unknown key or group method; write algorithm=..."),
        (
            ["run", "pacing=async"],
            "unknown option pacing=async; write algorithm=fedasync or fedbuff, or pacing=buffered, where the server "
            "does not wait for all",
        ),
        (
            ["run", "privacy=gaussian"],
            "unknown option privacy=gaussian; write privacy=client_central, client_local or dp_sgd, whose noise is "
            "Gaussian; attack=gaussian is an attack",
        ),
        (["run", "federation=random"], "unknown option federation=random; write federation=iid"),
        (
            ["run", "algorithm=FedDF"],
            "unknown option algorithm=FedDF; FedDF is not here, the nearest in kind: local=fedntd",
        ),
        (
            ["run", "aggregator=flame"],
            "unknown option aggregator=flame; flame is not here, the nearest in kind: aggregator=norm_clipping or "
            "multi_krum",
        ),
        (
            ["run", "clustering=hierarchical"],
            "unknown option clustering=hierarchical; hierarchical is not here, the nearest in kind: clustering=cfl or "
            "kmeans_updates",
        ),
        (
            ["run", "algorithm=heterofl"],
            "unknown option algorithm=heterofl; heterofl is not here, nor is anything of its kind",
        ),
        (
            ["run", "algorithm=fedxyz"],
            "unknown option algorithm=fedxyz; known: feddyn, fedexp, fedprox, fedyogi, fedasync, fedbn, fedem, fedrs, "
            "... (55 in all)",
        ),
        (["run", "algorithm=fedprx"], "unknown option algorithm=fedprx; did you mean fedprox or fedper?"),
        (["run", "fleet=stragglers"], "unknown option fleet=stragglers; write fleet=simulated fleet.speed_spread=1"),
        (["run", "evaluation.roa=0.9"], "evaluation.roa must be a list (each a number) or null, got 0.9; write [0.9]"),
        (
            ["run", "evaluation.metrics=perplexity"],
            "evaluation.metrics must be a list (each a text) or null, got 'perplexity'; write [perplexity]",
        ),
        (["run", "evaluation.roa=high"], "evaluation.roa must be a list (each a number) or null, got 'high'"),
        (["list", "datset"], "unknown group datset; did you mean dataset?"),
        (["data"], "data needs check or download, and dataset names; e.g. fedexp data check mnist"),
        (["data", "chek"], "data must be followed by check or download, got chek; did you mean check?"),
        (["data", "check", "cifr10"], "unknown dataset cifr10; did you mean cifar10?"),
        (["data", "check", "mnist", "data_dir="], "--data-dir must be a folder, got none"),
        (["completion"], "completion needs a shell: bash, zsh, fish; got none"),
    ],
)
def test_a_wrong_word_is_one_line_and_exit_code_2(words, message, runs, capsys):
    assert cli.main(words) == 2
    assert complaint(capsys) == f"fedexp: {message}"
    assert runs.calls == []
    assert list(Path.cwd().iterdir()) == []


def test_full_error_shows_where_it_came_from(monkeypatch, capsys):
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    assert cli.main(["run", "model=mpl"]) == 2
    text = capsys.readouterr().err
    assert "MissingConfigException" in text
    assert text.endswith("fedexp: unknown option model=mpl; did you mean mlp?\n")


def test_a_mistyped_word_does_not_wait_for_pytorch():
    """Neither in a group, nor in an option, nor in a key, nor in a sweep."""
    words = [["modle=mlp"], ["model=mlpp"], ["local.lrr=1"], ["-m", "seed=0,1", "modle=mlp"]]
    asked = f"import sys; from fedexp.cli import main; [print(main(['run', *words])) for words in {words}]"
    assert python("-c", f"{asked}; print('torch' in sys.modules)").stdout.split() == ["2", "2", "2", "2", "False"]


NAME = "a" * 300


@pytest.mark.parametrize(
    "words",
    [
        ["run", f"hydra.run.dir={NAME}"],
        ["run", f"hydra.run.dir=new/{NAME}/mine"],
        ["run", "-m", "seed=0,1", f"hydra.sweep.dir=new/{NAME}"],
        ["run", f"--config-dir={NAME}"],
        ["run", "dataset=mnist", f"data_dir={NAME}"],
        ["resume", NAME],
        ["report", NAME],
        ["verify", NAME],
        ["replay", f"{NAME}.yml"],
        ["replay", "fedavg_2017_2nn", "--seeds=0", f"--into=new/{NAME}"],
        ["new", "selector", "mine", f"--into={NAME}"],
    ],
)
@pytest.mark.usefixtures("runs")
def test_a_name_that_is_too_long_is_told_and_nothing_is_left(words, capsys):
    assert cli.main(words) == 2
    size = 304 if words[-1].endswith(".yml") else 300
    said = f"fedexp: a name of a file or folder must have at most 255 bytes, but {'a' * 40}... has {size}"
    assert complaint(capsys) == said
    assert list(Path.cwd().iterdir()) == []
