"""What clients see, drawn."""

from pathlib import Path

import numpy as np
import pytest

from fedexp.report.draw import client_images, style


@style.style()
def test_a_row_for_each_client_with_its_images():
    gray, colour = np.full((2, 4, 4, 1), 510), np.full((9, 4, 4, 3), 51)
    drawn = client_images.image_figure({3: gray, 8: colour}, 255)
    shown = [axes.images[0].get_array() for axes in drawn.axes if axes.images]
    assert [np.asarray(one).shape for one in shown] == [(4, 4)] * 2 + [(4, 4, 3)] * client_images.CLIENT_IMAGES
    assert float(np.asarray(shown[0]).max()) == 1
    assert float(np.asarray(shown[-1]).max()) == pytest.approx(0.2)
    assert [axes.get_ylabel() for axes in drawn.axes if axes.get_ylabel()] == ["Client 3", "Client 8"]


def test_the_clients_are_spread_over_their_numbers():
    assert client_images.choose_image_clients(np.array([0, 4, 4])) == [1, 2]
    assert client_images.choose_image_clients(np.ones(100)) == [0, 11, 22, 33, 44, 55, 66, 77, 88, 99]
    assert client_images.choose_image_clients(np.zeros(3)) == []


def test_the_picture_is_written(tmp_path: Path):
    client_images.draw_images(tmp_path / "seen.png", {0: np.zeros((1, 4, 4, 1))}, 1.0)
    assert (tmp_path / "seen.png").read_bytes().startswith(b"\x89PNG")
