"""A stranger's run folder: nothing in it leads elsewhere, is waited for, or runs."""

import json
import os
import shutil
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hostile import KINDS, refusal, replaced
from hydra.types import RunMode
from run_folders import change_config

from fedexp import cli
from fedexp.config.compose import Request, make_composer
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError
from fedexp.report.read import runs
from fedexp.run import folders
from fedexp.run.isolation import isolate_process

SCRATCH = tempfile.TemporaryDirectory()
KEPT = (
    "dataset=synthetic",
    "dataset.train_size=120",
    "dataset.test_size=60",
    "engine.workers=1",
    "pictures=false",
    "selector=greedyfed",
)
FILES = (
    *("state.pt", "state.previous.pt", "metrics.csv", "clients.csv", "clusters.csv", "digests.csv", "federation.csv"),
    *("summary.json", "fedexp.log", ".lock", "tracker.json", ".tracker.lock", "traceback.txt", "curves.png"),
    *("config.json", ".hydra/config.yaml", ".hydra/hydra.yaml", ".hydra/overrides.yaml", "states/000002.pt"),
)
PLACES = (".hydra", "states", "tensorboard")
MODULE = "from pathlib import Path\nPath({!r}).touch()\n"


@cache
def killed_run() -> Path:
    """The folder of a run of four rounds with two kept states that was killed before its summary."""
    folder = Path(SCRATCH.name) / "run"
    if cli.main(["run", *KEPT, "rounds=4", "keep_states=2", f"hydra.run.dir={folder}"]):
        raise AssertionError("the run should have ended well")
    (folder / "summary.json").unlink()
    return folder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(killed_run(), "run")
    return Path("run")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_of_its_own_is_refused(kind: str, name: str, run: Path, tmp_path: Path, capsys):
    elsewhere = tmp_path / "mine.txt"
    elsewhere.write_text("mine")
    replaced(run / name, kind, elsewhere)
    for command in ("resume", "verify", *(["report"] if (run / "metrics.csv").is_file() else [])):
        assert f"{run / name} must be a file of its own, but it is a" in refusal(capsys, command, "run")
    assert elsewhere.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.txt", "run"]


@pytest.mark.parametrize("name", ["fedexp.log", ".lock", "metrics.csv"])
def test_what_has_a_second_name_elsewhere_is_not_written_to(name: str, run: Path, tmp_path: Path, capsys):
    (run / name).unlink(missing_ok=True)
    (tmp_path / "mine.txt").write_text("mine")
    (run / name).hardlink_to(tmp_path / "mine.txt")
    assert f"{run / name} must be a file of its own, but it has another name" in refusal(capsys, "resume", "run")
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("name", PLACES)
def test_a_folder_may_be_no_link(name: str, run: Path, tmp_path: Path, capsys):
    (tmp_path / "elsewhere").mkdir()
    replaced(run / name, "link", tmp_path / "elsewhere")
    assert f"{run / name} must be a folder of its own, but it is a link" in refusal(capsys, "resume", "run")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_lock_that_became_a_pipe_is_not_waited_for(tmp_path: Path):
    replaced(tmp_path / ".lock", "pipe", tmp_path)
    with pytest.raises(ConfigError, match="but it is a pipe"), folders.lock_folder(tmp_path):
        pass


def test_a_run_does_not_write_through_the_links_of_a_folder(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("place").mkdir()
    Path("place/fedexp.log").symlink_to(tmp_path / "mine.txt")
    assert "but it is a link" in refusal(capsys, "run", "experiment=smoke", "hydra.run.dir=place")
    assert not Path("mine.txt").exists()


WHOLE = '{{"config": {}, "references": {{}}, "choices": {{}}, "overrides": []}}'
CONFIGS = {
    "depth": '{"a": ' + "[" * 20_000,
    "deep keys": WHOLE.format('{"_target_": "x.Y", "a": ' + '{"a": ' * 100 + "1" + "}" * 101),
    "digits": WHOLE.format('{"_target_": "x.Y", "seed": ' + "9" * 5000 + "}"),
    "no number": WHOLE.format('{"_target_": "x.Y", "seed": NaN}'),
    "half a pair": WHOLE.format('{"_target_": "\\ud800.Y"}'),
    "list": "[1]",
    "text": '"nothing"',
    "no json": "{",
    "yaml": "seed: 0\n",
    "bytes": '{"a": "\udcff"}',
    "empty": "",
    "no target": WHOLE.format('{"a": 1}'),
    "no config": "{}",
}


def write_raw(path: Path, text: str) -> None:
    path.write_bytes(text.encode(errors="surrogateescape"))


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_that_is_no_plain_one_is_refused_at_once(name: str, run: Path, capsys):
    write_raw(run / "config.json", CONFIGS[name])
    begun = time.perf_counter()
    for command in ("resume", "verify", "report"):
        assert "config.json" in refusal(capsys, command, "run")
    assert time.perf_counter() - begun < 3


BOMB = "a0: &a0 [1, 2]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
YAMLS = {
    "bomb": BOMB,
    "circle": "a: &a [*a]\n",
    "depth": "a: " + "[" * 20_000,
    "deep keys": "".join(f"{' ' * n}a:\n" for n in range(3000)),
    "tag": "a: !!python/object/apply:os.mkdir [made]\n",
    "own tag": "a: !x 1\n",
    "number": "1\n",
    "no yaml": "a: [",
    "bytes": "a: \udcff",
}


@pytest.mark.parametrize("name", YAMLS)
@pytest.mark.parametrize("file", ["config", "hydra", "overrides"])
def test_what_lies_there_for_people_is_compared_alone(file: str, name: str, run: Path, capsys):
    write_raw(run / ".hydra" / f"{file}.yaml", YAMLS[name])
    assert f"{file}.yaml" in refusal(capsys, "verify", "run")
    assert runs.read(run) is not None  # as `fedexp report` does
    assert not Path("made").exists()


def test_a_report_is_made_beside_them(run: Path):
    for file in ("config", "hydra", "overrides"):
        write_raw(run / ".hydra" / f"{file}.yaml", BOMB)
    assert cli.main(["report", "run"]) == 0


@pytest.mark.parametrize("file", ["config", "hydra"])
def test_and_may_say_anything(file: str, run: Path, capsys):
    write_raw(run / ".hydra" / f"{file}.yaml", "{seed: [1], 3: {x: 1}, hydra: {runtime: {choices: {selector: [2]}}}}")
    assert cli.main(["verify", "run", "--rounds", "1"]) == 1
    assert f"{file}.yaml has " in capsys.readouterr().out


@pytest.mark.parametrize("name", ["config.json", ".hydra/config.yaml"])
def test_a_very_large_config_is_not_read(name: str, run: Path, capsys):
    with (run / name).open("ab") as file:
        file.truncate(10_000_000_000)
    assert "must have at most 8,000,000 bytes" in refusal(capsys, "verify", "run")


@pytest.mark.parametrize("name", ["metrics.csv", "clients.csv", "digests.csv", "federation.csv"])
def test_nor_is_a_very_large_table(name: str, run: Path, capsys):
    with (run / name).open("ab") as file:
        file.truncate(10_000_000_000)
    if name == "federation.csv":
        assert cli.main(["verify", "run"]) == 1
        assert "federation.csv is not the federation that the config makes" in capsys.readouterr().err
        return
    for command in ("resume", "verify"):
        assert f"{name} must have at most 1,000,000,000 bytes; restore it" in refusal(capsys, command, "run")


@pytest.fixture
def stranger(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the working directory that leaves a file when it is imported, and a config that names it."""
    monkeypatch.setenv("FEDEXP_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("stranger_part.py").write_text(MODULE.format(str(tmp_path / "imported")))
    sys.modules.pop("stranger_part", None)
    config = run / "config.json"
    config.write_text(config.read_text().replace("fedexp.parts.selector.greedyfed.", "stranger_part."))
    return "stranger_part"


@pytest.mark.parametrize("command", ["resume", "verify"])
def test_a_module_that_a_folder_names_is_not_imported(command: str, stranger: str, tmp_path: Path, capsys):
    said = refusal(capsys, command, "run")
    assert f"run names {stranger}.GreedyFed, which is not part of fedexp" in said
    assert said.endswith(f"add --trust-modules {stranger}\n")
    assert not (tmp_path / "imported").exists()


def test_a_module_that_the_user_names_is(stranger: str, tmp_path: Path, capsys):
    assert "does not exist" in refusal(capsys, "resume", "run", "--trust-modules", f"other,{stranger}")
    assert (tmp_path / "imported").exists()


@pytest.mark.parametrize("role", ["tracker", "selector", "selector.shapley", "evaluation", "engine"])
def test_wherever_a_config_names_it(role: str, stranger: str, run: Path, tmp_path: Path, capsys):
    def change(config: dict[str, Any]) -> None:
        config["selector"]["_target_"] = "fedexp.parts.selector.greedyfed.GreedyFed"
        node = config
        for name in role.split("."):
            node = node[name]
        node["_target_"] = f"{stranger}.Part"

    change_config(run, change)
    assert f"names {stranger}.Part" in refusal(capsys, "resume", "run")
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize("factory", ["NAME:make", "fedexp.files.atomic:write_atomically", "os:system"])
@pytest.mark.parametrize("command", ["resume", "verify"])
def test_a_factory_that_a_folder_names_is_not_called(
    command: str, factory: str, stranger: str, run: Path, tmp_path: Path, capsys
):
    arguments = {"command": f"touch {tmp_path / 'called'}", "path": str(tmp_path / "called"), "data": "x"}
    model = {
        "_target_": "fedexp.parts.model.torch.Torch",
        "factory": factory.replace("NAME", stranger),
        "arguments": arguments,
    }
    change_config(run, lambda config: config["selector"].update(_target_="fedexp.parts.selector.greedyfed.GreedyFed"))
    change_config(run, lambda config: config.update(model=model))
    advice = (
        "os is a module of Python itself"
        if factory == "os:system"
        else "if you know where it comes from, add --trust-modules"
    )
    assert f"which was never run here; {advice}" in refusal(capsys, command, "run")
    assert not (tmp_path / "imported").exists()
    assert not (tmp_path / "called").exists()


@pytest.mark.parametrize("value", ["", "..", "a b", "a/b", "mine,"])
def test_modules_to_trust_are_names(value: str, run: Path, capsys):
    assert "--trust-modules needs names of modules" in refusal(capsys, "resume", str(run), f"--trust-modules={value}")


OWN = "from fedexp.parts.selector.random import Random\n\n\nclass Mine(Random):\n    pass\n"
WORDS = ("experiment=smoke", "engine=loop", "engine.workers=1", "pictures=false", "hydra.run.dir=made")


def test_a_module_that_was_run_here_is_known_until_it_lies_elsewhere(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEDEXP_CACHE", str(tmp_path / "cache"))
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "own_part_of_mine.py").write_text(OWN)
    with monkeypatch.context() as here:
        here.syspath_prepend(str(tmp_path / "one"))
        assert cli.main(["run", *WORDS, "selector._target_=own_part_of_mine.Mine"]) == 0
        assert cli.main(["resume", "made"]) == 0
        assert cli.main(["verify", "made"]) == 0
    sys.modules.pop("own_part_of_mine")
    (tmp_path / "one").rename(tmp_path / "two")
    monkeypatch.syspath_prepend(str(tmp_path / "two"))
    assert "was never run here" in refusal(capsys, "resume", "made")
    assert cli.main(["resume", "made", "--trust-modules=own_part_of_mine"]) == 0


OWN_TRACKER = "tracker._target_=fedexp.new.examples.tracker.OwnTracker"
SENT = (OWN_TRACKER, "+tracker.name=../sent.jsonl", "+tracker.patience_s=60")


@pytest.fixture
def sending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run of somebody else, whose tracker writes beside its folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEDEXP_CACHE", str(tmp_path / "theirs"))
    assert cli.main(["run", *WORDS, *SENT]) == 0
    monkeypatch.setenv("FEDEXP_CACHE", str(tmp_path / "mine"))
    for path in (tmp_path / "made" / "tracker.json", tmp_path / "sent.jsonl"):
        path.unlink()
    return tmp_path / "made"


def test_nothing_is_sent_to_where_a_stranger_says(sending: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    for _ in range(2):
        assert "OwnTracker(patience_s=60.0, name='../sent.jsonl'), where not" in refusal(capsys, "resume", "made")
    (sending / "summary.json").unlink()
    assert "where nothing was ever sent" in refusal(capsys, "resume", "made")
    assert not sending.with_name("sent.jsonl").exists()
    monkeypatch.setenv("FEDEXP_CACHE", str(sending.with_name("theirs")))
    assert cli.main(["resume", "made"]) == 0
    assert sending.with_name("sent.jsonl").exists()


def test_what_the_user_types_is_done(sending: Path):
    assert cli.main(["resume", "made", *SENT]) == 0
    assert sending.with_name("sent.jsonl").exists()
    assert cli.main(["resume", "made"]) == 0
    assert cli.main(["resume", "made", "tracker=none"]) == 0


def test_what_the_user_types_is_done_where_nothing_can_be_noted(sending: Path, monkeypatch: pytest.MonkeyPatch):
    sending.with_name("file").touch()
    monkeypatch.setenv("FEDEXP_CACHE", str(sending.with_name("file") / "cache"))
    assert cli.main(["resume", "made", *SENT]) == 0
    assert sending.with_name("sent.jsonl").exists()


@pytest.mark.parametrize("ended", [True, False])
def test_nor_does_a_sweep(ended: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEDEXP_CACHE", str(tmp_path / "theirs"))
    words = [word for word in WORDS if not word.startswith("hydra.")]
    assert cli.main(["run", "-m", *words, *SENT, "seed=0", "hydra.sweep.dir=sweep"]) == 0
    monkeypatch.setenv("FEDEXP_CACHE", str(tmp_path / "mine"))
    for path in (tmp_path / "sweep" / "sent.jsonl", tmp_path / "sweep" / "0" / "tracker.json"):
        path.unlink()
    if not ended:
        (tmp_path / "sweep" / "0" / "summary.json").unlink()
    assert "name='../sent.jsonl'), where nothing was ever sent from here" in refusal(capsys, "resume", "sweep")
    assert not (tmp_path / "sweep" / "sent.jsonl").exists()


def test_nor_does_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    pytest.importorskip("optuna")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEDEXP_CACHE", str(tmp_path / "theirs"))
    words = (*(word for word in WORDS if not word.startswith("hydra.")), *SENT, "local.lr=choice(0.1,0.2)")
    assert cli.main(["search", *words, "--trials", "1", "--out", "many"]) == 0
    assert "tracker" not in capsys.readouterr().out
    monkeypatch.setenv("FEDEXP_CACHE", str(tmp_path / "mine"))
    asked = tmp_path / "many" / "search.yaml"
    asked.write_text(asked.read_text().replace("trials: 1", "trials: 2"))
    for sent in tmp_path.rglob("sent.jsonl"):
        sent.unlink()
    assert "name='../sent.jsonl'), where nothing was ever sent from here" in refusal(capsys, "resume", "many")
    assert not (tmp_path / "many" / "all" / "1").exists()
    assert cli.main(["resume", "many", "tracker=none"]) == 0
    assert not list(tmp_path.rglob("sent.jsonl"))


@pytest.mark.parametrize("typed", [True, False])
def test_a_password_of_a_folder_is_not_held(typed: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    words = ["tracker=mlflow", "tracker.uri='http://me:secret@host'"]
    with isolate_process():
        request = Request(conf_dir(), words, typed=typed)
        make_composer(request).compose_config("config", words, RunMode.RUN)
        assert ("MLFLOW_TRACKING_URI" in os.environ) == typed
    os.environ.pop("MLFLOW_TRACKING_URI", None)


def test_a_folder_does_not_learn_the_readers_environment(run: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    """A reference is a text; MLflow's own variable is read for the tracker alone."""
    monkeypatch.setenv("MINE", "s3cr3t")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "s3cr3t")
    texts = {"rounds": "${oc.env:MINE}", "local.lr": "${oc.env:MLFLOW_TRACKING_URI}", "tracker.uri": "${oc.env:MINE}"}
    content = json.loads((run / "config.json").read_text())
    content["references"].update(texts)
    (run / "config.json").write_text(json.dumps(content))
    for command in ("resume", "verify", "report"):
        cli.main([command, "run"])
    assert "s3cr3t" not in "".join(capsys.readouterr())
    assert not [path for path in Path().rglob("*") if path.is_file() and b"s3cr3t" in path.read_bytes()]


def test_a_run_notes_what_the_environment_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINE", "here")
    words = ("dataset=synthetic", "rounds=1", "pictures=false", "hydra.run.dir=run")
    assert cli.main(["run", *words, "data_dir=${oc.env:MINE}/x"]) == 0
    monkeypatch.delenv("MINE")
    assert "data_dir: here/x" in Path("run/.hydra/config.yaml").read_text()
    assert '"data_dir": "here/x"' in Path("run/config.json").read_text()
    assert cli.main(["verify", "run"]) == 0
