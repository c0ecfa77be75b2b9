"""The pictures of a clustered run, and the table that one of them is drawn from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedexp.report.draw import style
from fedexp.report.read import methods, runs
from fedexp.report.topics import client_scores, clusters
from fedexp.run.run import run
from fedexp.simulation.measures.client_scores import COLUMNS

# Client 0 joins at once, 1 arrives in round 1 and waits two rounds, 2 changes its cluster (IFCA), 3 never comes.
EVENTS = pd.DataFrame(
    [
        (0, "server_model", 0, 0, None),
        (0, "birth", 0, 1, None),
        (0, "queue", 0, 1, None),
        (1, "join", 0, 1, None),
        (1, "model", 0, 1, None),
        (1, "join", 2, 2, None),
        (1, "queue", 1, 1, 0.5),
        (1, "model", -1, 0, None),
        (3, "join", 1, 1, None),
        (3, "leave", 2, 2, None),
        (3, "join", 2, 1, None),
        (3, "model", 2, 1, None),
    ],
    columns=["round", "event", "client", "cluster", "distance"],
)


def is_picture(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG")


class TestMembership:
    def test_by_hand(self):
        found = clusters.memberships(EVENTS, 4, 3)
        assert found.cluster.tolist() == [[1, 1, 1, 1], [0, 1, 1, 1], [0, 2, 2, 1], [0, 0, 0, 0]]
        assert np.argwhere(found.waiting).tolist() == [[0, 0], [1, 1], [1, 2]]
        assert np.argwhere(found.trained).tolist() == [[0, 1], [2, 3]]

    def test_rounds_that_a_resumed_run_has_not_reached_are_left_out(self):
        found = clusters.memberships(EVENTS, 3, 2)
        assert found.cluster[2].tolist() == [0, 2, 2]
        assert found.waiting[1].tolist() == [False, True, True]

    @style.style()
    @pytest.mark.parametrize(("events", "clients"), [(EVENTS, 4), (EVENTS, 500), (EVENTS.iloc[:0], 2)])
    def test_drawn(self, events: pd.DataFrame, clients: int, tmp_path: Path):
        style.save(tmp_path / "clusters.png", clusters.membership_figure(clusters.memberships(events, clients, 3)))
        assert is_picture(tmp_path / "clusters.png")

    @style.style()
    def test_a_cell_is_pale_where_a_client_waits_and_empty_where_it_has_no_cluster(self):
        (image,) = clusters.membership_figure(clusters.memberships(EVENTS, 4, 3)).axes[0].images
        strength = np.asarray(image.get_array())[:, :, 3]
        assert strength.tolist() == [[0, 0, 0, 0], [0.35, 1, 1, 1], [0, 0.35, 0.35, 1], [0, 1, 1, 1]]

    def test_clients_in_the_order_of_their_last_cluster(self):
        cluster = np.array([[0, 2], [0, 1], [1, 1]])
        none = np.zeros_like(cluster, dtype=bool)
        shown, rows = clusters.order_by_cluster(clusters.Memberships(cluster, none, none))
        assert rows == [1, 2, 0]
        assert shown.cluster.tolist() == [[0, 1], [1, 1], [0, 2]]

    def test_of_very_many_clients_some_are_shown(self):
        none = np.zeros((1000, 2), dtype=np.int64)
        _, rows = clusters.order_by_cluster(clusters.Memberships(none, none > 0, none > 0))
        assert (len(rows), rows[0], rows[-1]) == (400, 0, 999)

    @style.style()
    def test_more_clusters_than_colours(self):
        events = pd.DataFrame([(0, "join", client, client + 1, None) for client in range(20)], columns=EVENTS.columns)
        assert clusters.membership_figure(clusters.memberships(events, 20, 1)).axes
        assert clusters.color_of(1) == clusters.color_of(8)


@style.style()
@pytest.mark.parametrize("clients", [1, 5, 60])
def test_accuracy_is_drawn_even_without_an_ensemble(clients: int, tmp_path: Path):
    table = pd.DataFrame({name: np.linspace(0, 1, clients) for name in COLUMNS}).assign(
        client=range(clients), metric="auroc"
    )
    style.save(tmp_path / "all.png", client_scores.figure(table))
    style.save(tmp_path / "some.png", client_scores.figure(table.assign(mean=np.nan)))
    assert is_picture(tmp_path / "all.png")
    assert is_picture(tmp_path / "some.png")


@style.style()
@pytest.mark.parametrize(("kinds", "shifts"), [(1, [0]), (2, [-0.085, 0.085]), (4, [-0.255, -0.085, 0.085, 0.255])])
def test_the_dots_of_a_client_stand_around_its_tick(kinds: int, shifts: list[float]):
    scores = {name: [0.1 * number, 0.5] for number, name in enumerate(list(client_scores.SERIES)[:kinds])}
    axes = client_scores.figure(pd.DataFrame({"client": [0, 1], "metric": "auroc", **scores})).axes[0]
    dots = [np.asarray(line.get_xdata()) for line in axes.lines if line.get_marker() in tuple("osD^")]
    assert [x[0] for x in dots[::2]] == pytest.approx(shifts)
    assert [x[0] - axes.get_xticks()[-1] for x in dots[1::2]] == pytest.approx(shifts), "the means"


CLUSTERED = ("clustering=output_similarity", "scenario.public_fraction=0.2", "evaluation.personal_fraction=0.3")


class TestRun:
    def test_what_a_clustered_run_leaves(self, tiny: Callable[..., dict[str, Any]], tmp_path: Path):
        run(tiny("pictures=true", "clustering.threshold=1e9", *CLUSTERED), tmp_path)
        assert is_picture(tmp_path / "clusters.png")
        assert is_picture(tmp_path / "client_scores.png")
        table, metrics = pd.read_csv(tmp_path / "client_scores.csv"), pd.read_csv(tmp_path / "metrics.csv")
        assert tuple(table.columns) == COLUMNS
        assert set(table["cluster"]) == {1}
        last = metrics.iloc[-1]
        assert np.mean(table["personal"]) == pytest.approx(last["personal_accuracy"])
        assert np.mean(table["inside"]) == pytest.approx(last["clusters.inside"])
        assert np.mean(table["global"]) == pytest.approx(last["clusters.global_inside"])
        for way in ("vote", "max", "mean", "nearest"):
            assert table[way].tolist() == table["inside"].tolist(), "one cluster has one answer"

    def test_the_personal_layer_is_in_the_own_models_alone(self, tiny: Callable[..., dict[str, Any]], tmp_path: Path):
        run(tiny("local=personal_layer", "clustering.threshold=1e9", "local.lr=1", *CLUSTERED), tmp_path)
        table = pd.read_csv(tmp_path / "client_scores.csv")
        last = pd.read_csv(tmp_path / "metrics.csv").iloc[-1]
        assert np.mean(table["personal"]) == pytest.approx(last["personal_accuracy"])
        assert table["personal"].tolist() != table["inside"].tolist()

    @pytest.mark.parametrize("words", [(), (*CLUSTERED[:2], "pictures=true")])
    def test_nothing_is_written_without_clusters_or_held_out_examples(
        self, tiny: Callable[..., dict[str, Any]], words: tuple[str, ...], tmp_path: Path
    ):
        run(tiny(*words), tmp_path)
        assert not (tmp_path / "client_scores.csv").exists()
        assert not (tmp_path / "client_scores.png").exists()
        assert (tmp_path / "clusters.png").exists() == bool(words)


@style.style()
def test_a_report_shows_the_first_run_of_each_method(make_run: Callable[..., Path], tmp_path: Path):
    for name, seed in (("0", 0), ("1", 1)):
        EVENTS.to_csv(make_run(name, seed=seed) / "clusters.csv", index=False)
    make_run("2", choices={"selector": "other"})
    part = clusters.build_section(methods.group_runs(runs.collect_runs([tmp_path])[0]))
    assert part is not None
    assert [(one.name, one.caption) for one in part.pictures] == [("method_1_clusters", "random, seed 0.")]
    assert part.tables == []


@style.style()
def test_of_very_many_methods_the_first_are_shown(make_run: Callable[..., Path], tmp_path: Path):
    for number in range(7):
        EVENTS.to_csv(make_run(str(number), choices={"selector": f"s{number}"}) / "clusters.csv", index=False)
    section = clusters.build_section(methods.group_runs(runs.collect_runs([tmp_path])[0]))
    assert section is not None
    assert len(section.pictures) == 6
    assert section.note.endswith("The first 6 of 7 methods.")


@style.style()
def test_a_report_tells_the_mean_accuracies(make_run: Callable[..., Path], tmp_path: Path):
    table = pd.DataFrame([[0, "accuracy", 1, *[0.5] * (len(COLUMNS) - 3)]] * 2, columns=list(COLUMNS)).assign(
        examples=4
    )
    for seed, own in ((0, 0.25), (1, 0.75)):
        folder = make_run(str(seed), seed=seed)
        table.assign(personal=own, mean=np.nan).to_csv(folder / "client_scores.csv", index=False)
    part = clusters.build_section(methods.group_runs(runs.collect_runs([tmp_path])[0]))
    assert part is not None
    assert [one.name for one in part.pictures] == ["method_1_client_scores"]
    (_, grid), *_ = part.tables
    assert grid.headings == ["method", "global model", "its cluster's model", "the model it uses"], "no run has a mean"
    assert grid.rows == [["random", "0.5000", "0.5000", "0.5000"]]


def test_clients_that_no_table_counted_are_drawn(tmp_path: Path):
    EVENTS.to_csv(tmp_path / "clusters.csv", index=False)
    assert clusters.draw(tmp_path, 1, 3) == ["clusters"]
    assert is_picture(tmp_path / "clusters.png")


@style.style()
@pytest.mark.parametrize("clients", [3, 50])
@pytest.mark.parametrize("more", [{}, {"unseen": [0, 1]}])
def test_accuracies_without_clusters_are_drawn_and_stand_in_a_report(clients: int, more: dict[str, list[int]]):
    table = pd.DataFrame({"client": range(clients), "metric": "auroc", "examples": 4, "global": 0.5, "personal": 0.75})
    for name, kinds in more.items():
        table[name] = [kinds[client % 2] for client in range(clients)]
    (axes,) = client_scores.figure(table).axes
    assert len(axes.lines) > 0
    assert axes.get_ylabel().replace("\n", " ") == "AUROC on the client's own examples"
    if clients == 3 and more:
        assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "2", "1\n*", "mean"]


def test_a_mean_says_how_many_clients_have_a_score():
    table = pd.DataFrame({"client": range(4), "metric": "auroc", "global": [0.5, 0.7, np.nan, 0.6], "personal": 0.75})
    text = client_scores.data(table).text
    assert text == ("Mean AUROC over 4 clients: global model 0.6000 (3 of 4 have one), the model it uses 0.7500.")


@pytest.mark.parametrize("cells", [[np.nan, np.nan], ["auroc", "accuracy"], ["$\\frac", "$\\frac"], ["a" * 99] * 2])
def test_what_is_no_metric_is_called_a_score(cells: list[Any]):
    assert client_scores.metric(pd.DataFrame({"metric": cells})) == "score"


def test_means_by_different_metrics_stand_in_tables_of_their_own(make_run: Callable[..., Path], tmp_path: Path):
    for number, metric in enumerate(("accuracy", "auroc")):
        folder = make_run(str(number), choices={"selector": metric})
        table = pd.DataFrame({"client": [0, 1], "metric": metric, "global": 0.5, "personal": 0.5})
        table.to_csv(folder / "client_scores.csv", index=False)
    part = clusters.build_section(methods.group_runs(runs.collect_runs([tmp_path])[0]))
    assert part is not None
    assert [caption.split()[1] for caption, _ in part.tables] == ["accuracy", "AUROC"]


def test_a_run_without_clusters_is_reported(tiny: Callable[..., dict[str, Any]], tmp_path: Path):
    run(tiny("evaluation.personal_fraction=0.25", "rounds=1", "pictures=true"), tmp_path / "run")
    assert is_picture(tmp_path / "run" / "client_scores.png")
    assert not (tmp_path / "run" / "clusters.png").exists()
    part = clusters.build_section(methods.group_runs(runs.collect_runs([tmp_path])[0]))
    assert part is not None
    assert (part.title, [picture.title for picture in part.pictures]) == (
        "Models at the clients",
        ["Models at the clients after the last round"],
    )
