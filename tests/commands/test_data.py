import subprocess
import sys

import pytest

from fedexp.commands import data
from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError


def test_keys_of_a_dataset_are_given_as_a_run_takes_them(tmp_path, capsys):
    (tmp_path / "mine.csv").write_text("age,ward,sick,old\n1,a,yes,1\n2,b,no,2\n3,a,yes,1\n4,b,no,2\n")
    words = ["data_dir=" + str(tmp_path), "dataset.file=mine.csv", "dataset.test_fraction=0.5", "dataset.ignore=[old]"]
    assert data.act(["check", "table", "dataset.target=sick", *words]) == 0
    assert "2 training rows of 3 numbers, 2 classes" in capsys.readouterr().out
    with pytest.raises(ConfigError, match=r"unknown key dataset.splt; did you mean split"):
        data.act(["check", "torchvision", "dataset.name=KMNIST", "dataset.splt=a"])
    with pytest.raises(ConfigError, match=r"dataset.name=KMNIST must be given with one dataset, got torchvision and"):
        data.act(["check", "torchvision", "mnist", "dataset.name=KMNIST"])
    with pytest.raises(ConfigError, match=r"dataset.name must be followed by a value"):
        data.act(["check", "torchvision", "dataset.name"])


def test_what_is_there(tmp_path, capsys):
    folder = f"data_dir={tmp_path}"
    assert data.act(["check", "digits", "synthetic", folder]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("digits: the digits of scikit-learn (1,797 images")
    assert second == "synthetic: needs no files"
    assert data.act(["check", "text", folder]) == 0  # a key of it follows the scenario
    assert data.act(["download", "synthetic", folder]) == 0


def test_what_is_not_there(tmp_path, capsys):
    assert data.act(["check", "mnist", "digits", f"data_dir={tmp_path}"]) == 2
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("mnist: no MNIST/raw/train-images-idx3-ubyte.gz in ")
    assert "MD5 f68b3c2d" in first
    assert second.startswith("digits: ")


def test_unknown_name_stops_before_the_first_check(tmp_path, capsys):
    with pytest.raises(ConfigError, match="unknown dataset mnits; did you mean mnist"):
        data.act(["check", "digits", "mnits", f"data_dir={tmp_path}"])
    assert capsys.readouterr().out == ""


def test_npz_has_no_default_file(tmp_path):
    with pytest.raises(ConfigError, match=r"dataset.path must be given; set dataset.path=..."):
        data.act(["check", "npz", f"data_dir={tmp_path}"])


def test_real_files(real, capsys):
    assert data.act(["check", "mnist", f"data_dir={real(data.find_dataset('mnist', {}))}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all(line.endswith("is right") for line in lines)


def test_importing_the_datasets_is_light():
    names = catalog.options(conf_dir(), "dataset")
    program = "import sys\n" + "\n".join(f"import fedexp.parts.dataset.{name}" for name in names)
    program += "\nprint(sorted({'sklearn', 'pandas', 'scipy', 'torchvision'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
