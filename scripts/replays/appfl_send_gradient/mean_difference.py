"""The slip of APPFL's two synchronous examples before PR#439: the mean difference becomes the model.

With `send_gradient: True` a client sends (model that it got) - (model that it trained). FedAvgAggregator takes what it
gets for a model (src/appfl/algorithm/aggregator/fedavg_aggregator.py: w += mean(sent - w)), so w becomes mean(sent),
minus the mean update. For the table appfl_send_gradient alone.
"""

from fedexp.parts import Memory, ServerOptimizer, Weights


class MeanDifference(ServerOptimizer):
    """The next model is the present one minus the proposal: minus the mean update."""

    needs_layout = True

    def step(self, weights: Weights, proposal: Weights, memory: Memory) -> tuple[Weights, Memory]:
        return Weights(weights.flat - proposal.flat, weights.layout), memory
