import numpy as np
import pytest
import torch

from fedexp.core.errors import ConfigError
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.federation.feature_noise import FeatureNoise, noise_deviation


def test_strength_by_hand():
    assert [noise_deviation(client, 4, 0.16, "variance") for client in range(4)] == pytest.approx(
        [0.2, 0.08**0.5, 0.12**0.5, 0.4]
    )
    assert [noise_deviation(client, 5, 0.1, "deviation") for client in range(5)] == pytest.approx(
        [0, 0.025, 0.05, 0.075, 0.1]
    )
    assert noise_deviation(0, 1, 0.1, "deviation") == 0


def test_noise_has_the_variance_of_the_paper_in_units_of_the_features():
    x = torch.full((4000, 5), 100, dtype=torch.uint8)
    seen = FeatureNoise(clients=4, sigma=0.16).shift_features(x, 3, 4, 255.0, np.random.default_rng(0))
    assert seen.dtype == torch.float32
    assert float((seen / 255).mean()) == pytest.approx(100 / 255, abs=0.01)
    assert float((seen / 255).var()) == pytest.approx(0.16, rel=0.05)
    assert x.unique().tolist() == [100]


def test_without_noise_nothing_changes():
    x = torch.arange(6).view(2, 3).to(torch.uint8)
    assert torch.equal(
        FeatureNoise(clients=2, sigma=0).shift_features(x, 1, 2, 255.0, np.random.default_rng(0)), x.float()
    )


def test_text_is_refused_before_loading():
    with pytest.raises(ConfigError, match="the examples are tokens; use federation=iid"):
        FeatureNoise(clients=2).refuse(Facts(shape=(8,), classes=9, train_size=9, targets="tokens", vocabulary=9))
