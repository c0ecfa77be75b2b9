"""Networks in words: the published ones are what their sources say, and odd words are refused."""

import subprocess
import sys

import pytest
import torch
from networks import CIFAR, MNIST, as_published, parameters, published
from torch import nn

from fedexp.core.errors import ConfigError
from fedexp.core.random_streams import stream
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model.chain import Chain, parse_layer
from fedexp.parts.model.mlp import MLP

COUNTS = {  # weights and biases, layer by layer, as the sources have them
    "byzfl_cnn": (MNIST, (520, 25_050, 800 * 500 + 500, 5_010), 431_080),
    "cnn_2017": (MNIST, (832, 51_264, 3136 * 512 + 512, 5_130), 1_663_370),
    "lenet": (CIFAR, (456, 2_416, 400 * 120 + 120, 10_164, 850), 62_006),
    "logistic": (MNIST, (784 * 10 + 10,), 7_850),
    "opacus_cnn": (MNIST, (1_040, 8_224, 512 * 32 + 32, 330), 26_010),
    "pfl_cnn": (CIFAR, (896, 18_496, 12_544 * 128 + 128, 1_290), 1_626_442),
    "simple_cnn": (CIFAR, (3 * 16 * 8 + 8, 8 * 16 * 8 + 8, 392 * 10 + 10), 5_354),
    "torch_mnist_cnn": (MNIST, (320, 18_496, 9216 * 128 + 128, 1_290), 1_199_882),
    "two_conv_dropout": (MNIST, (260, 5_020, 320 * 50 + 50, 510), 21_840),
    "vgg11": (CIFAR, (9_220_480, 512 * 512 + 512, 512 * 512 + 512, 5_130), 9_750_922),
}
STEPS = {
    "byzfl_cnn": "conv relu pool conv relu pool flat fc relu fc",
    "cnn_2017": "conv/1/2 relu pool conv/1/2 relu pool flat fc relu fc",
    "lenet": "conv relu pool conv relu pool flat fc relu fc relu fc",
    "opacus_cnn": "conv/2/3 relu pool/1 conv/2 relu pool/1 flat fc relu fc",
    "pfl_cnn": "conv relu conv relu pool flat fc relu fc",
    "simple_cnn": "conv/1/1 relu pool conv/1/1 relu pool flat fc",
    "torch_mnist_cnn": "conv relu conv relu pool flat fc relu fc",
    "two_conv_dropout": "conv pool relu conv pool relu flat fc relu fc",
    "vgg11": "conv/1/1 relu pool conv/1/1 relu pool conv/1/1 relu conv/1/1 relu pool "
    "conv/1/1 relu conv/1/1 relu pool conv/1/1 relu conv/1/1 relu pool flat fc relu fc relu fc",
}


@pytest.mark.parametrize("option", COUNTS)
def test_as_many_parameters_as_published(option: str):
    shape, layers, count = COUNTS[option]
    assert parameters(published(option), shape, 10) == sum(layers) == count


@pytest.mark.parametrize("option", STEPS)
def test_the_layers_are_those_published(option: str):
    ours, source = as_published(published(option), COUNTS[option][0], STEPS[option])
    assert torch.equal(ours, source), "pooling and ReLU commute"


@pytest.mark.parametrize("option", COUNTS)
def test_a_chain_is_called_like_the_option_that_has_its_layers(option: str):
    model = published(option)
    assert model.option == option
    assert published(option, layers=["relu", *model.layers]).option == "chain"


@pytest.mark.parametrize("side", [7, 8, 9, 28, 33])
def test_it_adapts_to_any_side(side: int):
    facts, model = Facts((1, side, side), 3, 1), published("simple_cnn")
    model.refuse(facts)
    assert model.network(facts)(torch.zeros(2, 1, side, side)).shape == (2, 3)


def test_every_word_makes_its_layer():
    words = (
        "conv 4 3 stride 2 padding 1",
        "batch_norm",
        "group_norm 2",
        "channel_dropout 0.2",
        "pool 3 stride 1",
        "tanh",
    )
    made = Chain(layers=(*words, "flatten", "gelu", "linear 5", "relu", "dropout 0.5", "linear"))
    network = made.network(Facts((2, 9, 9), 3, 1))
    assert [type(layer).__name__ for layer in network] == [
        *("Conv2d", "BatchNorm", "GroupNorm", "Dropout2d", "MaxPool2d", "Tanh"),
        *("Flatten", "GELU", "Linear", "ReLU", "Dropout", "Linear"),
    ]
    assert network(torch.zeros(2, 2, 9, 9)).shape == (2, 3)
    assert parse_layer("conv 16 8 3 1") == parse_layer("conv 16 8 stride 3 padding 1")


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        ((), "layers must end with linear without a number, which gives one output a class"),
        (("flatten", "linear 10"), "layers must end with linear without a number"),
        (("flatten", "linear 10", "sigmoid"), "layers must end with linear without a number"),
        (("sigmoid",), "layers must end with linear without a number"),
        (("flatten", "linear", "relu"), "only sigmoid may stand behind it"),
        (("flaten", "linear"), "must be made of conv, .*, got 'flaten'; did you mean flatten?"),
        (("conv 3", "linear"), r"conv must be written as conv OUTPUTS KERNEL \[stride N\] \[padding N\], got 'conv 3'"),
        (("conv 8 3 strid 2", "linear"), "conv must be written as"),
        (("conv 8 3 stride", "linear"), "conv must be written as"),
        (("conv 8 3 stride 2 stride 3", "linear"), "conv must be written as"),
        (("conv 8 3 stride 2 foo 3", "linear"), "conv must be written as"),
        (("conv 0 3", "linear"), "conv must be written as"),
        (("conv 8 3 1 0 5", "linear"), "conv must be written as"),
        (("dropout 1", "linear"), "dropout must be written as dropout P, got 'dropout 1'"),
        (("relu 3", "linear"), "relu must be written as relu, got 'relu 3'"),
    ],
)
def test_odd_words_are_refused(layers: tuple[str, ...], said: str):
    with pytest.raises(ConfigError, match=said):
        Chain(layers=layers)


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        (("conv 8 3", "linear"), r"linear \(layer 2 of 2\) cannot take values of shape \[8, 6, 6\]: .* put flatten"),
        (
            ("group_norm 2", "flatten", "linear"),
            r"group_norm 2 \(layer 1 of 3\) cannot take values of shape \[3, 8, 8\]",
        ),
        (
            ("flatten", "pool 2", "linear"),
            r"pool 2 \(layer 2 of 3\) cannot take values of shape \[192\]: they are no im",
        ),
        (("conv 8 9", "flatten", "linear"), "model=chain needs images .* of at least 9 x 9 pixels"),
    ],
)
def test_layers_that_do_not_follow_are_refused(layers: tuple[str, ...], said: str):
    with pytest.raises(ConfigError, match=said):
        Chain(layers=layers).refuse(Facts((3, 8, 8), 10, 1))


def test_channels_and_single_units_are_dropped():
    network = published("two_conv_dropout").network(Facts(MNIST, 10, 1)).train()
    channels = network[:5](torch.randn(4, *MNIST)).flatten(2)
    gone = (channels == 0).all(dim=2)
    assert ((channels == 0).any(dim=2) == gone).all()
    assert 20 < gone.sum() < 60, "about half of 4 x 20"
    assert 30 < (network[-2](torch.ones(2, 50)) == 0).sum() < 70


def test_softmax_regression_is_the_perceptron_without_hidden_layers():
    network, other = (model.network(Facts(MNIST, 10, 1)) for model in (published("logistic"), MLP(hidden=())))
    other.load_state_dict(network.state_dict())
    x = torch.randn(3, *MNIST)
    assert torch.equal(network(x), other(x))


def test_outputs_are_bounded_by_a_sigmoid_behind_them():
    facts, x = Facts((1, 4, 4), 3, 10), torch.randn(5, 1, 4, 4)
    bounded = Chain(layers=("flatten", "linear", "sigmoid")).network(facts)
    plain = Chain(layers=("flatten", "linear")).network(facts)
    plain.load_state_dict(bounded.state_dict())
    torch.testing.assert_close(bounded(x), plain(x).sigmoid())


def test_a_sigmoid_is_refused_where_the_loss_takes_one_itself():
    with pytest.raises(ConfigError, match="must not stand behind the last layer where an example has several labels"):
        Chain(layers=("flatten", "linear", "sigmoid")).refuse(Facts((4,), 3, 10, targets="labels"))


def test_from_zero_every_class_is_as_likely():
    model = published("logistic", last_layer="zeros")
    network = model.network(Facts(MNIST, 10, 1))
    model.initialise(network, stream(0, "model"))
    assert not network(torch.randn(3, *MNIST)).any()


def test_glorots_law_draws_pfls_network_and_vgg():
    assert published("pfl_cnn").init == published("vgg11").init == "glorot_uniform"


def test_vgg_answers_lie_as_far_apart_as_by_the_published_draws_and_hardly_by_pytorchs():
    x = torch.randn(16, *CIFAR, generator=torch.Generator().manual_seed(0))
    spreads = {}
    for law in ("default", "glorot_uniform", "published"):
        model = published("vgg11", **({} if law == "published" else {"init": law}))
        network = model.network(Facts(CIFAR, 10, 1)).eval()
        if law == "published":
            draw = torch.Generator().manual_seed(0)
            for layer in [layer for layer in network if isinstance(layer, nn.Conv2d)]:
                layer.weight.data.normal_(0, (2 / (9 * layer.out_channels)) ** 0.5, generator=draw)
                nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
        else:
            model.initialise(network, stream(0, "model"))
        spreads[law] = float(network(x).detach().std(dim=0).mean())
    assert 0.5 < spreads["glorot_uniform"] / spreads["published"] < 2
    assert spreads["glorot_uniform"] > 10 * spreads["default"]


def test_a_linear_layer_without_a_number_gives_one_output_a_class_anywhere():
    network = Chain(layers=("flatten", "linear", "relu", "linear")).network(Facts((1, 4, 4), 10, 100))
    assert network(torch.zeros(2, 1, 4, 4)).shape == (2, 10)
    assert [tuple(entry.shape) for entry in network.parameters()] == [(10, 16), (10,), (10, 10), (10,)]


def test_a_network_is_checked_without_pytorchs_compiler(tmp_path):
    code = (
        "import sys, torch\nfrom fedexp.parts.model.chain import layer_shapes\n"
        "torch.manual_seed(1)\nstate = torch.get_rng_state()\n"
        "layers = ('conv 4 3', 'batch_norm', 'relu', 'pool 2', 'flatten', 'linear 8', 'tanh', 'linear')\n"
        "print(layer_shapes(layers, (1, 8, 8), 3)[-3:], torch.equal(state, torch.get_rng_state()))\n"
        "print([name for name in sys.modules if name.startswith('torch._dynamo')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.splitlines() == ["[(36,), (8,), (8,)] True", "[]"]
