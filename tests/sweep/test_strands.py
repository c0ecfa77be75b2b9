"""Strands move one at a time, and what each sets for the process is its own."""

import logging
import os
import sys
from io import StringIO
from typing import Any

import pytest

from fedexp.core import logs
from fedexp.core.cpu_cores import SHARE
from fedexp.sweep.strands import Strand


def test_one_moves_at_a_time():
    said: list[str] = []

    def work(name: str) -> Any:
        def live(strand: Strand) -> str:
            said.append(f"{name} begins")
            said.append(f"{name} hears {strand.ask(name)}")
            return name

        return live

    strands = [Strand(work(name)) for name in "ab"]
    assert said == []
    for strand in strands:
        strand.resume()
    assert [strand.asked for strand in strands] == ["a", "b"]
    strands[1].resume(2)
    strands[0].resume(1)
    assert said == ["a begins", "b begins", "b hears 2", "a hears 1"]
    assert [(strand.over, strand.result) for strand in strands] == [(True, "a"), (True, "b")]


def test_an_error_is_an_answer_and_a_result():
    def live(strand: Strand) -> None:
        with pytest.raises(ValueError, match="no"):
            strand.ask("may I")
        raise KeyError("mine")

    strand = Strand(live)
    strand.resume()
    strand.resume(ValueError("no"))
    assert strand.over
    assert isinstance(strand.error, KeyError)


def test_what_belongs_to_the_process_comes_and_goes_with_a_strand(capsys: pytest.CaptureFixture[str]):
    texts = {name: StringIO() for name in "ab"}

    def work(name: str) -> Any:
        def live(strand: Strand) -> None:
            with logs.kept():
                handler = logging.StreamHandler(texts[name])
                logging.getLogger().handlers[:] = [handler]
                logging.getLogger().setLevel(logging.INFO)
                sys.stdout, os.environ[SHARE] = texts[name], name
                for number in range(3):
                    logging.getLogger("x").info("%s %d", name, number)
                    print(f"{name} says")  # noqa: T201
                    assert os.environ[SHARE] == name
                    strand.ask(None)

        return live

    before, share = logging.getLogger().handlers[:], os.environ.get(SHARE)
    strands = [Strand(work(name)) for name in "ab"]
    for _ in range(4):
        for strand in strands:
            strand.resume()
            assert logging.getLogger().handlers == before
            assert os.environ.get(SHARE) == share
    assert all(strand.over and strand.error is None for strand in strands)
    for name in "ab":
        assert texts[name].getvalue() == "".join(f"{name} {number}\n{name} says\n" for number in range(3))
    assert capsys.readouterr().out == ""


def test_the_end_of_one_waits_until_it_has_saved():
    said: list[str] = []

    def live(strand: Strand) -> None:
        try:
            strand.ask("anything")
        finally:
            strand.heed()  # it has heard, and is not disturbed again
            said.append("saved")

    strand = Strand(live)
    strand.resume()
    strand.end(KeyboardInterrupt())
    assert said == ["saved"]
    assert isinstance(strand.error, KeyboardInterrupt)
