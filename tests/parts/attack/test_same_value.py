from fedexp.parts.attack.forging import AttackerKnowledge
from fedexp.parts.attack.same_value import SameValue


def test_by_hand(scene: AttackerKnowledge):
    assert SameValue(value=-3.0).forge(scene)[0].tolist() == [[-3, -3], [-3, -3]]
