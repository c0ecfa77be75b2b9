"""The model of a run folder: that of the round, of the client, and nothing that was changed by hand."""

import numpy as np
import pytest
import torch
from command_line import python
from sklearn.metrics import accuracy_score

from fedexp import load, run
from fedexp.core.errors import ConfigError
from fedexp.export.trained_model import load_trained

QUIET = {"rounds": 2, "pictures": False, "quiet": True}


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    return run("keep_states=1", folder=tmp_path_factory.mktemp("digits") / "run", **QUIET)


def accuracy_of(done):
    """The share of right answers of `done.model()` on the test images, as a user would work it out."""
    from sklearn.datasets import load_digits

    from fedexp.parts.dataset.digits import held_out_images

    images, labels = map(np.asarray, load_digits(return_X_y=True))
    test = held_out_images(labels)
    x = torch.from_numpy(images[test]).view(-1, 1, 8, 8)
    kind = getattr(torch, done.encoder.dtype)
    outputs = done.model()(done.encoder.inputs(x.to(kind)))
    return accuracy_score(labels[test], outputs.argmax(dim=1))


def test_the_model_has_the_accuracy_of_the_table(digits):
    assert accuracy_of(digits) == pytest.approx(digits.summary["final_accuracy"], abs=1e-9)


def test_a_round_is_chosen(digits):
    first, last = (digits.model(round=number).state_dict() for number in (1, 2))
    newest = digits.model().state_dict()
    assert all(torch.equal(last[name], newest[name]) for name in newest)
    assert not torch.equal(first["1.weight"], last["1.weight"])


def test_a_round_that_was_not_saved_is_one_line(digits):
    with pytest.raises(ConfigError, match=r"^round must be a round whose state was saved, got 7; there: 1, 2"):
        digits.model(round=7)


def test_a_client_that_is_not_there_is_one_line(digits):
    with pytest.raises(ConfigError, match="0 to 9, got 10"):
        digits.model(client=10)


def test_a_client_uses_what_it_keeps_for_itself(tmp_path):
    done = run("algorithm=fedper", folder=tmp_path / "run", **QUIET)
    shared, own = done.model().state_dict(), done.model(client=0).state_dict()
    differing = [name for name in shared if not torch.equal(shared[name], own[name])]
    assert differing == [name for name in shared if name.startswith("3.")]  # the last layer stays at home


def test_clusters_ask_for_a_client(tmp_path):
    done = run(
        "clustering=output_similarity", "clustering.threshold=0.001", "scenario.public_fraction=0.1",
        "scenario.clients=3", "scenario.participants=3", folder=tmp_path / "run", **QUIET,
    )  # fmt: skip
    message = "use the models of their clusters, of which there are [123]; choose by --client, 0 to 2"
    with pytest.raises(ConfigError, match=message):
        load_trained(done.folder)
    assert done.model(client=2) is not None


def test_a_state_that_is_not_that_of_the_table_is_refused(tmp_path):
    other = run("seed=1", folder=tmp_path / "run", **QUIET)
    lines = (other.folder / "digests.csv").read_text().splitlines()
    fields = lines[-1].split(",")
    (other.folder / "digests.csv").write_text(
        "\n".join([*lines[:-1], ",".join([fields[0], "0" * 32, *fields[2:]]), ""])
    )
    with pytest.raises(ConfigError, match=r"digests\.csv is whole up to round 1 only"):
        load_trained(other.folder)


def test_a_finished_run_is_loaded_from_its_folder(digits):
    assert load(digits.folder).summary == digits.summary
    assert load(str(digits.folder)).metrics.equals(digits.metrics)


def test_a_folder_without_a_run_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match=r"must be the folder of a run, but has no metrics\.csv"):
        load(tmp_path)


def test_the_command_line_takes_what_is_not_finished(digits, tmp_path):
    (tmp_path / "copy").mkdir()
    for path in digits.folder.iterdir():
        if path.is_file() and path.name != "summary.json":
            (tmp_path / "copy" / path.name).write_bytes(path.read_bytes())
    ended = python("-m", "fedexp", "export", "copy", "--to", "taken", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "after round 2 of 2" in (tmp_path / "taken" / "card.md").read_text()


def test_a_damaged_state_is_said_to_be_damaged(digits, tmp_path):
    for path in digits.folder.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    for path in tmp_path.glob("state*.pt"):
        path.write_bytes(b"no archive")
    with pytest.raises(ConfigError, match=r"can be read, but damaged files: .*state\.pt; put them back or run"):
        load_trained(tmp_path)


def test_a_finished_run_without_states_is_not_to_be_resumed(digits, tmp_path):
    for path in digits.folder.iterdir():
        if path.is_file() and path.suffix != ".pt":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    with pytest.raises(ConfigError, match=r"it is finished, so state\.pt was removed; put it back or run"):
        load_trained(tmp_path)
