"""Answers for new rows, from a folder that may come from anybody."""

import ast
import csv
import json
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from command_line import complaint, python

from fedexp import run
from fedexp.cli import main
from fedexp.data.tables.encoding import Column
from fedexp.data.tables.replaced_cells import describe_replaced_cells
from fedexp.export.export import export

QUIET = {"rounds": 2, "pictures": False, "quiet": True}


@pytest.fixture(scope="module")
def patients(tmp_path_factory):
    """An exported model of a table, the table, and the run."""
    place, rng = tmp_path_factory.mktemp("patients"), np.random.default_rng(0)
    age, sex = rng.integers(20, 90, 200), rng.choice(["f", "m"], 200)
    frame = pd.DataFrame({"name": [f"p{n}" for n in range(200)], "age": age, "sex": sex})
    frame["ill"] = np.where(age > 55, "yes", "no")
    frame.to_csv(place / "patients.csv", index=False)
    words = ("dataset=table", f"dataset.file={place / 'patients.csv'}", "dataset.target=ill", "dataset.ignore=[name]")
    done = run(*words, "model=mlp", folder=place / "run", **QUIET)
    export(done.folder, place / "home")
    return place / "home", frame, done


def test_rows_are_answered_as_the_model_of_the_run_answers(patients, tmp_path, monkeypatch, capsys):
    home, frame, done = patients
    monkeypatch.chdir(tmp_path)
    frame[["sex", "name", "age"]].to_csv("rows.csv", index=False)
    assert main(["predict", str(home), "rows.csv", "--to", "answers.csv"]) == 0
    assert capsys.readouterr().out == "200 answers in answers.csv\n"
    answers = pd.read_csv("answers.csv")
    assert list(answers) == ["sex", "name", "age", "predicted", "probability no", "probability yes"]
    with torch.no_grad():
        expected = done.model()(done.encoder.rows(frame)).softmax(dim=1).numpy()
    np.testing.assert_allclose(answers[["probability no", "probability yes"]], expected, rtol=1e-5)
    assert answers["predicted"].tolist() == np.where(expected[:, 1] > expected[:, 0], "yes", "no").tolist()


def train_with_gaps(folder, *words):
    """An exported model of a table with a number, a text and gaps in both."""
    age, sex = [20.0, 30.0, None, 50.0] * 20, ["f", "m", "f", None] * 20
    frame = pd.DataFrame({"age": age, "sex": sex, "bmi": [20.0, 30.0] * 40, "ill": ["no", "yes"] * 40})
    frame.to_csv(folder / "gaps.csv", index=False)
    table = ("dataset=table", f"dataset.file={folder / 'gaps.csv'}", "dataset.target=ill", "dataset.missing=fill")
    done = run(*table, "model=mlp", "scenario.clients=2", *words, folder=folder / "run", **QUIET)
    export(done.folder, folder / "home")
    return done


def test_cells_that_were_filled_are_told_by_column(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    done = train_with_gaps(tmp_path)
    (tmp_path / "rows.csv").write_text("age,sex,bmi\n,f,20\n40,x,20\n40,,20\n,y,\n40,m,20\n")
    assert main(["predict", "home", "rows.csv", "--to", "answers.csv"]) == 0
    note = (
        "4 of 5 rows have cells that the model cannot take as they are: missing in age (2), sex (1), bmi (1); unknown "
        "to training in sex (2, e.g. x)"
    )
    assert capsys.readouterr().out == f"5 answers in answers.csv\nnote  {note}\n"
    assert done.encoder.replaced_cells(pd.read_csv("rows.csv")) == note
    (tmp_path / "rows.csv").write_text("age,sex,bmi\n40,m,20\n")
    assert main(["predict", "home", "rows.csv", "--to", "answers.csv"]) == 2
    assert "answers.csv is there" in complaint(capsys)
    assert len(pd.read_csv("answers.csv")) == 5
    assert main(["predict", "home", "rows.csv", "--to", "answers.csv", "--overwrite"]) == 0
    assert capsys.readouterr().out == "1 answers in answers.csv\n"
    assert len(pd.read_csv("answers.csv")) == 1


def test_numbers_out_of_their_range_are_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ranges = "dataset.ranges={age: [0,100], sex: [f,m], bmi: [10,40]}"
    train_with_gaps(tmp_path, "dataset.statistics=clipped", ranges)
    (tmp_path / "rows.csv").write_text("age,sex,bmi\n101,f,20\n100,m,9\n-1,m,40\n0,m,10\n")
    assert main(["predict", "home", "rows.csv", "--to", "answers.csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == (
        "note  3 of 4 rows have cells that the model cannot take as they are: out of range in age (2), bmi (1)"
    )


def test_of_many_columns_the_first_are_named():
    columns = [Column(f"c{number}", fills_missing=True) for number in range(7)]
    frame = pd.DataFrame({column.name: [1.0, None] for column in columns})
    assert describe_replaced_cells(frame, columns) == (
        "1 of 2 rows have cells that the model cannot take as they are: missing in c0 (1), c1 (1), c2 (1), c3 (1), "
        "c4 (1) and 2 more"
    )


def test_arrays_are_answered(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(folder="run", **QUIET)
    export(done.folder, tmp_path / "home")
    x = torch.zeros(5, *done.encoder.shape, dtype=getattr(torch, done.encoder.dtype))
    np.save("images.npy", x.numpy())
    assert main(["predict", "home", "images.npy", "--to", "answers.csv"]) == 0
    answers = pd.read_csv("answers.csv")
    assert answers["example"].tolist() == [0, 1, 2, 3, 4]
    assert len(set(answers["predicted"].tolist())) == 1


@pytest.mark.parametrize(
    ("shape", "layout", "model"),
    [((6, 6), "channels_last", "mlp"), ((8, 8, 3), "channels_last", "mlp"), ((8, 8), None, "mlp"), ((5,), None, "mlp")],
)
def test_the_test_examples_of_a_users_file_are_answered(tmp_path, monkeypatch, shape, layout, model):
    """Float64, without the channel of grey images or with it at the end, as the file that was trained on has them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((60, *shape)), np.arange(60) % 3
    np.savez("mine.npz", x_train=x[:40], y_train=y[:40], x_test=x[40:], y_test=y[40:])
    np.save("examples.npy", x[40:])
    words = ("dataset=npz", "dataset.path=mine.npz", f"model={model}", "scenario.clients=2", "rounds=1")
    done = run(*words, *([f"dataset.layout={layout}"] if layout else []), folder="run", pictures=False, quiet=True)
    export(done.folder, tmp_path / "home")
    assert main(["predict", "home", "examples.npy", "--to", "answers.csv"]) == 0
    answered = np.array(pd.read_csv("answers.csv")["predicted"])
    assert (answered == y[40:]).mean() == pytest.approx(done.metrics["test_accuracy"].iloc[-1])


def test_colour_images_are_taken_with_their_channel_at_either_end_and_rows_of_them_are_not(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (60, 8, 6, 3), np.uint8), np.arange(60) % 3
    np.savez("mine.npz", x_train=x[:40], y_train=y[:40], x_test=x[40:], y_test=y[40:])
    words = ("dataset=npz", "dataset.path=mine.npz", "dataset.layout=channels_last", "model=mlp", "scenario.clients=2")
    done = run(*words, folder="run", **QUIET)
    export(done.folder, tmp_path / "home")
    forms = {"last": x[40:], "first": np.moveaxis(x[40:], -1, 1), "flat": x[40:].reshape(20, -1)}
    for name, array in forms.items():
        np.save(f"{name}.npy", array)
    for name in ("last", "first"):
        assert main(["predict", "home", f"{name}.npy", "--to", f"{name}.csv"]) == 0
    assert Path("last.csv").read_bytes() == Path("first.csv").read_bytes()
    capsys.readouterr()
    assert main(["predict", "home", "flat.npy", "--to", "flat.csv"]) == 2
    assert "examples must be uint8 [S, 3, 8, 6], the channel in front, got uint8 [20, 144]" in complaint(capsys)


def test_a_network_with_entries_for_training_alone_answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("dataset=synthetic", "model=torch", "model.factory=own_networks:Counting", folder="run", **QUIET)
    export(done.folder, tmp_path / "home")
    x = torch.rand(5, *done.encoder.shape)
    np.save("examples.npy", x.numpy())
    assert main(["predict", "home", "examples.npy", "--to", "answers.csv"]) == 0
    with torch.no_grad():
        expected = done.model()(done.encoder.inputs(x)).argmax(dim=1)
    assert pd.read_csv("answers.csv")["predicted"].tolist() == expected.tolist()
    assert torch.load("home/model.pt", weights_only=True)["batches"].item() > 0


def test_what_the_folder_holds_is_not_run(patients, tmp_path):
    shutil.copytree(patients[0], tmp_path / "home")
    (tmp_path / "home" / "model.py").write_text("open('ran', 'w')")
    patients[1].to_csv(tmp_path / "rows.csv", index=False)
    ended = python("-m", "fedexp", "predict", "home", "rows.csv", "--to", "answers.csv", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert not list(tmp_path.rglob("ran"))


def damaged(home, tmp_path, name, change):
    shutil.copytree(home, tmp_path / "home")
    change(tmp_path / "home" / name)


def name_own_network(path):
    content = json.loads(path.read_text())
    content["config"]["model"] = {"_target_": "evil.Model"}
    path.write_text(json.dumps(content))


def swap(name, other):
    """Names a part of another role."""

    def write(path):
        content = json.loads(path.read_text())
        content["config"][name] = {"_target_": f"fedexp.parts.{other}"}
        path.write_text(json.dumps(content))

    return write


def other_weights(path):
    torch.save({"1.weight": torch.zeros(2, 2)}, path)


def change_weights(change):
    def write(path):
        torch.save({name: change(entry) for name, entry in torch.load(path).items()}, path)

    return write


def rescale(path):
    path.write_text(json.dumps({**json.loads(path.read_text()), "scale": 1e-320}))


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        (
            "model.pt",
            lambda path: path.write_bytes(b"no archive"),
            "model.pt is damaged, or holds no weights; export the",
        ),
        (
            "model.pt",
            change_weights(lambda entry: entry * torch.nan),
            "gives no finite answer for 200 of 200 rows, the",
        ),
        ("model.pt", change_weights(lambda entry: entry[..., :1]), "home cannot take the examples: "),
        (
            "model.pt",
            lambda path: path.write_bytes(path.read_bytes()[:-100]),
            "model.pt is damaged, or holds no weights",
        ),
        ("encoder.json", rescale, "its scale, mean and std take inputs beyond what float32 holds; is it damaged?"),
        ("model.pt", other_weights, "must fit the network, but lacks 1.bias"),
        ("model.pt", lambda path: path.unlink(), "home has no model.pt; give the folder"),
        ("encoder.json", lambda path: path.write_text("{}"), "must be as fedexp export writes it, but has nothing"),
        ("encoder.json", lambda path: path.unlink(), "has no encoder.json"),
        ("config.json", name_own_network, "names evil.Model, which is not part of fedexp and was never run here"),
        ("config.json", lambda path: path.unlink(), "is no run folder"),
        (
            "model.pt",
            change_weights(lambda entry: torch.zeros(1).expand(entry.shape)),
            "is damaged, or holds no weights",
        ),
        (
            "config.json",
            swap("model", "dataset.digits.Digits"),
            "model in home/config.json must be a model, got Digits",
        ),
        ("config.json", swap("features", "model.mlp.MLP"), "features in home/config.json must be a features, got MLP"),
    ],
)
def test_a_damaged_folder_is_one_line(patients, tmp_path, monkeypatch, capsys, name, change, said):
    monkeypatch.chdir(tmp_path)
    damaged(patients[0], tmp_path, name, change)
    patients[1].to_csv("rows.csv", index=False)
    assert main(["predict", "home", "rows.csv", "--to", "answers.csv"]) == 2
    assert said in complaint(capsys)
    assert not (tmp_path / "answers.csv").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{home}"], "predict needs an exported folder, rows and --to"),
        (["nowhere", "rows.csv", "--to", "answers.csv"], "there is no folder nowhere; fedexp export makes one"),
        (["{home}", "none.csv", "--to", "answers.csv"], "there is no file none.csv"),
        (["{home}", "rows.csv", "--to", "rows.csv"], "--to must be another file than the rows"),
        (
            ["{home}", "rows.csv", "--to", "short.csv"],
            "--to must be a new file, but short.csv is there; give another, or add --overwrite",
        ),
        (["{home}", "rows.csv", "--to", "answers.txt"], "--to must name a file that ends in .csv, got answers.txt"),
        (["{home}", "short.csv", "--to", "answers.csv"], "the rows must have the column age"),
        (["{home}", "taken.csv", "--to", "answers.csv"], "must not have a column predicted"),
    ],
)
def test_mistakes_are_one_line(patients, tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    frame = patients[1].head(3)
    frame.to_csv("rows.csv", index=False)
    frame.drop(columns="age").to_csv("short.csv", index=False)
    frame.assign(predicted=1).to_csv("taken.csv", index=False)
    assert main(["predict", *(word.format(home=patients[0]) for word in words)]) == 2
    assert said in complaint(capsys)
    assert not (tmp_path / "answers.csv").exists()


def test_other_columns_are_kept_to_the_letter_and_texts_stay_texts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    codes = np.array(["01", "a"])[np.arange(60) % 2]
    frame = pd.DataFrame({"code": codes, "size": np.arange(60.0), "ill": np.where(codes == "a", "yes", "no")})
    frame.to_csv("t.csv", index=False)
    words = ("dataset=table", "dataset.file=t.csv", "dataset.target=ill", "model=mlp", "scenario.clients=2")
    done = run(*words, folder="run", **QUIET)
    export(done.folder, tmp_path / "home")
    (tmp_path / "rows.csv").write_text("zip,code,size\n01000,01,5\nNA,01,7\n")
    assert main(["predict", "home", "rows.csv", "--to", "answers.csv"]) == 0
    lines = (tmp_path / "answers.csv").read_text().splitlines()
    assert [line.split(",")[:3] for line in lines[1:]] == [["01000", "01", "5"], ["NA", "01", "7"]]
    answers = pd.read_csv("answers.csv")
    with torch.no_grad():
        rows = done.encoder.rows(pd.DataFrame({"code": ["01", "01"], "size": [5.0, 7.0]}))
        assert rows[:, 0].tolist() == [1.0, 1.0]
        expected = done.model()(rows).softmax(dim=1).numpy()
    np.testing.assert_allclose(answers[["probability no", "probability yes"]], expected, rtol=1e-5)


@pytest.mark.parametrize("array", [np.array(1.0), np.array(["a"]), np.zeros((0, 1, 8, 8), np.uint8)])
def test_arrays_that_are_no_examples_are_one_line(images_home, tmp_path, monkeypatch, capsys, array):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", array)
    assert main(["predict", str(images_home), "x.npy", "--to", "answers.csv"]) == 2
    assert "must hold an array of numbers" in complaint(capsys)


def shorten(path):
    path.write_bytes(path.read_bytes()[:-7])


def pretend_more(path):
    path.write_bytes(path.read_bytes().replace(b"(1, 1, 8, 8)", b"(9999999999, 1, 8, 8)"))


@pytest.mark.parametrize("damage", [shorten, pretend_more, lambda path: path.write_bytes(b"\x93NUMPY\x01\x00\xff")])
def test_a_damaged_array_is_one_line(images_home, tmp_path, monkeypatch, capsys, damage):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.zeros((1, 1, 8, 8), np.float32))
    damage(Path("x.npy"))
    assert main(["predict", str(images_home), "x.npy", "--to", "answers.csv"]) == 2
    assert "x.npy cannot be read as an array: " in complaint(capsys)


def test_a_place_where_nothing_can_be_written_is_named(patients, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    patients[1].to_csv("rows.csv", index=False)
    assert main(["predict", str(patients[0]), "rows.csv", "--to", "rows.csv/below/answers.csv"]) == 2
    assert complaint(capsys).endswith("; give another --to")
    assert main(["export", str(patients[2].folder), "--to", "rows.csv/below"]) == 2
    assert complaint(capsys).startswith("fedexp: cannot write rows.csv/below: ")


def test_cells_with_line_breaks_come_back_as_they_were(patients, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = patients[1].head(3).assign(note=["first\rsecond", "a\r\nb", "c\nd"])
    frame.to_csv("rows.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
    assert main(["predict", str(patients[0]), "rows.csv", "--to", "answers.csv"]) == 0
    with Path("answers.csv").open(newline="") as file:
        assert [row["note"] for row in csv.DictReader(file, strict=True)] == frame["note"].tolist()


def test_a_number_of_many_digits_is_a_number_and_a_text_is_named(patients, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text(f"age,sex\n{10**24},f\n40,m\n")
    assert main(["predict", str(patients[0]), "rows.csv", "--to", "answers.csv"]) == 0
    assert "numbers are far from those of training" in capsys.readouterr().out
    Path("rows.csv").write_text("age,sex\n40,m\nold,f\n")
    assert main(["predict", str(patients[0]), "rows.csv", "--to", "second.csv"]) == 2
    assert complaint(capsys) == "fedexp: column age must hold numbers, but holds text: 'old'; correct the rows"


def test_whole_numbers_as_categories_are_the_same_for_all(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    grade = np.array([1, 2, 7])[np.arange(90) % 3]
    pd.DataFrame({"grade": grade, "x": 1.5, "ill": np.where(grade > 1, "yes", "no")}).to_csv("t.csv", index=False)
    words = ("dataset=table", "dataset.file=t.csv", "dataset.target=ill", "dataset.categories=[grade]")
    done = run(*words, "dataset.missing=fill", "scenario.clients=2", folder="run", **QUIET)
    rows = pd.DataFrame({"grade": [2.0, None, 7.0], "x": 1.5})  # as pandas has whole numbers beside a gap
    assert done.encoder.rows(rows)[:, :3].tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 1]]
    for grades in (["2", "", "7"], ["2.0", "", "7.0"], [2, None, 7]):  # as they may stand in a CSV file, or in Python
        spelled = rows.assign(grade=pd.Series(grades, dtype=object))
        assert done.encoder.rows(spelled)[:, :3].tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 1]]
    rows.to_parquet("rows.parquet")
    export(done.folder, tmp_path / "home")
    assert main(["predict", "home", "rows.parquet", "--to", "answers.csv"]) == 0
    with torch.no_grad():
        expected = done.model()(done.encoder.rows(rows)).softmax(dim=1).numpy()
    np.testing.assert_allclose(pd.read_csv("answers.csv")[["probability no", "probability yes"]], expected, rtol=1e-5)


@pytest.fixture(scope="module")
def images_home(tmp_path_factory):
    place = tmp_path_factory.mktemp("images")
    export(run(folder=place / "run", **QUIET).folder, place / "home")
    return place / "home"


def test_missing_numbers_in_an_array_are_one_line(images_home, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.full((1, 1, 8, 8), np.nan, np.float32))
    assert main(["predict", str(images_home), "x.npy", "--to", "answers.csv"]) == 2
    assert "x.npy must hold finite numbers" in complaint(capsys)


def grow(path):
    content = json.loads(path.read_text())
    content["config"]["model"]["hidden"] = [10**9]
    path.write_text(json.dumps(content))


def rename_answers(path):
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "answers": [*content["answers"], "maybe"]}))


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("config.json", grow, "must fit the network, which has"),
        ("encoder.json", rename_answers, "must fit the network|must give 3 answers"),
        (
            "config.json",
            lambda path: path.write_text(path.read_text().replace('"features": {', '"feature": {')),
            "features",
        ),
    ],
)
def test_a_folder_that_asks_for_too_much_is_one_line(patients, tmp_path, monkeypatch, capsys, name, change, said):
    monkeypatch.chdir(tmp_path)
    damaged(patients[0], tmp_path, name, change)
    patients[1].to_csv("rows.csv", index=False)
    assert main(["predict", "home", "rows.csv", "--to", "answers.csv"]) == 2
    assert re.search(said, complaint(capsys))


def test_a_model_of_text_is_asked_as_its_card_shows(tmp_path, monkeypatch, capsys):
    """The message leads to the card, and its lines answer."""
    monkeypatch.chdir(tmp_path)
    done = run("dataset=text", "model=char_lstm", "model.hidden=4", folder="run", **QUIET)
    export(done.folder, tmp_path / "home")
    Path("rows.txt").write_text("The licence\n")
    assert main(["predict", "home", "rows.txt", "--to", "answers.csv"]) == 2
    assert complaint(capsys) == (
        "fedexp: predict writes a table of answers, but the model in home predicts the next token; ask it in Python, "
        'as home/card.md shows below "Use it without fedexp"'
    )
    card = Path("home/card.md").read_text()
    assert "this model predicts the next token: ask it as above" in card
    monkeypatch.chdir("home")
    answered = python("-c", card.partition("```python\n")[2].partition("```")[0])
    likeliest = ast.literal_eval(answered.stdout)
    assert len(likeliest) == 5, answered.stderr
    example = torch.zeros(1, 80, dtype=torch.int64)
    example[0, :3] = torch.tensor([1, 2, 3])
    chances = done.model()(example).detach()[0, 2].softmax(dim=0)
    assert dict(likeliest)[done.encoder.answers[int(chances.argmax())]] == pytest.approx(float(chances.max()), rel=1e-4)


class Reviews(dict):
    """A split as Hugging Face's library gives it."""

    @property
    def features(self):
        return dict.fromkeys(self)


def test_texts_are_answered_and_the_card_answers_alike(tmp_path, monkeypatch):
    """A column of texts is cut, numbered and filled up by predict and by the lines of the card."""
    reviews = Reviews(review=["good, very good", "bad and bad", "so good it is", "bad"] * 5, label=[1, 0] * 10)
    library = SimpleNamespace(load_from_disk=lambda folder: {"train": reviews, "test": reviews})
    monkeypatch.setitem(sys.modules, "datasets", library)
    monkeypatch.chdir(tmp_path)
    Path("saved").mkdir()
    Path("saved/dataset_dict.json").write_text("{}")
    words = ("dataset.path=saved", "dataset.holds=texts", "dataset.input=review", "dataset.length=4")
    network = ("model=char_lstm", "model.hidden=4", "scenario.clients=2", "scenario.participants=2")
    done = run("dataset=huggingface", *words, *network, "engine.workers=1", folder="run", **QUIET)
    export(done.folder, tmp_path / "home")
    code = Path("home/card.md").read_text().partition("```python\n")[2].partition("```")[0]
    asked = re.search("text = '(.*)'", code)
    assert asked is not None
    pd.DataFrame({"id": [7, 8], "review": [asked[1], "bad and bad and so on"]}).to_csv("rows.csv", index=False)
    assert main(["predict", "home", "rows.csv", "--to", "answers.csv"]) == 0
    answers = pd.read_csv("answers.csv")
    assert list(answers) == ["id", "review", "predicted", "probability 0", "probability 1"]
    monkeypatch.chdir("home")
    shown = ast.literal_eval(python("-c", code).stdout)
    assert [shown["0"], shown["1"]] == pytest.approx(answers.iloc[0, 3:].tolist(), rel=1e-5)
    table = done.encoder.rows(pd.DataFrame({"review": ["bad and bad and", "bad"]}))
    assert (table[1, 1:] == 0).all()
    chances = done.model()(table[:1]).detach().softmax(dim=1)[0].tolist()
    assert chances == pytest.approx(answers.iloc[1, 3:].tolist(), rel=1e-5)
