"""Marks in time: wherever one looks, they are those that stand there."""

import numpy as np
import pytest

from fedexp.maths.poisson_marks import PoissonMarks


def all_marks(marks: PoissonMarks, client: int, end_s: float) -> list[float]:
    """The marks of a client from 0 on, one after another."""
    found, now_s, owner = [], 0.0, np.array([client])
    while (now_s := marks.first_after(owner, now_s)[0]) < end_s:
        found.append(now_s)
    return found


def test_looking_anywhere_finds_the_neighbouring_marks():
    marks = PoissonMarks(0, "test", np.array([0.5, 2.0, 0.1]))
    for client in range(3):
        line = np.array(all_marks(marks, client, 200.0))
        for now_s in (0.3, 7.0, 99.9, line[5], np.nextafter(line[5], 0)):
            before, after = (
                marks.last_until(np.array([client]), now_s)[0],
                marks.first_after(np.array([client]), now_s)[0],
            )
            assert after == line[line > now_s][0]
            assert before == line[line <= now_s][-1] if (line <= now_s).any() else before < 0


def test_clients_do_not_depend_on_each_other():
    marks, now_s = PoissonMarks(1, "test", np.linspace(0.1, 3, 40)), 12.5
    owner = np.random.default_rng(0).permutation(40)
    for look in (marks.first_after, marks.last_until):
        together = look(owner, now_s)
        assert together.tolist() == [look(np.array([client]), now_s)[0] for client in owner]
    assert (marks.first_after(owner, now_s) != PoissonMarks(2, "test", marks.rate).first_after(owner, now_s)).all()


def test_gaps_are_exponential_and_as_long_as_the_rate_says():
    line = np.array(all_marks(PoissonMarks(0, "test", np.array([0.25])), 0, 8000.0))
    gaps = np.diff(line)
    assert len(line) == pytest.approx(2000, abs=4 * 45)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.1)
    assert (gaps > 4).mean() == pytest.approx(np.exp(-1), abs=0.045)
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 0.09


def test_a_rate_that_changes_thins_the_marks():
    thinning = lambda _, time_s: np.where(time_s % 10 < 5, 1.0, 0.2)  # noqa: E731
    line = np.array(all_marks(PoissonMarks(0, "test", np.array([1.0]), thinning), 0, 2000.0))
    early = (line % 10 < 5).sum()
    assert early == pytest.approx(1000, abs=4 * 32)
    assert len(line) - early == pytest.approx(200, abs=4 * 15)
    every = PoissonMarks(0, "test", np.array([1.0]))
    assert set(line) <= set(all_marks(every, 0, 2000.0))


def test_without_a_rate_there_are_no_marks():
    marks = PoissonMarks(0, "test", np.array([0.0, 1.0]))
    assert marks.first_after(np.arange(2), 5.0)[0] == np.inf
    assert marks.last_until(np.arange(2), 5.0)[0] == -np.inf
    assert np.isfinite(marks.first_after(np.arange(2), 5.0)[1])
