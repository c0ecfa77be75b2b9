from fedexp.parts.attack.forging import Scene
from fedexp.parts.attack.zero import Zero


def test_by_hand(scene: Scene):
    assert Zero().forge(scene)[0].tolist() == [[0, 0], [0, 0]]
