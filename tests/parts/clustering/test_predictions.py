"""Three models, one example at a time, probabilities by hand."""

import torch

from fedexp.parts.clustering import predictions


def logp(*rows: list[float]) -> torch.Tensor:
    """Log-probabilities `[M, 1, K]` of M models on one example."""
    return torch.tensor(rows)[:, None].log()


def test_most_votes_win_however_sure_the_other_is():
    models = logp([0.6, 0.4, 0.0], [0.6, 0.4, 0.0], [0.0, 0.0, 1.0])
    assert predictions.vote(models).tolist() == [0]
    assert predictions.highest(models).tolist() == [2]


def test_a_tie_goes_to_the_larger_sum_of_probabilities():
    assert predictions.vote(logp([0.5, 0.3, 0.2], [0.1, 0.2, 0.7])).tolist() == [2]
    assert predictions.vote(logp([0.8, 0.1, 0.1], [0.1, 0.2, 0.7])).tolist() == [0]
    three = logp([0.4, 0.35, 0.25], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4])
    assert predictions.vote(three).tolist() == [1]


def test_the_mean_is_of_probabilities_and_not_of_their_logarithms():
    models = logp([0.9, 0.1], [0.3, 0.7], [0.4, 0.6])
    assert predictions.mean(models).tolist() == [0]  # 1.6 against 1.4
    rare = logp([0.999, 0.001], [0.0001, 0.9999], [0.999, 0.001])
    assert predictions.mean(rare).tolist() == [0]  # the sum of logarithms says 1


def test_the_nearest_to_the_server_answers():
    models = logp([0.9, 0.1], [0.2, 0.8])
    assert predictions.nearest(models, torch.tensor([[0.3, 0.7]]).log()).tolist() == [1]
    assert predictions.nearest(models, torch.tensor([[0.8, 0.2]]).log()).tolist() == [0]


def test_every_example_has_an_answer_of_its_own():
    models = torch.tensor([[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.45, 0.55]]]).log()
    server = torch.tensor([[0.6, 0.4], [0.3, 0.7]]).log()
    for answer in (predictions.vote, predictions.highest, predictions.mean):
        assert answer(models).tolist() == [0, 1]
    assert predictions.nearest(models, server).tolist() == [0, 1]


def test_one_model_answers_as_it_does_alone():
    models = torch.randn(1, 20, 5).log_softmax(dim=2)
    alone = models[0].argmax(dim=1)
    for answer in (predictions.vote, predictions.highest, predictions.mean):
        assert torch.equal(answer(models), alone)
    assert torch.equal(predictions.nearest(models, torch.randn(20, 5)), alone)
