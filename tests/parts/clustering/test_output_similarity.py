"""Distances of answers by hand, and three groups found in data whose labels mean other things to each."""

from typing import Any

import numpy as np
import pytest
import torch
from groups import SIMILAR

from fedexp.parts.clustering.output_similarity import OutputSimilarity, choose_cluster, output_distances

INSIDE = "evaluation.personal_fraction=0.2"


def test_the_mean_over_examples_of_norms_between_answers():
    """Example by example the norms are 5 and 1 to the first reference, 0 and 0 to the second."""
    output = torch.tensor([[[3.0, 4.0], [1.0, 1.0]]])
    references = torch.tensor([[[0.0, 0.0], [1.0, 0.0]], [[3.0, 4.0], [1.0, 1.0]]])
    assert output_distances(output, references).tolist() == [[3.0, 0.0]]
    assert output_distances(output, references[:0]).shape == (1, 0)
    assert output_distances(output[:0], references).shape == (0, 2)


@pytest.mark.parametrize(
    ("distance", "threshold", "nearest", "first"),
    [
        ([2.0, 1.0, 0.5], 3.0, 2, 0),
        ([2.0, 1.0, 0.5], 1.5, 2, 1),
        ([2.0, 1.0], 1.0, None, None),  # as far as the threshold is too far
        ([2.0, 1.0], np.inf, 1, 0),
        ([np.nan, 1.0], np.inf, 1, 1),
        ([np.nan], np.inf, None, None),
        ([1.0, 1.0], 2.0, 0, 0),
        ([], np.inf, None, None),
    ],
)
def test_the_nearest_below_the_threshold_or_the_first(
    distance: list[float], threshold: float, nearest: int | None, first: int | None
):
    assert choose_cluster(np.array(distance), threshold, first_match=False) == nearest
    assert choose_cluster(np.array(distance), threshold, first_match=True) == first


class Answers:
    """A context in which a model's row is what it answers to one example of two classes."""

    @property
    def public(self) -> "Answers":
        return self

    def outputs(self, rows: torch.Tensor) -> torch.Tensor:
        return rows[:, None]


@pytest.mark.parametrize(("rule", "last"), [("nearest", 2), ("first_match", 1)])
def test_newcomers_one_after_the_other(rule: Any, last: int):
    """The second is 6 from the first and founds a cluster; the third is 4 from that and 2 from this."""
    rows = torch.tensor([[0.0, 0.0], [6.0, 0.0], [4.0, 0.0], [0.5, 0.0]])
    ctx: Any = Answers()
    placed = OutputSimilarity(threshold=5.0, rule=rule).assign_newcomers(rows, rows[:0], ctx)
    assert placed.cluster.tolist() == [1, 2, last, 1]
    assert placed.distance.tolist() == [np.inf, np.inf, {2: 2.0, 1: 4.0}[last], 0.5]
    assert torch.equal(placed.references, rows[:2])
    later = OutputSimilarity(threshold=5.0, rule=rule).assign_newcomers(rows[3:], placed.references, ctx)
    assert (later.cluster.tolist(), later.distance.tolist()) == ([1], [0.5])


@pytest.mark.parametrize("seed", range(5))
def test_three_groups_are_found_and_their_models_are_better_than_one(live: Any, seed: int):
    _, _, lines = live(*SIMILAR, INSIDE, f"seed={seed}", "rounds=3")
    assert [line["clustering.clusters"] for line in lines] == [3, 3, 3]
    assert [line["clustering.agreement"] for line in lines] == [1.0, 1.0, 1.0]
    assert lines[-1]["clusters.inside"] >= lines[-1]["clusters.global_inside"] + 0.2
    _, _, plain = live(INSIDE, f"seed={seed}", "rounds=3")
    assert lines[-1]["clusters.inside"] >= plain[-1]["personal_accuracy"] + 0.2
    assert lines[-1]["clusters.inside"] == pytest.approx(lines[-1]["personal_accuracy"])


@pytest.mark.law("clustering=output_similarity", "clients of one group are one cluster")
@pytest.mark.parametrize("seed", range(5))
def test_one_group_is_one_cluster(live: Any, seed: int):
    _, states, lines = live(*SIMILAR, "dataset.groups=1", f"seed={seed}", "rounds=1")
    assert lines[-1]["clustering.clusters"] == 1
    assert lines[-1]["clustering.agreement"] is None
    assert len(states[-1].models) == 2


def test_a_newcomer_whose_training_diverges_is_judged_by_the_model_it_was_given(live: Any):
    """Twelve diverge, so all answer alike; nothing that they send later is usable either."""
    _, states, lines = live(*SIMILAR, "local.lr=1e30", "rounds=1")
    assert lines[-1]["clustering.clusters"] == 1
    assert states[-1].memory["clustering"]["references"].isfinite().all()
