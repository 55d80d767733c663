"""The hand-written networks against the same ones in torch."""

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.models.cnn import Cnn
from raydp_sim.models.layers import Convolution, MaxPool
from raydp_sim.models.lenet5 import LeNet5
from raydp_sim.models.losses import cross_entropy
from raydp_sim.random import Stream

CASES = {
    "cnn": (Cnn(), (28, 28), {}),
    "cnn-32-relu": (
        Cnn(filters=32, activation="relu"),
        (28, 28),
        {"filters": 32, "activation": "relu"},
    ),
    "cnn-colours": (Cnn(), (32, 24, 3), {"channels": 3, "units": 15}),
    "lenet5": (LeNet5(), (28, 28), {}),
    "lenet5-tanh": (LeNet5(activation="tanh"), (28, 28), {"activation": "tanh"}),
}


def test_sizes_are_those_of_the_papers():
    shape = (28, 28)
    assert Cnn().network(shape, 10).size == 13_706
    assert Cnn(filters=32).network(shape, 10).size == 26_010
    assert LeNet5().network(shape, 10).size == 44_426


@pytest.mark.parametrize("name", CASES)
def test_torch_computes_the_same_logits_and_gradients(name):
    pytest.importorskip("torch")
    from . import nets

    model, shape, arguments = CASES[name]
    network, module = model.network(shape, 10), getattr(nets, type(model).__name__)(**arguments)
    # There and back: torch takes our tensors by name, and gives the same vector.
    drawn = np.random.default_rng(3)
    theta = np.stack([network.init(Stream(seed)) for seed in range(4)])
    features = drawn.random((4, 3, *shape), np.float32)
    labels = drawn.integers(0, 10, (4, 3))
    logits, tape = network.forward(theta, features)
    found = network.backward(theta, tape, cross_entropy(logits, labels).slopes)
    assert list(network.named(theta[0])) == list(module.state_dict())
    for client in range(4):
        given = {key: nets.torch.tensor(x) for key, x in network.named(theta[client]).items()}
        module.load_state_dict(given)
        back = np.concatenate([x.numpy().ravel() for x in module.state_dict().values()])
        np.testing.assert_array_equal(back, theta[client])
        images = features[client][:, None] if len(shape) == 2 else features[client]
        images = images if len(shape) == 2 else np.moveaxis(images, -1, 1)
        module.zero_grad()
        seen = module(nets.torch.tensor(np.ascontiguousarray(images)))
        np.testing.assert_allclose(logits[client], seen.detach().numpy(), rtol=1e-5, atol=1e-6)
        asked = nets.torch.tensor(labels[client])
        nets.nn.functional.cross_entropy(seen, asked, reduction="sum").backward()
        meant = np.concatenate([x.grad.numpy().ravel() for x in module.parameters()])
        np.testing.assert_allclose(found[client], meant, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize(("size", "stride"), [(2, 1), (2, 2), (3, 1), (3, 2)])
def test_a_pooled_slope_goes_to_the_first_of_equals(size, stride):
    torch = pytest.importorskip("torch")
    drawn = np.random.default_rng(4)
    x = drawn.integers(0, 3, (2, 2, 7, 8, 5)).astype(np.float32)  # full of ties
    pool = MaxPool(x.shape[2:], size, stride)
    out, tape = pool.forward(np.zeros((1, 0), np.float32), x)
    slopes = drawn.integers(-9, 9, out.shape).astype(np.float32)  # so that sums are exact
    found = pool.backward(np.zeros((1, 0), np.float32), tape, slopes, np.zeros((2, 0)), False)
    theirs = torch.tensor(np.moveaxis(x, -1, 2).reshape(4, 5, 7, 8), requires_grad=True)
    pooled = torch.nn.functional.max_pool2d(theirs, size, stride)
    pooled.backward(torch.tensor(np.moveaxis(slopes, -1, 2).reshape(pooled.shape)))
    np.testing.assert_array_equal(
        np.moveaxis(found, -1, 2).reshape(theirs.shape), theirs.grad.numpy()
    )


@pytest.mark.parametrize(("side", "stride", "pad"), [(3, 1, 0), (4, 3, 2), (2, 3, 1), (5, 2, 2)])
def test_convolutions_of_any_stride_and_padding(side, stride, pad):
    torch = pytest.importorskip("torch")
    drawn = np.random.default_rng(5)
    x = drawn.standard_normal((2, 3, 9, 11, 2), np.float32)
    layer = Convolution(x.shape[2:], 4, side, stride, pad)
    theta = drawn.standard_normal((1, layer.size), np.float32)
    out, tape = layer.forward(theta, x)
    slopes, found = drawn.standard_normal(out.shape, np.float32), np.empty((2, layer.size), "f4")
    into = layer.backward(theta, tape, slopes, found, False)
    image = torch.tensor(np.moveaxis(x, -1, 2).reshape(6, 2, 9, 11), requires_grad=True)
    weight = torch.tensor(theta[0, :-4].reshape(4, 2, side, side))
    meant = torch.nn.functional.conv2d(image, weight, torch.tensor(theta[0, -4:]), stride, pad)
    meant.backward(torch.tensor(np.moveaxis(slopes, -1, 2).reshape(meant.shape)))
    flat = np.moveaxis(out, -1, 2).reshape(meant.shape)
    np.testing.assert_allclose(flat, meant.detach().numpy(), rtol=1e-4, atol=1e-5)
    back = np.moveaxis(into, -1, 2).reshape(image.shape)
    np.testing.assert_allclose(back, image.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_the_start_is_that_of_glorot_and_bengio():
    """Weights uniform up to sqrt(6 / (fan in + fan out)), biases zero."""
    network = Cnn().network((28, 28), 10)
    named = network.named(network.init(Stream(3)))
    fans = {"conv1": (1 + 16) * 64, "conv2": (16 + 16) * 16, "fc1": 256 + 32, "fc2": 32 + 10}
    for layer, fan in fans.items():
        drawn = named[f"{layer}.weight"] * np.sqrt(fan / 6.0)
        assert 0.9 < np.abs(drawn).max() <= 1.0 + 1e-6 and not named[f"{layer}.bias"].any()
        # Mean squares of uniforms are off by 8 standard errors in 1e-15 of cases.
        wide = 8 * np.sqrt(4 / 45 / drawn.size)
        assert float((drawn**2).mean()) == pytest.approx(1 / 3, abs=wide)


@pytest.mark.parametrize("shape", [(784,), (13, 28), (2, 28, 28, 1)])
def test_what_is_no_image_is_refused(shape):
    for model in (Cnn(), LeNet5()):
        with pytest.raises(InputError, match="takes images") as error:
            model.network(shape, 10)
        assert repr(model.kind) in str(error.value) and "linear" in str(error.value)
