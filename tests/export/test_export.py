"""What a user takes home, and that it works where fedexp is not installed."""

import json
import os
import re

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from command_line import complaint, python
from safetensors.torch import load_file

from fedexp import load, run
from fedexp.cli import main
from fedexp.core.errors import ConfigError
from fedexp.export import export as exporting
from fedexp.export.export import export
from fedexp.export.trained_model import load_encoder

WITHOUT_FEDEXP = "import sys; sys.modules['fedexp'] = None; exec(open('usage.py').read())"
QUIET = {"rounds": 2, "pictures": False, "quiet": True}


def usage_of(folder):
    """Puts the lines of the card into a file, as a user would."""
    code = re.search(r"```python\n(.*?)```", (folder / "card.md").read_text(), re.DOTALL)
    assert code is not None
    (folder / "usage.py").write_text(code[1])
    return python("-c", WITHOUT_FEDEXP, cwd=folder)


@pytest.fixture(scope="module")
def patients(tmp_path_factory):
    """A table with numbers, texts and missing cells, and the run that was trained on it."""
    place, rng = tmp_path_factory.mktemp("patients"), np.random.default_rng(0)
    age, sex = rng.integers(20, 90, 200), rng.choice(["f", "m"], 200)
    frame = pd.DataFrame({"age": age, "sex": sex, "ill": np.where(age > 55, "yes", "no"), "cost": 100.0 + 3 * age})
    frame.loc[3, "sex"] = None
    frame.to_csv(place / "patients.csv", index=False)
    return place, frame


def train(place, target, *words):
    table = ("dataset=table", f"dataset.file={place / 'patients.csv'}", "dataset.missing=fill", "model=mlp")
    folder = place / f"{target}, {len(words)} words"
    return run(*table, f"dataset.target={target}", *words, folder=folder, **QUIET)


def test_a_model_of_a_table_answers_without_fedexp(patients, tmp_path):
    place, _ = patients
    done = train(place, "ill", "dataset.ignore=[cost]")
    files, missing_rounds = export(done.folder, tmp_path / "home")
    assert missing_rounds == ""
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == sorted(files)
    ended = usage_of(tmp_path / "home")
    assert ended.returncode == 0, ended.stderr
    row = pd.DataFrame({"age": [done.encoder.columns[0].mean], "sex": ["f"]})
    expected = done.model()(done.encoder.rows(row)).softmax(dim=1)[0].tolist()
    assert ended.stdout == f"{dict(zip(('no', 'yes'), expected, strict=True))}\n"


def test_a_model_of_numbers_answers_in_their_units(patients, tmp_path):
    done = train(patients[0], "cost", "dataset.ignore=[ill]", "dataset.predicts=numbers", "loss=mse", "local.lr=0.1")
    export(done.folder, tmp_path / "home")
    ended = usage_of(tmp_path / "home")
    assert ended.returncode == 0, ended.stderr
    assert 150 < float(ended.stdout.strip("[]\n")) < 400  # of somebody of mean age
    deviation = done.encoder.target_columns[0].std
    units = (
        f"deviations of the training targets, and losses are of targets that were divided by these: {deviation:.4g} for"
    )
    assert units in (tmp_path / "home" / "card.md").read_text()


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return run(
        "model=lenet",
        "dataset=synthetic",
        "dataset.shape=[1,28,28]",
        folder=tmp_path_factory.mktemp("i") / "r",
        **QUIET,
    )


def test_all_weights_are_the_same_and_run_everywhere(images, tmp_path):
    home = tmp_path / "home"
    export(images.folder, home, as_onnx=True)
    weights = torch.load(home / "model.pt", weights_only=True)
    read = load_file(home / "model.safetensors")
    assert weights.keys() == read.keys()
    assert all(torch.equal(weights[name], read[name]) for name in weights)
    assert usage_of(home).returncode == 0
    inputs = torch.rand(3, *images.encoder.shape)
    with torch.no_grad():
        expected = images.model()(inputs).numpy()
    session = onnxruntime.InferenceSession(home / "model.onnx")
    outputs = session.run(None, {"inputs": inputs.numpy()})[0]
    np.testing.assert_allclose(np.asarray(outputs), expected, rtol=1e-4, atol=1e-5)


def test_the_card_of_a_clustered_run_tells_the_global_models_scores_as_nobodys(tmp_path):
    words = ("clustering=ifca", "clustering.count=2", "scenario.clients=4", "scenario.participants=4")
    done = run(*words, folder=tmp_path / "run", **QUIET)
    export(done.folder, tmp_path / "home", client=1)
    text = (tmp_path / "home" / "card.md").read_text()
    score = f"{done.summary['final_accuracy']:.4g}"
    assert f"| accuracy | {score} | test examples, the global model, which is no cluster's |" in text
    assert "everybody's model" not in text


def test_the_card_tells_scores_and_privacy(tmp_path):
    done = run(
        "privacy=dp_sgd",
        "privacy.epsilon=3",
        "privacy.clip=1",
        "privacy.delta=1e-4",
        "model=mlp",
        folder=tmp_path / "run",
        **QUIET,
    )
    export(done.folder, tmp_path / "home", number=2)
    text = (tmp_path / "home" / "card.md").read_text()
    assert f"| accuracy | {done.summary['final_accuracy']:.4g} | test examples, everybody's model |" in text
    spent = done.summary["privacy"]
    assert spent["promise"] in text
    assert f"{spent['epsilon_pld']:.4g} by privacy loss distributions (PLD), {spent['epsilon_rdp']:.4g} by" in text
    assert done.summary["data_sha256"] not in text


def test_nobody_draws_the_noise_again_from_an_export(tmp_path):
    private = ("privacy=dp_sgd", "privacy.noise_multiplier=1", "privacy.clip=1", "privacy.delta=1e-4")
    following = ("fleet=simulated", "fleet.speed_high=${seed}")
    done = run(*private, *following, "seed=90210", "model=mlp", folder=tmp_path / "run", **QUIET)
    export(done.folder, tmp_path / "home")
    texts = [path.read_text() for path in (tmp_path / "home").iterdir() if path.suffix in (".md", ".json", ".py")]
    assert len(texts) == 4
    assert not [text for text in texts if "90210" in text or done.summary["data_sha256"] in text]
    assert "The seed and the digest of the data are left out" in "".join(texts)
    open_run = run("seed=90210", "model=mlp", folder=tmp_path / "open", **QUIET)
    export(open_run.folder, tmp_path / "second")
    assert (tmp_path / "second" / "config.json").read_bytes() == (open_run.folder / "config.json").read_bytes()


@pytest.mark.parametrize("form", ["2", '"2"', "2.0", "numpy.int64(2)"])
def test_the_card_knows_a_category_that_is_written_as_a_number(form, tmp_path):
    rows = [{"ward": n % 3, "age": 40 + n % 30, "ill": n % 2} for n in range(90)]
    pd.DataFrame(rows).to_csv(tmp_path / "rows.csv", index=False)
    table = ("dataset=table", f"dataset.file={tmp_path / 'rows.csv'}", "dataset.categories=[ward]", "model=mlp")
    done = run(*table, "dataset.target=ill", folder=tmp_path / "run", **QUIET)
    export(done.folder, tmp_path / "home")
    card = tmp_path / "home" / "card.md"
    card.write_text(
        card.read_text().replace('"ward": "0"', f'"ward": {form}').replace("import json", "import numpy, json")
    )
    ended = usage_of(tmp_path / "home")
    assert ended.returncode == 0, ended.stderr
    age = next(column.mean for column in done.encoder.columns if column.name == "age")
    row = pd.DataFrame({"ward": ["2"], "age": [age]})
    expected = done.model()(done.encoder.rows(row)).softmax(dim=1)[0].tolist()
    assert ended.stdout == f"{dict(zip(('0', '1'), expected, strict=True))}\n"


def test_the_card_tells_that_an_accuracy_is_the_share_of_a_class(tmp_path):
    rows = pd.DataFrame({"age": np.arange(200) % 7, "ill": np.where(np.arange(200) % 20 == 0, "yes", "no")})
    rows.to_csv(tmp_path / "patients.csv", index=False)
    done = train(tmp_path, "ill", "keep_states=1")
    note = done.summary["constant_answer"]
    assert note.endswith("is the share of the largest class (no)")
    export(done.folder, tmp_path / "last")
    assert f"On the test examples {note}" in (tmp_path / "last" / "card.md").read_text()
    export(done.folder, tmp_path / "first", number=1)
    assert note not in (tmp_path / "first" / "card.md").read_text()  # the summary tells of the last round


@pytest.mark.parametrize(
    ("word", "examples"),
    [
        ("evaluation.personal_fraction=0.2", "held-out examples"),
        ("evaluation.own_test=true", "own test examples"),
    ],
)
def test_the_card_says_whose_examples_clients_are_measured_on(word, examples, patients, tmp_path):
    frame = patients[1]
    frame.assign(site=["A", "B"] * 100).to_csv(tmp_path / "patients.csv", index=False)
    done = train(tmp_path, "ill", "dataset.client=site", "federation=subject", "dataset.ignore=[cost]", word)
    export(done.folder, tmp_path / "home")
    lines = (tmp_path / "home" / "card.md").read_text().splitlines()
    measured = [line for line in lines if line.endswith(f"| clients' {examples}, the model that each of them uses |")]
    assert [line.split(" | ")[0] for line in measured] == [
        "| accuracy",
        "| accuracy, the worst tenth of clients",
        "| accuracy, the best tenth of clients",
        "| accuracy, standard deviation over clients",
        "| accuracy, Jain's index over clients",
    ]


def test_the_card_of_a_model_that_is_never_sent_says_that_no_promise_covers_it(tmp_path):
    words = ("privacy=dp_sgd", "privacy.noise_multiplier=1", "privacy.clip=1", "privacy.delta=1e-4", "local=ditto")
    run(*words, "model=mlp", folder=tmp_path / "run", **QUIET)
    for client, covered in ((None, True), (3, False)):
        export(tmp_path / "run", tmp_path / f"of_{client}", client=client)
        text = (tmp_path / f"of_{client}" / "card.md").read_text()
        assert ("does not cover this model" in text) == (not covered)
        assert ("This holds for the end of the run" in text) == covered


def test_other_data_than_the_run_was_trained_on_are_refused(patients, tmp_path):
    """Their means and classes would be those of another table."""
    table = tmp_path / "patients.csv"
    patients[1].to_csv(table, index=False)
    done = train(tmp_path, "ill", "dataset.ignore=[cost]")
    table.write_text(table.read_text().replace(",no,", ",zz-no,"))
    for use in (lambda: export(done.folder, tmp_path / "home"), lambda: load(done.folder).encoder):
        with pytest.raises(ConfigError, match="since the data of dataset=table changed after the run began; put back"):
            use()
    assert not (tmp_path / "home").exists()


def test_other_data_are_refused_where_only_the_summary_or_only_the_state_has_a_digest(patients, tmp_path):
    table = tmp_path / "patients.csv"
    patients[1].to_csv(table, index=False)
    done = train(tmp_path, "ill", "dataset.ignore=[cost]")
    table.write_text(table.read_text().replace(",no,", ",zz-no,"))
    summary = (done.folder / "summary.json").read_bytes()
    (done.folder / "summary.json").unlink()
    with pytest.raises(ConfigError, match="the data of dataset=table changed after the run began"):
        load_encoder(done.folder)
    (done.folder / "summary.json").write_bytes(summary)
    state = torch.load(done.folder / "state.pt", weights_only=True)
    torch.save({**state, "inputs": {}}, done.folder / "state.pt")  # as earlier versions wrote it
    with pytest.raises(ConfigError, match="the data of dataset=table changed after the run began"):
        export(done.folder, tmp_path / "home")


def test_the_card_shows_the_texts_of_others_as_they_are(tmp_path):
    frame = pd.DataFrame({"age": [*range(40)], "ill": ["no", "yes|<b>x</b>"] * 20, "at": ["<script>", "b"] * 20})
    frame.to_csv(tmp_path / "patients.csv", index=False)
    words = (
        "dataset.client=at",
        "federation=subject",
        "evaluation.metrics=[accuracy,class_recall]",
        "dataset.ignore=[]",
    )
    done = train(tmp_path, "ill", *words)
    summary = json.loads((done.folder / "summary.json").read_text())
    (done.folder / "summary.json").write_text(json.dumps({**summary, "data_sha256": "<b>\n\n## Privacy"}))
    export(done.folder, tmp_path / "home", client="<script>")
    text = (tmp_path / "home" / "card.md").read_text().split("```python")[0]
    assert "The model that client \\<script> uses" in text
    assert f"`{summary['data_sha256']}`" in text
    assert "## Privacy" not in text.split("## Scores")[0]
    assert "recall.yes\\|\\<b>x\\</b> |" in text


def test_an_export_is_no_run(images, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    export(images.folder, tmp_path / "home")
    before = sorted(path.name for path in (tmp_path / "home").iterdir())
    assert main(["resume", "home"]) == 2
    assert complaint(capsys) == (
        "fedexp: home is an exported model and no run; name the folder of the run, or ask the model: "
        "fedexp predict home"
    )
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == before


def test_nothing_is_left_behind_by_a_failure(images, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exporting, "as_safetensors", fail)
    with pytest.raises(OSError, match="No space"):
        export(images.folder, tmp_path / "new" / "home")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "export needs a run folder and --to"),
        (["{run}"], "export needs a run folder and --to"),
        (["nowhere", "--to", "home"], "there is no folder nowhere"),
        (["{run}", "--to", "full"], "--to must be a new folder, but full is there; give another, or remove it"),
        (["{run}", "--to", "home", "--round", "0"], "--round must be an integer >= 1, got 0"),
        (["{run}", "--to", "home", "--client", "99"], "--client must be a client of the run, 0 to 9, got 99"),
        (["full", "--to", "home"], "full is no run folder"),
    ],
)
def test_mistakes_are_one_line(images, tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert main(["export", *(word.format(run=images.folder) for word in words)]) == 2
    assert said in complaint(capsys)
    assert not (tmp_path / "home").exists()


def test_a_network_that_no_source_tells_names_its_factory(tmp_path):
    (tmp_path / "winding_nets.py").write_text(
        "from torch import nn\n"
        "class Winding(nn.Module):\n"
        "    def __init__(self, shape, classes):\n"
        "        super().__init__()\n"
        "        self.last = nn.Linear(64, classes)\n"
        "    def forward(self, x):\n"
        "        return self.last(x.flatten(1) if x.abs().sum() >= 0 else x)\n"
    )
    words = ["model=torch", "model.factory=winding_nets:Winding", "engine=loop", "rounds=1", "pictures=false"]
    ended = python("-m", "fedexp", "run", *words, "hydra.run.dir=out", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    ended = python("-m", "fedexp", "export", "out", "--to", "home", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert not (tmp_path / "home" / "model.py").exists()
    text = (tmp_path / "home" / "card.md").read_text()
    assert "model = Winding(shape=(1, 8, 8), classes=10)" in text
    assert "not in this folder (its forward depends on the numbers: TraceError)" in text
    code = text.partition("```python\n")[2].partition("```")[0]
    (tmp_path / "home" / "usage.py").write_text(code)
    ended = python("-c", WITHOUT_FEDEXP, cwd=tmp_path / "home", env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert ended.returncode == 0, ended.stderr
    encoder = json.loads((tmp_path / "home" / "encoder.json").read_text())
    assert encoder["shape"] == [1, 8, 8]


def test_training_alone_has_no_model_of_everybody(tmp_path):
    done = run("algorithm=local", "scenario.clients=2", folder=tmp_path / "run", **QUIET)
    with pytest.raises(ConfigError, match="every client trained alone in this run; choose by --client, 0 to 1"):
        export(done.folder, tmp_path / "home")
    export(done.folder, tmp_path / "home", client=1)
    assert "a mean over the clients' own models" in (tmp_path / "home" / "card.md").read_text()


def test_the_card_of_a_client_has_its_own_scores_on_its_own_data(tmp_path):
    words = ("evaluation.personal_fraction=0.2", "evaluation.metrics=[accuracy,auroc]", "scenario.clients=2")
    done = run("algorithm=local", *words, folder=tmp_path / "run", **QUIET)
    scores = pd.read_csv(done.folder / "client_scores.csv").set_index("client")
    for client in (0, 1):
        export(done.folder, tmp_path / f"home {client}", client=client)
        text = (tmp_path / f"home {client}" / "card.md").read_text()
        row, own = scores.loc[client], "examples that it held out, its own model"
        assert f"| accuracy | {row['personal']:.4g} | {row['examples']} {own} |" in text
        assert f"| accuracy | {row['test']:.4g} | 360 test examples, its own model |" in text
        assert len(re.findall(rf"^\| (?:loss|auroc) \| [\d.]+ \| \d+ {own}", text, re.MULTILINE)) == 2
        assert re.search(rf"Client {client} has \d+ training examples, {row['examples']} more it held out", text)
    assert len(set(scores["personal"])) > 1


def test_the_card_of_a_client_that_held_nothing_out_has_the_test_data(tmp_path):
    done = run("algorithm=local", "scenario.clients=4", folder=tmp_path / "run", **QUIET)
    export(done.folder, tmp_path / "home", client=3)
    text = (tmp_path / "home" / "card.md").read_text()
    assert "test examples, its own model" in text
    assert "held out" not in text


def test_the_card_clips_as_the_run_did(patients, tmp_path):
    done = train(
        patients[0], "ill", "dataset.ignore=[cost,sex]", "dataset.statistics=clipped", "dataset.ranges={age: [50,60]}"
    )
    export(done.folder, tmp_path / "home")
    card = tmp_path / "home" / "card.md"
    assert "Columns are encoded by ranges and categories that were given." in card.read_text()
    text = card.read_text()
    answers = []
    for age in (60, 99):
        card.write_text(text.replace('"age": 55.0', f'"age": {age}'))
        answers.append(usage_of(tmp_path / "home").stdout)
    assert answers[0] == answers[1] != ""


def test_rounds_that_the_model_does_not_know_are_told(tmp_path, capsys):
    done = run("model=logistic", "keep_states=1", folder=tmp_path / "run", **{**QUIET, "rounds": 3})
    (done.folder / "state.pt").write_bytes(b"no archive")
    (done.folder / "states" / "000003.pt").unlink()
    assert main(["export", str(done.folder), "--to", str(tmp_path / "home")]) == 0
    told = "note  the model is that after round 2 of the 3 in metrics.csv, since "
    assert told in (printed := capsys.readouterr().out)
    assert "state.pt cannot be read\n" in printed
    assert main(["export", str(done.folder), "--to", str(tmp_path / "second"), "--round", "2"]) == 0
    assert "note" not in capsys.readouterr().out
