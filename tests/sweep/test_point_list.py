"""`points=FILE`: a line a point, crossed with the other words; kept in the folder, where it is not believed."""

import json
import re
import sys
from pathlib import Path

import pytest
import yaml
from command_line import Recorder
from hostile import refusal
from processes import typed

from fedexp import cli
from fedexp.config import saved_config
from fedexp.core.errors import ConfigError
from fedexp.run import run as execution
from fedexp.sweep import point_list
from fedexp.sweep.points import MOST_POINTS, expand_words

BASIC = "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"
ONE_AT_A_TIME = "fedexp.config.one_at_a_time.OneAtATime"
TABLE = "algorithm,local.lr,local.momentum\nfedavg,0.1,\nfedprox,0.05,0.5\n"
TINY = (
    *("dataset=synthetic", "dataset.train_size=120", "dataset.test_size=60", "scenario.clients=6", "rounds=1"),
    *("engine=loop", "engine.workers=1", "pictures=false"),
)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("methods.csv").write_text(TABLE)


def expanded(*words: str, sweeper: str = BASIC) -> list[str]:
    return [" ".join(point) for point in expand_words(sweeper, point_list.with_points(words)) or []]


def test_each_line_meets_each_seed_and_an_empty_cell_sets_nothing():
    assert expanded("rounds=3", "points=methods.csv", "seed=0,1") == [
        "algorithm=fedavg local.lr=0.1 rounds=3 seed=0",
        "algorithm=fedavg local.lr=0.1 rounds=3 seed=1",
        "algorithm=fedprox local.lr=0.05 local.momentum=0.5 rounds=3 seed=0",
        "algorithm=fedprox local.lr=0.05 local.momentum=0.5 rounds=3 seed=1",
    ]


def test_around_each_line_one_key_varies_at_a_time():
    assert expanded("points=methods.csv", "rounds=2,3", sweeper=ONE_AT_A_TIME) == [
        *("algorithm=fedavg local.lr=0.1", "algorithm=fedavg local.lr=0.1 rounds=2"),
        *("algorithm=fedavg local.lr=0.1 rounds=3",),
        *(f"algorithm=fedprox local.lr=0.05 local.momentum=0.5{more}" for more in ("", " rounds=2", " rounds=3")),
    ]


def test_a_yaml_list_says_the_same():
    Path("methods.yaml").write_text(
        "- {algorithm: fedavg, local.lr: 0.1}\n- {algorithm: fedprox, local.lr: 5e-2, local.momentum: 0.5}\n"
    )
    assert expanded("points=methods.yaml") == expanded("points=methods.csv")
    Path("odd.yaml").write_text("- {name: 'a, b', local.epochs: null, model.widths: [3, 4]}\n")
    assert expanded("points=odd.yaml") == ["name='a, b' local.epochs=null model.widths=[3,4]"]


def test_a_key_that_a_line_sets_is_not_swept_by_an_experiment():
    words = ["local.lr=0.5,0.6", *point_list.with_points(["points=methods.csv"])]  # as its sweeper.params come
    assert len(expand_words(BASIC, words) or []) == 2


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("p.csv", None, "points: cannot read p.csv: No such file or directory"),
        ("p.txt", "a\n1\n", "points must name a file with points (.csv, .yaml, .yml), got points=p.txt"),
        ("p.csv", "", "p.csv must have a line of keys and a line for each point"),
        ("p.csv", "local.lr\n", "p.csv must have a line of keys and a line for each point"),
        ("p.csv", "local.lr;rounds\n1;2\n", "p.csv must have commas between its columns, but has semicolons"),
        ("p.csv", "local.lr,local.lr\n1,2\n", "2 are named local.lr"),
        ("p.csv", "local.lr,rounds\n1\n", "p.csv, line 2 must have 2 cells as the first line, got 1"),
        ("p.csv", "local.lr,rounds\n,\n", "p.csv, line 2 sets nothing; fill a cell or remove the line"),
        ("p.csv", "rounds\n1\n2\n1\n", "p.csv, line 4: every point must be another, but p.csv, line 2 has the same"),
        ("p.csv", 'rounds\n"1,2"\n', "p.csv, line 2: rounds must have one value, got rounds=1,2"),
        ("p.csv", "rounds\n'\n", "p.csv, line 2: cannot read rounds='"),
        ("p.csv", "hydra.searchpath\nx\n", "a column must be a key or group of the experiment, got hydra.searchpath"),
        ("p.csv", "seed\n3\n", "p.csv, line 2: seed is set here and by a word of the command"),
        ("p.yaml", "a: 1\n", "p.yaml must be a list of points"),
        ("p.yaml", "- 3\n", "p.yaml, point 1 must be keys and values, got 3"),
        ("p.yaml", "- {\n", "points: p.yaml cannot be read"),
        ("p.csv", "dataset.client\nKöln\n", "p.csv must be text in UTF-8, but holds the byte 0xf6; save it as UTF-8"),
        ("p.yaml", "- seed: Köln\n", "p.yaml must be text in UTF-8, but holds the byte 0xf6; save it as UTF-8"),
    ],
)
def test_what_is_no_list_of_points_is_one_line(name: str, text: str | None, complaint: str):
    if text is not None:
        Path(name).write_text(text, encoding="latin-1")
    with pytest.raises(ConfigError) as told:
        point_list.with_points(["seed=0,1", f"points={name}"])
    assert complaint in str(told.value)
    assert "\n" not in str(told.value)


def test_a_list_without_end_is_refused_before_it_is_crossed():
    listed = "points=[" + ",".join(["[rounds=1]".replace("=", "\\=")] * 11) + "]"
    with pytest.raises(ConfigError, match=f"at most {MOST_POINTS:,} points"):
        expand_words(BASIC, [listed, "seed=range(0,10000)"])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["run", "points=methods.csv"], "points=methods.csv lists the points of a sweep; write fedexp run -m points="),
        (["plan", "points=methods.csv"], "points=methods.csv lists the points of a sweep"),
        (["run", "-m", "points=methods.csv", "points=b.csv"], "points must be given once"),
        (["run", "-m", "points=methods.csv", "local.lr=1"], "methods.csv, line 2: local.lr is set here and by a word"),
        (["run", "-m", "points=[3]"], "points must name a file with points (.csv, .yaml, .yml), got points=[3]"),
    ],
)
def test_words_that_do_not_go_together(words: list[str], complaint: str, capsys):
    assert complaint in refusal(capsys, *words)
    assert [path.name for path in Path().iterdir()] == ["methods.csv"]


def test_a_point_that_cannot_work_is_named(capsys):
    Path("methods.csv").write_text("algorithm,local.lr\nfedavg,0.1\nfedavg,-1\n")
    assert "point 1 (local.lr=-1): local.lr must be a number" in refusal(capsys, "run", "-m", "points=methods.csv")
    Path("methods.csv").write_text("algorithm,local.rl\nfedavg,0.1\n")
    assert "unknown key local.rl" in refusal(capsys, "run", "-m", "points=methods.csv")


def test_a_sweep_of_points_from_the_shell_and_its_resume_without_the_file(tmp_path: Path):
    words = ("points=methods.csv", "seed=0,1", *TINY, "hydra.sweep.dir=many")
    done = typed(tmp_path, "run", "-m", *words)
    assert done.returncode == 0, done.stderr
    accuracy = json.loads(Path("many/2/summary.json").read_text())["final_accuracy"]
    ended = (
        rf"^3 of 4: algorithm=fedprox local.lr=0.05 local.momentum=0.5 seed=0, accuracy {accuracy:.4f}, [\d.]+ m?s; 1"
    )
    assert re.search(ended, done.stdout, re.MULTILINE)
    table = Path("many/sweep.csv").read_text()
    assert [line.split(",")[:4] for line in table.splitlines()[1:]] == [
        ["fedavg", "0.1", "0", "2"],
        ["fedprox", "0.05", "0.5", "2"],
    ]
    tables = [Path(f"many/{point}/clients.csv").read_bytes() for point in range(4)]
    Path("methods.csv").write_text("rounds\n7\n")  # it was read when the sweep began
    Path("many/3/summary.json").unlink()
    Path("many/2/summary.json").unlink()
    again = typed(tmp_path, "resume", "many")
    assert again.returncode == 0, again.stderr
    assert Path("many/sweep.csv").read_text() == table
    assert [Path(f"many/{point}/clients.csv").read_bytes() for point in range(4)] == tables
    checked = typed(tmp_path, "verify", "many", "--rounds", "1", "--seed", "1")
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    ("listed", "complaint"),
    [
        ("methods.csv", "must be lists of words, got points=methods.csv"),
        ("3", "must be lists of words"),
        ("[]", "must be lists of words"),
        ("[[1]]", "must be lists of words"),
        ("[['hydra.searchpath=[pkg://stranger_points]']]", "a setting must be one of the experiment's"),
        ("[['hydra/job_logging=disabled']]", "a setting must be one of the experiment's"),
        ("[['dataset=../../evil']]", "an option must be one of conf/"),
        ("[['rounds=${oc.env:HOME}']]", "must refer to keys of the config alone"),
        ("[['selector._target_=stranger_points.X']]", "stranger_points"),
    ],
)
def test_a_strangers_points_run_nothing(listed: str, complaint: str, monkeypatch, tmp_path: Path, capsys):
    monkeypatch.setattr(execution, "complete", Recorder())
    monkeypatch.setenv("FEDEXP_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("stranger_points.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    sys.modules.pop("stranger_points", None)
    assert cli.main(["run", "-m", "experiment=smoke", "points=methods.csv", "hydra.sweep.dir=many"]) == 0
    assert saved_config.read(Path("many/0")).overrides == ["algorithm=fedavg", "local.lr=0.1", "experiment=smoke"]
    saved = yaml.safe_load(Path("many/multirun.yaml").read_text())
    saved["hydra"]["overrides"]["task"][-1] = f"points={listed}"
    Path("many/multirun.yaml").write_text(yaml.safe_dump(saved, sort_keys=False))
    for point in Path("many").glob("[01]"):
        point.rename(tmp_path / f"moved{point.name}")
    capsys.readouterr()
    assert cli.main(["resume", "many"]) in (1, 2)
    assert complaint in "".join(capsys.readouterr())
    assert not Path("ran").exists()
