"""A run folder that tells the truth, and folders that were altered by hand: the round is named."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from fedexp.cli import main

WORDS = (
    "dataset=synthetic",
    "dataset.train_size=300",
    "dataset.test_size=100",
    "scenario.clients=6",
    "scenario.participants=3",
    "server_optimizer=momentum",
    "evaluation.every=2",
    "rounds=9",
    "keep_states=4",
    "engine=loop",
    "engine.workers=1",
    "pictures=false",
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert main(["run", *WORDS, f"hydra.run.dir={folder}"]) == 0
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy that a test may alter, seen from the folder that holds it."""
    shutil.copytree(whole, tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    return Path("run")


@pytest.fixture
def verified(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Verifies a folder: exit code, what was said and the complaint."""

    def verify(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["verify", "run", *words])
        told = capsys.readouterr()
        return code, told.out, told.err

    return verify


def alter(path: Path, number: int | None, change: Callable[[list[str]], list[str]]) -> None:
    """Changes the cells of one round's line; of every line and the header if it is None."""
    lines = [line.split(",") for line in path.read_text().splitlines()]
    lines = [change(cells) if number is None or cells[0] == str(number) else cells for cells in lines]
    path.write_text("".join(",".join(cells) + "\n" for cells in lines))


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3000])


def test_the_states_that_stay_and_a_digest_of_every_round(whole: Path):
    assert sorted(path.name for path in (whole / "states").iterdir()) == ["000004.pt", "000008.pt"]
    lines = (whole / "digests.csv").read_text().splitlines()
    assert lines[0] == "round,digest,metrics.csv,clients.csv"
    assert [line.split(",")[0] for line in lines[1:]] == [str(number) for number in range(1, 10)]
    assert len({cell for line in lines for cell in line.split(",")[1:]}) == 3 * 10


@pytest.mark.usefixtures("folder")
def test_an_honest_folder_is_equal_and_stays_as_it_is(whole: Path, verified: Callable):
    code, told, complaint = verified("--rounds", "3", "--seed", "0")
    assert (code, complaint) == (0, "")
    assert "run: 9 rounds, of which 3 are computed again\n" in told
    assert "from the beginning: round 1\nfrom states/000004.pt: round 5\nfrom state.previous.pt: round 9\n" in told
    assert "\ndrawn by --rounds 3 --seed 0\n" in told
    assert "compared bit by bit (engine loop" in told
    assert [line for line in told.splitlines() if line.startswith("round")] == [f"round {n}  equal" for n in (1, 5, 9)]
    files = {path.relative_to("run"): path.read_bytes() for path in Path("run").rglob("*") if path.is_file()}
    assert files == {path.relative_to(whole): path.read_bytes() for path in whole.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("folder")
def test_every_round_can_be_asked_for(verified: Callable):
    code, told, _ = verified("--rounds", "9", "--seed=3")
    assert code == 0
    assert told.count("  equal\n") == 9


def test_an_altered_metric_is_named_with_its_round(folder: Path, verified: Callable):
    alter(folder / "metrics.csv", 6, lambda cells: [cells[0], "0.125", *cells[2:]])
    code, told, complaint = verified("--rounds", "9")
    assert code == 1
    assert "round 5  equal\nround 6  DIFFERS\nround 9  equal\n" in told  # 7 and 8 follow from 6 and are not played
    assert complaint.startswith("fedexp: round 6 differs: test_loss is 0.125 in metrics.csv, ")


def test_an_altered_digest_is_named_with_its_round(folder: Path, verified: Callable):
    alter(folder / "digests.csv", 5, lambda cells: [cells[0], "0" * 32, *cells[2:]])
    code, _, complaint = verified()
    assert code == 1
    assert complaint.startswith(f"fedexp: round 5 differs: the models' digest is {'0' * 32} in digests.csv, ")
    assert complaint.endswith(" now (metrics.csv agrees)\n")


def test_a_missing_line_is_named(folder: Path, verified: Callable):
    table = folder / "metrics.csv"
    table.write_text("".join(line for line in table.read_text().splitlines(True) if not line.startswith("5,")))
    code, _, complaint = verified()
    assert (code, complaint) == (1, "fedexp: round 5 differs: it has no line in metrics.csv\n")


def test_a_changed_state_is_named_with_its_round(folder: Path, verified: Callable):
    path = folder / "states" / "000004.pt"
    content = torch.load(path, weights_only=True)
    content["models"][0][0][7] += 0.5
    torch.save(content, path)
    code, told, complaint = verified()
    assert code == 1
    assert "states/000004.pt  DIFFERS\n" in told
    assert complaint.startswith("fedexp: round 4 differs: the models in states/000004.pt have the digest ")
    assert complaint.endswith("(and 1 more)\n")  # round 5, which was played from it


@pytest.mark.usefixtures("folder")
def test_all_rounds_are_played_that_fit_and_chance_draws_them(verified: Callable, monkeypatch: pytest.MonkeyPatch):
    assert "rounds 1-9 computed again. " in verified()[1]
    monkeypatch.setattr("fedexp.verify.verify.largest_count", lambda *_: 3)
    drawn = [re.findall("drawn by (--rounds) (3) (--seed) (.*)\n", verified()[1])[0] for _ in range(2)]
    assert drawn[0] != drawn[1]
    assert verified(*drawn[0])[1] == verified(*drawn[0])[1]


def test_a_changed_memory_shows_in_its_round_and_in_the_next(folder: Path, verified: Callable):
    path = folder / "states" / "000004.pt"
    content = torch.load(path, weights_only=True)
    content["memory"]["server_optimizer"]["0"]["velocity"] *= 2
    torch.save(content, path)
    code, told, complaint = verified("--all")
    assert code == 1
    where = "server_optimizer.0.velocity in the memory of states/000004.pt is not what it is now"
    assert complaint.startswith(f"fedexp: round 4 differs: {where}")
    assert "round 5  DIFFERS" in told


def test_a_damaged_state_is_said_and_the_rest_verified(folder: Path, verified: Callable):
    damage(folder / "states" / "000004.pt")
    code, told, complaint = verified()
    assert (code, complaint) == (1, "fedexp: run/states/000004.pt is damaged\n")
    assert told.count("  equal\n") >= 3


def test_without_digests_the_metrics_are_compared_all_the_same(folder: Path, verified: Callable):
    (folder / "digests.csv").unlink()
    code, told, complaint = verified()
    assert (code, complaint) == (
        1,
        "fedexp: round 1 differs: no line in digests.csv, nor in rounds 2-9; digests.csv is missing\n",
    )
    assert "metrics (the folder has no digests.csv) are compared bit by bit" in told
    assert told.count("  equal\n") == 9


def unfinished(folder: Path) -> None:
    """As the folder of a run that was killed before its first state was saved."""
    for path in [*(folder / "states").iterdir(), *folder.glob("state*.pt"), folder / "summary.json"]:
        path.unlink()


def test_an_unfinished_run_without_states_is_recomputed_from_the_beginning(folder: Path, verified: Callable):
    unfinished(folder)
    code, told, complaint = verified("--rounds", "4")
    assert (code, complaint) == (3, "fedexp: run is as it was written within rounding, not bit by bit\n")
    assert "metrics are compared within 0.02, since bits may differ: the folder does not say where it was made" in told
    assert told.splitlines()[1].startswith("from the beginning: rounds 1")
    assert "summary.json, since the run has not ended; state.pt, since there is none to read" in told


def test_a_killed_run_may_have_been_writing_its_last_round(folder: Path, verified: Callable):
    (folder / "summary.json").unlink()
    (folder / "state.pt").unlink()  # a kill between its two renames
    for name in ("digests.csv", "clients.csv"):
        rewrite(folder / name, lambda rows: [row for row in rows if not row.startswith("9,")])
    code, told, complaint = verified("--all")
    assert (code, complaint) == (0, "")
    assert "rounds 1-9 computed again" in told


def test_another_version_is_compared_within_rounding(folder: Path, verified: Callable):
    for path in [*(folder / "states").iterdir(), *folder.glob("state*.pt")]:
        content = torch.load(path, weights_only=True)
        content["surroundings"]["torch"] = "1.0"
        torch.save(content, path)
    code, told, _ = verified("--rounds", "1")
    assert code == 3
    assert "metrics are compared within 0.02, since bits may differ: torch 1.0 then, " in told
    assert "; digests, since bits may differ here; " in told
    alter(folder / "metrics.csv", 1, lambda cells: [*cells[:5], "2.5", *cells[6:]])
    assert verified("--rounds", "1")[0] == 1


def test_other_inputs_than_those_of_the_run_are_told(folder: Path, verified: Callable):
    content = torch.load(folder / "state.pt", weights_only=True)
    assert content["inputs"].keys() == {"data", "clients"}
    content["inputs"] |= {"data": "0" * 64, "fleet.trace": "0" * 64}
    torch.save(content, folder / "state.pt")
    code, _, complaint = verified("--rounds", "1")
    assert code == 1
    assert "run/state.pt: the data of dataset=synthetic changed after the run began" in complaint


def rewrite(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    """Changes the lines of a table behind its header."""
    header, *rows = path.read_text().splitlines(True)
    path.write_text("".join([header, *change(rows)]))


def forge_summary(**values: object) -> Callable[[Path], None]:
    def forge(folder: Path) -> None:
        path = folder / "summary.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return forge


def without_summary_key(folder: Path) -> None:
    path = folder / "summary.json"
    told = json.loads(path.read_text())
    del told["final_accuracy"]
    path.write_text(json.dumps(told))


def table(name: str, change: Callable[[list[str]], list[str]]) -> Callable[[Path], None]:
    return lambda folder: rewrite(folder / name, change)


def one_cell(name: str, number: int, place: int, value: str) -> Callable[[Path], None]:
    return lambda folder: alter(folder / name, number, lambda cells: [*cells[:place], value, *cells[place + 1 :]])


def state(key: str, value: object) -> Callable[[Path], None]:
    def forge(folder: Path) -> None:
        content = torch.load(folder / "state.pt", weights_only=True)
        content[key] = value
        torch.save(content, folder / "state.pt")

    return forge


def ending_early(folder: Path) -> None:
    """All that tells of the last two rounds is gone, and the summary is that of the seven others."""
    for name in ("metrics.csv", "clients.csv", "digests.csv"):
        rewrite(folder / name, lambda rows: [row for row in rows if int(row.split(",")[0]) < 8])
    for path in [*folder.glob("state*.pt"), folder / "states" / "000008.pt"]:
        path.unlink()


METRICS_END = "metrics.csv ends with 9"
FORGED = {
    "a better final accuracy": (forge_summary(final_accuracy=0.99), "summary.json says final_accuracy 0.99, but it"),
    "an accuracy never reached": (forge_summary(roa={"0.9": 1}), "summary.json says roa.0.3 null, but it comes to 2"),
    "an area": (forge_summary(loss_auc=1.0), "summary.json says loss_auc 1.0, but it comes to "),
    "more updates": (forge_summary(updates=1), "summary.json says updates 1, but it comes to 27"),
    "other data": (forge_summary(data_sha256="0" * 64), "summary.json says data_sha256 "),
    "another split": (forge_summary(split_sha256="0" * 64), "summary.json says split_sha256 "),
    "a count as a text": (forge_summary(rounds="9"), "summary.json must have a whole number as rounds, got '9'"),
    "no final accuracy": (without_summary_key, "summary.json does not say final_accuracy, which comes to "),
    "the last lines are gone": (table("metrics.csv", lambda rows: rows[:7]), "ends before it, though the run has 9"),
    "a line is gone": (table("metrics.csv", lambda rows: rows[:3] + rows[4:]), "round 4 differs: it has no line in"),
    "a line comes twice": (table("metrics.csv", lambda rows: [rows[0], *rows]), "round 2 differs: its line is not in"),
    "lines changed places": (table("metrics.csv", lambda rows: rows[::-1]), "round 1 differs: its line is not in its"),
    "the run ended early": (ending_early, "round 8 differs: metrics.csv ends before it, though the run has 9 rounds"),
    "more rounds": (table("metrics.csv", lambda rows: [*rows, "10" + rows[-1][1:]]), "round 10 differs: the run has 9"),
    "the last row": (one_cell("metrics.csv", 9, 2, "0.99"), "test_accuracy is 0.99 in metrics.csv, but the models in"),
    "a number of participants": (
        one_cell("metrics.csv", 3, 6, "2"),
        "round 3 differs: metrics.csv is not what digests.csv says",
    ),
    "a text among numbers": (one_cell("metrics.csv", 3, 1, "low"), "must have numbers in its column test_loss, got 'l"),
    "no client": (table("clients.csv", lambda rows: rows[:-1]), "round 9 differs: clients.csv is not what digests."),
    "another client": (one_cell("clients.csv", 1, 1, "5"), "round 1 differs: "),
    "other examples": (
        one_cell("clients.csv", 3, 2, "51"),
        "round 3 differs: clients.csv is not what digests.csv says",
    ),
    "other losses": (one_cell("clients.csv", 3, 4, "0.5"), "round 3 differs: clients.csv is not what digests.csv says"),
    "other first losses": (one_cell("clients.csv", 1, 3, "0.5"), "loss_before of client "),
    "a metric where nobody looks": (one_cell("metrics.csv", 4, 1, "0.5"), "round 4 differs: metrics.csv is not what"),
    "links of nothing": (
        one_cell("digests.csv", 3, 2, "0" * 32),
        "round 3 differs: metrics.csv is not what digests.csv says, nor in round 4\n",
    ),
    "a digest where nobody looks": (
        one_cell("digests.csv", 3, 1, "0" * 32),
        "round 3 differs: clients.csv is not what digests.csv says\n",
    ),
    "digests change places": (
        table("digests.csv", lambda rows: [*rows[:2], rows[3], rows[2], *rows[4:]]),
        "round 3 differs: its line in digests.csv is not in its place",
    ),
    "digests without links": (
        lambda folder: alter(folder / "digests.csv", None, lambda cells: cells[:2]),
        "round 1 differs: digests.csv has no column metrics.csv",
    ),
    "clients of no round": (
        table("clients.csv", lambda rows: [*rows, "12,1,50,1.0,1.0\n"]),
        "round 12 differs: it has",
    ),
    "no clients": (
        lambda folder: (folder / "clients.csv").unlink(),
        "clients.csv is not what digests.csv says, nor in rounds 2-9",
    ),
    "empty digests": (
        table("digests.csv", lambda rows: []),
        "round 1 differs: no line in digests.csv, nor in rounds 2-9",
    ),
    "no digests": (lambda folder: (folder / "digests.csv").write_text(""), "no line in digests.csv, nor in rounds 2-9"),
    "a digest is gone": (
        table("digests.csv", lambda rows: rows[:6] + rows[7:]),
        "round 7 differs: no line in d",
    ),
    "digests of no round": (
        table("digests.csv", lambda rows: [*rows, "10,aa,bb,cc\n"]),
        "round 10 differs: it has a line in",
    ),
    "no state": (lambda folder: (folder / "state.pt").unlink(), "state.pt is missing"),
    "a negative round": (state("round", -3), "state.pt is damaged"),
    "a huge round": (state("round", 10**9), f"state.pt is of round 1000000000, but {METRICS_END}"),
    "an earlier round": (state("round", 8), "the models in state.pt have the digest "),
    "other seconds": (state("host_s", 1.5), "host_s is 1.5 in state.pt, metrics.csv says "),
    "other updates": (state("updates", 28), "updates is 28 in state.pt, metrics.csv comes to 27"),
    "another federation": (
        lambda folder: alter(folder / "federation.csv", 0, lambda cells: [*cells[:-1], "99"]),
        ("federation.csv is not the federation that the config makes"),
    ),
}


@pytest.mark.parametrize(("forge", "what"), FORGED.values(), ids=FORGED)
def test_whatever_was_forged_is_found(folder: Path, verified: Callable, forge: Callable[[Path], None], what: str):
    forge(folder)
    code, told, complaint = verified("--rounds", "1")
    assert code in (1, 2)
    assert what in told + complaint
    assert complaint.count("\n") == 1
    assert "Traceback" not in told + complaint


@pytest.mark.parametrize(
    "words",
    [
        ("pretraining=public", "scenario.public_fraction=0.2", "evaluation.client_losses=exact"),
        ("clustering=ifca", "evaluation.personal_fraction=0.2", "fleet=simulated", "evaluation.validation=true"),
        ("selector=hybridfl", "fleet=simulated", "attack=label_flip", "scenario.malicious=1"),
        ("local=ditto", "evaluation.validation=true", "evaluation.validation_at=clients"),
    ],
    ids=lambda words: words[0],
)
def test_no_honest_folder_is_doubted(tmp_path: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]):
    assert main(["run", *WORDS, *words, "rounds=4", f"hydra.run.dir={tmp_path / 'run'}"]) == 0
    assert main(["verify", str(tmp_path / "run"), "--all"]) == 0, capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_the_closing_line_says_what_was_checked_and_what_was_not(verified: Callable):
    *_, last = verified("--rounds", "3", "--seed", "0")[1].splitlines()
    assert last == (
        "checked: metrics.csv and clients.csv against digests.csv; summary.json and federation.csv computed again; 4 "
        "saved states; rounds 1, 5, 9 computed again. not checked: what was computed in rounds 2-4, 6-8 (--all "
        "computes all of them); what parts remember in the states of rounds 4, 8; what the models in states/ score; "
        "seconds and versions; fedexp.log"
    )
    *_, last = verified("--all")[1].splitlines()
    assert last.endswith("rounds 1-9 computed again. not checked: seconds and versions; fedexp.log")


def test_the_closing_line_claims_no_more_than_was_done(folder: Path, verified: Callable):
    """Nine rounds, of which the tables hold seven: no summary was worked out, the state of round 8 does not count."""
    for name in ("metrics.csv", "clients.csv", "digests.csv"):
        rewrite(folder / name, lambda rows: [row for row in rows if int(row.split(",")[0]) < 8])
    *_, last = verified()[1].splitlines()
    assert "; federation.csv computed again; 1 saved state; " in last
    assert "summary.json, since metrics.csv is not whole" in last
    assert "; what is saved of rounds 8, 9, since metrics.csv has no line of it; " in last


def test_everything_is_found_by_playing_everything(folder: Path, verified: Callable):
    """A client's number, in a round that fits no sum: only that round, computed again, can tell."""
    alter(folder / "clients.csv", 7, lambda cells: [cells[0], str((int(cells[1]) + 3) % 6), *cells[2:]])
    code, _, complaint = verified("--all")
    assert code == 1
    assert complaint.startswith("fedexp: round 7 differs: ")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "verify needs one run folder, got 0; e.g. fedexp verify outputs/latest"),
        (("nowhere",), "there is no folder nowhere; fedexp verify needs a run folder, e.g. outputs/latest"),
        (
            ("results.csv",),
            "there is no file results.csv; fedexp verify needs the results.csv of a replay, or a run folder",
        ),
        (("run", "--rounds", "0"), "--rounds must be an integer >= 1, got 0"),
        (("run", "--seed"), "--seed must be an integer >= 0, got none"),
        (("run", "--round=2"), "unknown flag --round; did you mean --rounds?"),
        (("run/states",), "run/states is no run folder: it has no config.json; give a folder that fedexp run has made"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_cannot_be_verified(words: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]):
    assert main(["verify", *words]) == 2
    assert capsys.readouterr().err == f"fedexp: {complaint}\n"


def test_a_run_without_a_finished_round(folder: Path, verified: Callable):
    (folder / "metrics.csv").unlink()
    code, _, complaint = verified()
    assert code == 2
    assert complaint == "fedexp: run has no finished round in metrics.csv; nothing in it can be used\n"
