from fedexp.parts.attack.forging import AttackerKnowledge
from fedexp.parts.attack.zero import Zero


def test_by_hand(scene: AttackerKnowledge):
    assert Zero().forge(scene)[0].tolist() == [[0, 0], [0, 0]]
