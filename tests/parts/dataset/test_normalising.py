import numpy as np
import pytest
import torch

from fedexp.parts.dataset.cifar10 import Cifar10
from fedexp.parts.dataset.contract import Split
from fedexp.parts.dataset.digits import Digits
from fedexp.parts.dataset.mnist import Mnist
from fedexp.parts.dataset.normalising import image_data, moments, with_test_normalised
from fedexp.training.client.examples import Examples


def split():
    """One image of two channels: 0 and 255, and 51 everywhere."""
    x = torch.tensor([[[[0, 255]], [[51, 51]]]], dtype=torch.uint8)
    return Split(x, torch.zeros(1, dtype=torch.int64))


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("half", [[-1, 1], [-0.6, -0.6]]),
        ("unit", [[0, 1], [0.2, 0.2]]),
        ("raw", [[0, 255], [51, 51]]),
        # mean (0 + 1 + 0.2 + 0.2) / 4 = 0.35, variance (0.35^2 + 0.65^2 + 2 0.15^2) / 4 = 0.1475
        ("standard", [[-0.911323, 1.692457], [-0.390567, -0.390567]]),
        ("per_channel", [[-1, 1], [0, 0]]),  # the second channel is constant: deviation 1
    ],
)
def test_what_a_model_sees(how, expected):
    data = image_data(split(), split(), ("a",), how)
    seen = Examples(data.train, data, torch.device("cpu")).inputs(slice(0, 1))
    torch.testing.assert_close(seen[0, :, 0], torch.tensor(expected, dtype=torch.float32), atol=1e-5, rtol=0)


def test_test_images_may_be_normalised_otherwise():
    """By means 1/2 and 1/5 and deviations 1/2 and 1 a model sees the test image as -1 and 1, and as -0.6."""
    data, other = image_data(split(), split(), ("a",), "per_channel"), image_data(split(), split(), ("a",), "half")
    shifted = with_test_normalised(data, other)
    for examples, expected in ((shifted.train, [[-1, 1], [0, 0]]), (shifted.test, [[-1, 1], [-0.6, -0.6]])):
        seen = Examples(examples, shifted, torch.device("cpu")).inputs(slice(0, 1))
        torch.testing.assert_close(seen[0, :, 0], torch.tensor(expected, dtype=torch.float32), atol=1e-5, rtol=0)


def test_only_another_normalisation_touches_the_test_images(real):
    directory = real(Mnist())
    plain, same, shifted = (
        Mnist(normalise="half", test_normalise=how).load(directory, 0) for how in (None, "half", "unit")
    )
    assert torch.equal(plain.test.x, same.test.x)
    assert torch.equal(plain.train.x, shifted.train.x)
    seen = Examples(shifted.test, shifted, torch.device("cpu")).inputs(slice(0, 9))
    torch.testing.assert_close(seen, plain.test.x[:9] / 255, atol=1e-6, rtol=0)


def test_moments_of_bytes_are_those_of_floats():
    x = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (9, 3, 4, 4), np.uint8))
    plain = x.numpy().astype(float) / 255
    for given, scale in ((x, 255.0), (x.float(), 255.0)):
        mean, std = moments(given, scale)
        assert mean == pytest.approx(plain.mean(axis=(0, 2, 3)))
        assert std == pytest.approx(plain.std(axis=(0, 2, 3)))


def test_the_digits_are_normalised_as_measured(tmp_path):
    data = Digits().load(tmp_path, 0)
    measured = moments(data.train.x, 16.0)
    assert data.mean + data.std == pytest.approx(measured[0] + measured[1], abs=5e-5)
    assert Digits(normalise="half").load(tmp_path, 0).mean == (0.5,)


@pytest.mark.parametrize("dataset", [Mnist(), Cifar10()])
def test_published_numbers_are_those_of_the_real_pixels(real, dataset):
    x = dataset.load(real(dataset), 0).train.x
    for how, (mean, std) in dataset.published.items():
        measured = moments(x if how == "per_channel" else x.flatten(1)[:, None], 255.0)
        assert mean == pytest.approx(measured[0], abs=5e-5)
        assert std == pytest.approx(measured[1], abs=5.1e-5)
