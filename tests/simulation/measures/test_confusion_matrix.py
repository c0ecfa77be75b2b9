"""The confusion matrix is scikit-learn's of the final model's answers, and its own picture of the test data."""

import numpy as np
from sklearn import metrics as sk
from worlds import Tiny, world_of

from fedexp.simulation.measures import confusion_matrix


def test_lines_are_true_classes_and_columns_answers(tiny: Tiny):
    world = world_of(tiny("evaluation.metrics=[accuracy,confusion_matrix]", "engine.evaluation_chunk=7"))
    lines = confusion_matrix.rows(world.exp, world, world.initial_state())
    answers = world.scorer.logits(world.first, world.test.inputs(slice(None))).argmax(dim=1)
    expected = sk.confusion_matrix(world.test.y, answers, labels=np.arange(len(world.class_names)))
    assert [line["true class"] for line in lines] == list(world.class_names)
    assert [[line[name] for name in world.class_names] for line in lines] == expected.tolist()
    assert np.trace(expected) / len(world.test) == world.score(world.first, world.test).metrics["accuracy"]


def test_it_is_made_only_where_it_is_asked_for_and_test_data_may_be_seen(tiny: Tiny):
    for words in ((), ("evaluation.metrics=[accuracy,confusion_matrix]", "evaluation.test=false")):
        world = world_of(tiny(*words))
        assert confusion_matrix.rows(world.exp, world, world.initial_state()) == []
