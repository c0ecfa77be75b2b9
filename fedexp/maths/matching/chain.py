"""Which networks can be matched: hidden units must be interchangeable, each with weights of its own."""

from torch import nn

ELEMENTWISE = (nn.Dropout, nn.ReLU, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Softplus)


def find_obstacle(network: nn.Module) -> str | None:
    """Why a network is not a chain of linear layers with activations between them; None if it is one."""
    if not isinstance(network, nn.Sequential):
        return "is no plain chain of layers"
    layers = [layer for layer in network if not isinstance(layer, nn.Flatten)]
    linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
    for layer in layers:
        if not isinstance(layer, (nn.Linear, *ELEMENTWISE)):
            return f"has a {type(layer).__name__} layer"
    if len(linear) < 2:
        return "has no hidden layer"
    if any(layer.bias is None for layer in linear):
        return "has a linear layer without biases"
    return None
