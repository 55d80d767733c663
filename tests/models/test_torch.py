"""Modules by import path: what they compute, and which are refused before a run."""

import sys

import numpy as np
import pytest

from raydp_sim.check import check_model
from raydp_sim.check.models import ModelSubject, company
from raydp_sim.errors import InputError
from raydp_sim.models.cnn import Cnn
from raydp_sim.models.losses import cross_entropy
from raydp_sim.models.torch_module import TorchModule

NETS = "tests.models.nets"


def module(name, **arguments):
    return TorchModule(module=f"{NETS}:{name}", arguments=arguments)


def test_without_torch_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=r'pip install "raydp-sim\[learn\]"'):
        module("Mlp").network((784,), 3)


class TestWithTorch:
    @pytest.fixture(autouse=True)
    def needs_torch(self):
        pytest.importorskip("torch")

    def test_a_module_computes_what_the_kernels_do(self):
        ours, theirs = Cnn().network((28, 28), 10), module("Cnn").network((28, 28), 10)
        assert ours.parts == theirs.parts
        drawn = np.random.default_rng(1)
        for theta in (np.float32(drawn.uniform(-0.1, 0.1, s)) for s in (13_706, (70, 13_706))):
            features = drawn.random((70, 2, 28, 28), np.float32)
            labels = drawn.integers(0, 10, (70, 2))
            found = []
            for network in (ours, theirs):
                logits, tape = network.forward(theta, features)
                slopes = cross_entropy(logits, labels).slopes
                found.append(network.backward(theta, tape, slopes))
            np.testing.assert_allclose(*found, rtol=1e-4, atol=2e-6)

    def test_a_module_passes_every_check(self):
        found = check_model(module("Mlp"), (28, 28))
        assert [each for each in found if each.status != "passed"] == []

    def test_rows_of_a_convolution_do_not_depend_on_their_company(self):
        finding = company(ModelSubject(module("Cnn", classes=3), (28, 28)))
        assert finding.status == "passed", finding.why

    def test_torch_has_one_thread(self):
        import torch

        module("Mlp").network((784,), 3)
        assert torch.get_num_threads() == 1

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("Normed", r"2 \(BatchNorm1d\) cannot be used: it mixes .* GroupNorm"),
            ("Dropping", r"2 \(Dropout\) cannot be used: it draws numbers .* p = 0"),
            ("Buffered", "scale is a buffer"),
            ("Tied", "again.weight is the same tensor"),
            ("Random", "no gradient of each sample by itself.* random"),
            ("Detached", "no gradient of each sample by itself"),
            ("Nowhere", "cannot be imported"),
            ("torch", "arguments is .*; .*; mend them"),
        ],
    )
    def test_what_has_no_gradient_of_each_sample_is_refused_by_name(self, name, said):
        with pytest.raises(InputError, match=said):
            module(name).network((784,), 3)

    def test_dropout_that_drops_nothing_is_taken(self):
        assert module("Dropping", p=0.0).network((784,), 3).size == 29_159

    @pytest.mark.parametrize(
        ("arguments", "shape", "said"),
        [
            ({"classes": 4}, (784,), r"logits of shape \(4,\) .* 3 classes"),
            ({"depth": 4}, (784,), r"model.arguments is .*depth.*; TypeError"),
            ({}, (5, 5), "tried on samples of 5 x 5: "),
        ],
    )
    def test_what_does_not_fit_the_data_is_refused(self, arguments, shape, said):
        with pytest.raises(InputError, match=said):
            module("Mlp", **arguments).network(shape, 3)

    def test_building_draws_nothing_from_the_users_generator(self):
        import torch

        torch.manual_seed(3)
        before = torch.random.get_rng_state()
        module("Mlp").network((784,), 3)
        assert torch.equal(before, torch.random.get_rng_state())
