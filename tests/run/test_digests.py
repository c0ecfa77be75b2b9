"""The hash chains in digests.csv: whatever is changed in a table, that table does not fit in that round."""

from collections.abc import Callable

import pytest
import torch

from fedexp.core.values import Layout, State, Weights
from fedexp.files.run_tables import Line
from fedexp.run import digests
from fedexp.run.tables import TIMINGS

Tables = dict[str, list[Line]]
ROUNDS = 4


def line(number: int, **cells: object) -> Line:
    return {"round": str(number), **{name: str(cell) for name, cell in cells.items()}}


def tables() -> Tables:
    rounds = range(1, ROUNDS + 1)
    return {
        "metrics.csv": [line(number, test_loss=1 / number, sim_s=2.5, train_s=0.1, host_s=number) for number in rounds],
        "clients.csv": [line(number, client=client, examples=9) for number in rounds for client in (4, 2)],
        "clusters.csv": [
            line(0, event="join", client=4),
            line(1, event="model", client=4),
            line(3, event="", client=2),
        ],
    }


def of_round(lines: list[Line], number: int) -> list[Line]:
    return [entry for entry in lines if digests.round_of(entry) == number]


def state(number: int) -> State:
    model = Weights(torch.tensor([float(number)]), Layout(("w",), ((1,),), 1))
    return State(number, (model,), {}, 0.0, 0.0, 0)


def written(seed: int = 0) -> list[Line]:
    """The lines of digests.csv of a run with these tables."""
    lines: list[Line] = [{}]
    for number in range(1, ROUNDS + 1):
        contents = {name: of_round(table, number) for name, table in tables().items()}
        lines.append(digests.next_line(lines[-1], state(number + seed), contents) | {"round": str(number)})
    return lines[1:]


def misfits(lines: list[Line], changed: Tables) -> set[tuple[str, int]]:
    chains = digests.make_chains(lines, changed)
    return {(name, number) for name in changed for number in chains.lines if not chains.fits(name, number)}


def test_what_a_run_wrote_fits():
    assert misfits(written(), tables()) == set()
    assert digests.make_chains(written(), tables()).objection(state(ROUNDS)) == ""


CELLS = [(name, at, cell) for name, table in tables().items() for at, entry in enumerate(table) for cell in entry]


@pytest.mark.parametrize(("name", "at", "cell"), [each for each in CELLS if each[2] != "round"])
def test_every_cell_but_a_clock_is_covered(name: str, at: int, cell: str):
    changed = tables()
    changed[name][at][cell] += "1"
    number = digests.round_of(changed[name][at])
    assert misfits(written(), changed) == (set() if cell in TIMINGS else {(name, number)})


CHANGES: dict[str, tuple[Callable[[list[Line]], object], set[int]]] = {
    "a line less": (lambda lines: lines.pop(2), {2}),
    "a line twice": (lambda lines: lines.insert(2, lines[2]), {2}),
    "lines of a round in another order": (lambda lines: lines.insert(3, lines.pop(2)), {2}),
    "rounds in another order": (lambda lines: lines.extend([lines.pop(0), lines.pop(0)]), {1}),
    "a line of an earlier round at the end": (lambda lines: lines.append(lines[2]), {2}),
    "a round under another number": (lambda lines: [entry.update(round="3") for entry in lines[2:4]], {2, 3}),
    "a column more": (lambda lines: [entry.update(sure="1") for entry in lines], {1, 2, 3, 4}),
    "nothing": (lambda lines: lines.clear(), {1, 2, 3, 4}),
}


@pytest.mark.parametrize(("change", "rounds"), CHANGES.values(), ids=CHANGES)
def test_what_is_changed_is_named_with_its_round(change: Callable[[list[Line]], object], rounds: set[int]):
    changed = tables()
    change(changed["clients.csv"])
    assert misfits(written(), changed) == {("clients.csv", number) for number in rounds}


def test_lines_where_a_run_wrote_none_do_not_fit():
    changed = tables()
    changed["clusters.csv"].insert(2, line(2, event="join", client=1))
    assert misfits(written(), changed) == {("clusters.csv", 2)}


def test_another_digest_fits_no_table():
    lines = written()
    lines[2]["digest"] = "0" * 32
    assert misfits(lines, tables()) == {(name, 3) for name in tables()}
    lines = written()
    lines[2]["clients.csv"] = "0" * 32
    assert misfits(lines, tables()) == {("clients.csv", 3), ("clients.csv", 4)}


def test_the_lines_after_a_gap_do_not_count():
    lines = written()
    for cut in (lines[:2], [*lines[:2], lines[3]], [*lines[:2], lines[1], *lines[2:]]):
        assert [*digests.make_chains(cut, tables()).lines] == [1, 2]


def test_the_table_that_ends_first_is_named():
    for name in tables():
        changed = tables()
        changed[name] = [entry for entry in changed[name] if int(entry["round"]) < 3]
        objection = digests.make_chains(written(), changed).objection(state(ROUNDS))
        assert objection == f"is of round 4, but {name} is whole up to round 2 only"
        assert digests.make_chains(written(), changed).objection(state(2)) == ""
    for lines in (written()[:2], [], [*written()[:2], *written(seed=9)[2:]]):
        objection = digests.make_chains(lines, tables()).objection(state(ROUNDS))
        assert objection == f"is of round 4, but digests.csv is whole up to round {min(len(lines), 2)} only"


def test_a_state_of_other_models_is_named():
    chains = digests.make_chains(written(), tables())
    other = State(3, state(1).models, {}, 0.0, 0.0, 0)
    assert chains.objection(other) == "holds other models than digests.csv says of round 3"
