import numpy as np
import pytest

from fedexp.compare import critical_difference


@pytest.mark.parametrize(("methods", "quantile"), [(3, 2.343), (5, 2.728), (10, 3.164)])
def test_the_critical_difference_is_that_of_the_published_quantiles(methods, quantile):
    """Table 5 of Demsar (2006)."""
    expected = quantile * np.sqrt(methods * (methods + 1) / (6 * 14))
    assert critical_difference.critical_difference(methods, 14) == pytest.approx(expected, rel=1e-3)


def test_ranks_by_hand():
    values = np.array([[0.9, 0.8, 0.7], [0.9, 0.9, 0.7], [0.5, 0.8, np.nan]])
    ranks = critical_difference.rank_methods(["a", "b", "c"], values, higher_is_better=True)
    assert ranks.mean.tolist() == pytest.approx([4.5 / 3, 4.5 / 3, 3])
    assert ranks.order == [0, 1, 2]
    fewer = critical_difference.rank_methods(["a", "b", "c"], np.array([[3, 2, np.nan]]), higher_is_better=False)
    assert fewer.mean.tolist() == [2, 1, 3]
    assert fewer.p == 1


def test_a_clear_order_over_many_seeds_has_groups_of_neighbours():
    noise = np.random.default_rng(0).standard_normal((40, 4))
    ranks = critical_difference.rank_methods(list("abcd"), noise + np.array([3, 3, 0, 0]), higher_is_better=True)
    assert ranks.p < 0.001
    assert ranks.groups() == [(0, 1), (2, 3)]
    same = critical_difference.rank_methods(list("abc"), np.ones((5, 3)), higher_is_better=True)
    assert (same.p, same.groups()) == (1.0, [(0, 2)])


def test_the_figure_holds_every_name(tmp_path):
    names = ["a", "a name $that$ is long, lr=0.1, malicious=20", "c", "d"]
    ranks = critical_difference.rank_methods(
        names, np.random.default_rng(1).standard_normal((3, 4)), higher_is_better=True
    )
    critical_difference.draw(tmp_path / "ranks.png", ranks, "Mean ranks")
    assert (tmp_path / "ranks.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["ranks.png"]
