import pytest

from fedexp.parts.dataset import check_data
from fedexp.parts.dataset.diabetes import Diabetes


def test_measurements_and_target_are_standardised_by_the_training_patients(tmp_path):
    data = Diabetes().load(tmp_path, 0)
    check_data.refuse(Diabetes(), Diabetes().facts(tmp_path), data)
    assert (len(data.train.x), len(data.test.x)) == (353, 89)
    assert data.train.x.double().mean(dim=0).tolist() == pytest.approx([0] * 10, abs=1e-6)
    assert data.train.y.double().std(correction=0).item() == pytest.approx(1, abs=1e-6)


def test_the_raw_target_is_that_of_the_paper(tmp_path):
    data = Diabetes(target_scale="raw").load(tmp_path, 0)
    total = float(data.train.y.double().sum() + data.test.y.double().sum())
    assert total / 442 == pytest.approx(152.1335, abs=1e-4)  # the mean that scikit-learn's guide prints: 152.133
    assert data.train.y.min() >= 25
    assert data.train.y.max() <= 346
