"""The names of hospitals and people, from the dataset to the tables and pictures of a run."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from worlds import Tiny, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.report.read.site_names import label, names_by_client, shared_names
from fedexp.report.topics import federation
from fedexp.run.run import run

TABLE = ("dataset=table", "dataset.target=outcome", "dataset.client=hospital", "model=logistic", "rounds=1")


@pytest.fixture
def words(tmp_path: Path) -> tuple[str, ...]:
    """A table of ten patients of each of three hospitals, every second of them ill."""
    path, sites = tmp_path / "patients.csv", ("Bonn", "Aachen", "Köln")
    rows = [(number, site, "ill" if number % 2 else "well") for number in range(10) for site in sites]
    pd.DataFrame(rows, columns=["a", "hospital", "outcome"]).to_csv(path, index=False)
    return (*TABLE, f"dataset.file={path}", "federation=subject")


class TestWorld:
    def test_clients_have_the_names_of_the_column(self, tiny: Tiny, words: tuple[str, ...]):
        world = world_of(tiny(*words))
        assert world.site_names == world.client_names == ("Aachen", "Bonn", "Köln")

    @pytest.mark.parametrize("federation", ["subject", "file"])
    def test_a_name_that_would_not_stay_on_its_line_is_refused(
        self, tiny: Tiny, tmp_path: Path, words: tuple[str, ...], federation: str
    ):
        sites = ["St. Mary\nNorth wing", "Aachen"] * 15
        if federation == "file":
            count = world_of(tiny(*words)).train.y.shape[0]
            owners = tmp_path / "owners.csv"
            pd.DataFrame({"owner": sites[:count]}).to_csv(owners, index=False)
            words = (*words[:-1], "federation=file", f"federation.path={owners}")
        else:
            path = tmp_path / "patients.csv"
            pd.read_csv(path).assign(hospital=sites).to_csv(path, index=False)
        refusal = r"names of clients must have no line breaks .*, got 'St. Mary\\nNorth wing'; rename the client"
        with pytest.raises(ConfigError, match=refusal):
            world_of(tiny(*words))

    def test_several_to_a_client_are_named_together(self, tiny: Tiny, words: tuple[str, ...]):
        world = world_of(tiny(*words, "federation.persons_per_client=3"))
        assert world.site_names == ("Aachen + Bonn + Köln",)

    def test_those_that_never_train_stand_behind_the_others(self, tiny: Tiny, words: tuple[str, ...]):
        unseen = ("evaluation.personal_fraction=0.2", "evaluation.unseen_fraction=0.3")
        world = world_of(tiny(*words, *unseen))
        assert world.site_names is not None
        assert sorted(world.site_names) == ["Aachen", "Bonn", "Köln"]
        assert (world.partition.clients, world.unseen.clients) == (2, 1)

    def test_the_only_client_of_pooled_data_has_none(self, tiny: Tiny, words: tuple[str, ...]):
        world = world_of(tiny(*words, "scenario.training=central"))
        assert (world.site_names, world.client_names) == (("Aachen", "Bonn", "Köln"), None)

    def test_other_federations_have_none(self, tiny: Tiny, words: tuple[str, ...]):
        assert world_of(tiny()).site_names is None
        assert world_of(tiny(*words[:-1], "federation=iid", "scenario.clients=2")).site_names is None

    def test_owners_of_a_file_by_name(self, tiny: Tiny, tmp_path: Path):
        owners, path = ["b", "a", "b", ""] * 30, tmp_path / "who.csv"
        path.write_text("who\n" + "".join(f"{owner or '-1'}\n" for owner in owners))
        world = world_of(tiny("federation=file", f"federation.path={path}"))
        assert world.site_names == ("a", "b")
        assert world.partition.sizes.tolist() == [30, 60]
        path.write_text("who\n" + "0\n1\n" * 60)
        assert world_of(tiny("federation=file", f"federation.path={path}")).site_names is None


class TestTables:
    def test_every_table_has_them(self, tiny: Tiny, words: tuple[str, ...], tmp_path: Path):
        config = tiny(*words, "evaluation.personal_fraction=0.2")
        run(config, tmp_path / "run", spec.build(config))
        for name in ("federation.csv", "client_scores.csv", "clients.csv"):
            assert pd.read_csv(tmp_path / "run" / name)["name"].tolist() == ["Aachen", "Bonn", "Köln"], name
        text = (tmp_path / "run" / "federation.csv").read_text()
        assert text.startswith("client,name,examples,ill,well\n0,Aachen,")
        assert names_by_client(tmp_path / "run" / "federation.csv") == {0: "Aachen", 1: "Bonn", 2: "Köln"}
        assert shared_names([tmp_path / "run"] * 2) == {0: "Aachen", 1: "Bonn", 2: "Köln"}

    def test_of_two_classes_the_second_is_counted_among_what_is_scored(self, tiny: Tiny, words, tmp_path: Path):
        outcomes = {"Aachen": "ill", "Bonn": "well", "Köln": "well"}
        rows = [(number, site, outcome) for number in range(10) for site, outcome in outcomes.items()]
        pd.DataFrame(rows, columns=["a", "hospital", "outcome"]).to_csv(tmp_path / "patients.csv", index=False)
        run(tiny(*words, "evaluation.personal_fraction=0.5"), tmp_path / "run")
        scores = pd.read_csv(tmp_path / "run" / "client_scores.csv")
        assert 0 not in scores["examples"].tolist()
        assert scores["positives"].tolist() == [0, *scores["examples"][1:]]

    def test_odd_names_stay_what_they_are(self, tmp_path: Path):
        path, counts = tmp_path / "federation.csv", np.ones((4, 2), dtype=int)
        federation.write_csv(path, counts, ["cat", "dog"], ["NA", "007", 'a "b", c', "Köln"])
        assert [label(client, names_by_client(path)) for client in range(5)] == ["NA", "007", 'a "b", c', "Köln", "4"]

    def test_a_class_called_name_names_nobody(self, tmp_path: Path):
        path = tmp_path / "federation.csv"
        federation.write_csv(path, np.ones((2, 2), dtype=int), ["name", "dog"])
        assert names_by_client(path) == {}

    def test_a_picture_has_them(self):
        drawn = federation.figure(np.ones((2, 2), dtype=int), ["cat", "dog"], ["Aachen", "Bonn"])
        assert [text.get_text() for text in drawn.axes[1].get_xticklabels()] == ["Aachen", "Bonn"]
