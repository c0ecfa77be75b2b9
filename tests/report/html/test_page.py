"""The page as a file: what is in it, how large it is, and that no folder can smuggle anything into it."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

from fedexp import cli
from fedexp.report.draw import style

_EVIL = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def page_of(*words: str) -> str:
    assert cli.main(["report", *words, "--out", "page.html"]) == 0
    return Path("page.html").read_text(encoding="utf-8")


def test_the_page_is_the_only_file(make_run, capsys):
    make_run("sweep/0")
    before = set(Path("sweep").rglob("*"))
    assert cli.main(["report", "sweep"]) == 0
    assert capsys.readouterr().out.endswith("page  sweep/report.html\n")
    assert set(Path("sweep").rglob("*")) - before == {Path("sweep/report.html")}


def test_the_parts_that_have_data(make_run):
    make_run("sweep/0")
    make_run("sweep/1", choices={"selector": "all"})
    titles = re.findall(r"<h2>(.*?)</h2>", page_of("sweep"))
    assert titles == [
        "Results",
        "Learning curves",
        "Stages and rounds",
        "Selections",
        "Federations",
        "Differences",
        "Runs",
    ]


def test_nothing_is_loaded_from_anywhere_and_every_drawing_has_a_name(make_run):
    make_run("0", metrics={"sim_s": [1, 2, 3, 4], "train_s": 0.1})
    page = page_of("0")
    assert "default-src 'none'" in page
    assert re.findall(r"""(?:src|href|url|@import)\s*[=(]\s*["']?(?!#|data:)\w+""", page) == []
    assert "http://" not in page
    assert "https://" not in page
    drawings = re.findall(r'<svg viewBox="[^"]*" role="img" aria-label="[^"]+"', page)
    assert len(drawings) == page.count("<figure") > 5


def test_words_of_folders_are_only_words(make_run):
    make_run("a/0", choices={"selector": _EVIL}, metrics={f"x.{_EVIL}": [1, 2, 3, 4]}, keys={"evil": _EVIL})
    make_run("a/1", choices={"selector": "random"})
    (make_run(f"a/{_EVIL.replace('/', '')}") / "federation.csv").write_text(f"client,examples,{_EVIL}\n0,1,1\n1,2,2\n")
    page = page_of("a")
    assert "<img" not in page
    assert page.count("</script>") == page.count("<script")


def test_two_settings_as_heat_maps(make_run):
    for rule, accuracy in (("mean", 0.25), ("krum", 0.75)):
        for attack in ("none", "sign_flip"):
            make_run(f"g/{rule}_{attack}", accuracy=(accuracy,), choices={"aggregator": rule, "attack": attack})
    page = page_of("g", "--grid", "aggregator,attack")
    assert re.findall(r">(0\.\d\d\d)</text>", page) == ["0.750"] * 3 + ["0.250"] * 3
    assert '<th scope="row"><span>mean</span></th><td class="number">0.250</td>' in page
    assert '<th scope="row"><span>krum</span></th><td class="number"><strong>0.750</strong></td>' in page


def test_the_page_of_a_large_sweep_stays_small(make_sweep):
    page = page_of(str(make_sweep(60, 300)))
    assert len(page.encode()) < 5_000_000
    assert "Choose among 60 methods" in page


def test_style_and_script_travel_with_the_package():
    own = files("fedexp.report.html")
    assert all(own.joinpath(name).is_file() for name in ("page.css", "page.js"))


def test_the_colours_in_the_light_are_those_of_the_pictures():
    sheet = files("fedexp.report.html").joinpath("page.css").read_text(encoding="utf-8")
    light = dict(re.findall(r"--(\w+): light-dark\((#\w{6})", sheet))
    assert [light[f"c{number}"] for number in range(len(style.COLORS))] == [color.lower() for color in style.COLORS]
    assert [light[name] for name in ("ink", "quiet", "rule", "card")] == [
        style.INK,
        style.QUIET,
        style.RULE,
        style.PAPER,
    ]
