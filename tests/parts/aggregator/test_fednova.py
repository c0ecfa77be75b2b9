"""FedNova by hand, its limiting cases, and how much the updates of rules amount to."""

import numpy as np
import pytest
import torch
from worlds import Tiny, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.parts.aggregator.fednova import normalise_rows
from fedexp.parts.local.prox import Prox
from fedexp.parts.local.scaffold import Scaffold
from fedexp.parts.local.sgd import SGD
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.setup.compatibility import refuse

UNEQUAL = ("federation=dirichlet", "federation.alpha=0.5", "selector=all", "local.batch_size=5")


def models(config: dict) -> list[torch.Tensor]:
    world = world_of(config)
    return [state.models[0].flat for state, _, _ in run_rounds(world.exp, world, world.initial_state())]


def test_by_hand():
    """Shares 1/4 and 3/4, one step and three: tau_eff = 1/4 + 9/4 = 5/2, so rows times 5/2 and 5/6."""
    rows = torch.tensor([[2.0, 4.0], [6.0, 0.0], [9.0, 9.0]], dtype=torch.float64)
    share, steps = torch.tensor([0.25, 0.75, 0.0]).double(), torch.tensor([1.0, 3.0, 0.0]).double()
    expected = torch.tensor([[5.0, 10.0], [5.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(normalise_rows(rows, share, steps), expected, atol=1e-12, rtol=0)


@pytest.mark.law("aggregator=fednova", "with gradients 1 and -1 nothing moves, whoever steps more, where FedAvg drifts")
def test_two_clients_of_one_slope_end_where_their_gradients_say():
    """With constant gradients 1 and -1 and equal shares FedAvg drifts to whom steps more; normalised, nothing moves."""
    steps = torch.tensor([2.0, 8.0]).double()
    delta, share = torch.stack([-0.1 * steps[:1], 0.1 * steps[1:]]), torch.tensor([0.5, 0.5]).double()
    assert (share @ delta).item() == pytest.approx(0.3)
    assert (share @ normalise_rows(delta, share, steps)).item() == pytest.approx(0, abs=1e-12)


@pytest.mark.law(
    "aggregator=fednova", "clients with equally many steps are FedAvg (SGD with momentum, FedProx and SCAFFOLD)"
)
@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("rule", ["sgd local.momentum=0.9", "prox local.mu=0.5", "scaffold"])
def test_equal_steps_are_fedavg(tiny: Tiny, rule: str):
    words = ("selector=all", f"local={rule.split()[0]}", *rule.split()[1:], "local.epochs=null", "local.steps=4")
    for one, other in zip(models(tiny(*words)), models(tiny(*words, "aggregator=fednova")), strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=0)


@pytest.mark.usefixtures("_double")
def test_unequal_steps_are_not_and_the_engines_agree(tiny: Tiny):
    words = (*UNEQUAL, "aggregator=fednova", "local.momentum=0.5", "local.epochs=[1,4]")
    loop, stacked = (models(tiny(*words, f"engine={engine}")) for engine in ("loop", "stacked"))
    torch.testing.assert_close(loop[-1], stacked[-1], atol=1e-9, rtol=0)
    assert (loop[-1] - models(tiny(*words, "aggregator=fedavg"))[-1]).abs().max() > 1e-3


class TestAmounts:
    """The sums of the weights that gradients along the steps have in an update, Wang et al. section 4.1."""

    STEPS = np.array([0, 1, 2, 7])

    @pytest.mark.law("aggregator=fednova", "an update of plain SGD or SCAFFOLD amounts to its number of steps")
    def test_plain_steps_are_counted(self):
        assert SGD().effective_steps(self.STEPS).tolist() == [0, 1, 2, 7]
        assert Scaffold().effective_steps(self.STEPS).tolist() == [0, 1, 2, 7]

    def test_momentum_by_the_papers_formula(self):
        """Of a gradient m steps before the end (1 - rho^m) / (1 - rho) counts: with rho = 1/2 and two steps 1 + 3/2."""
        rho = 0.5
        expected = [sum((1 - rho**m) / (1 - rho) for m in range(1, steps + 1)) for steps in self.STEPS]
        assert SGD(momentum=rho).effective_steps(self.STEPS) == pytest.approx(expected)
        assert SGD(momentum=rho).effective_steps(self.STEPS)[2] == 2.5

    def test_the_pull_by_the_papers_formula(self):
        """Of a gradient m steps before the end (1 - lr mu)^(m - 1) is left."""
        part = 0.1 * 2.0
        expected = [(1 - (1 - part) ** steps) / part for steps in self.STEPS]
        assert Prox(lr=0.1, mu=2.0).effective_steps(self.STEPS) == pytest.approx(expected)

    def test_weights_below_zero_count_by_hand(self):
        """momentum = 1/2, lr mu = 1: v = 1, -1/2, -3/4, -1/8, so a gradient is left with 1, 1/2, -1/4, -3/8."""
        lengths = Prox(lr=0.5, mu=2.0, momentum=0.5).effective_steps(np.arange(5))
        assert lengths.tolist() == [0, 1, 1.5, 1.75, 2.125]
        assert Prox(lr=1.0, mu=0.1, momentum=0.9).effective_steps(np.array([20]))[0] == pytest.approx(25.87, abs=0.005)
        assert Prox(lr=1.0, mu=1.5).effective_steps(np.arange(4)).tolist() == [0, 1, 1.5, 1.75]

    @pytest.mark.law(
        "aggregator=fednova", "an update amounts to the sum of what each of its gradients does alone, without signs"
    )
    @pytest.mark.parametrize(
        "rule",
        [
            SGD(momentum=0.8, nesterov=True),
            Prox(momentum=0.5, mu=0.7, lr=0.3),
            Prox(momentum=0.9, mu=1, lr=0.4),
            Prox(momentum=0.99, mu=1),
            Prox(momentum=0.9, nesterov=True, mu=1, lr=0.4),
            Prox(mu=1.5, lr=1.0),
            Scaffold(momentum=0.9),
        ],
    )
    def test_it_is_the_1_norm_of_what_each_gradient_alone_does(self, rule: SGD | Prox | Scaffold):
        for steps in (1, 2, 20):
            alone, start = torch.eye(steps).double(), torch.zeros(steps, 1).double()  # [row, step]: one each
            w, slots = start.clone(), torch.zeros(max(1, rule.slots), steps, 1).double()
            for number in range(steps):
                direction = rule.direction(alone[:, number, None], w, start)
                rule.update(w, direction, slots, torch.tensor(number + 1.0), None)
            expected = rule.effective_steps(np.array([steps]))[0]
            assert (w / rule.lr).abs().sum().item() == pytest.approx(expected, rel=1e-9)

    def test_the_pull_follows_the_rate_of_the_round(self):
        assert Prox(lr=0.1, mu=2.0).at(0.2).effective_steps(self.STEPS)[2] == pytest.approx(1 + 0.6)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("local=adam",), "local=adam makes updates that are no sums of gradients"),
        (("local=prox", "local.optimizer=adam"), "local=prox with local.optimizer=adam or adamw makes updates"),
        (("local.momentum=0.9", "local.worker_momentum=true"), "local=sgd with local.worker_momentum=true goes on"),
    ],
)
def test_updates_that_are_no_sums_of_gradients_are_refused(tiny: Tiny, words: tuple[str, ...], said: str):
    with pytest.raises(ConfigError, match=rf"fednova divides .*, but {said} .*; use .*worker_momentum=false$"):
        refuse(spec.build(tiny("aggregator=fednova", *words)))
