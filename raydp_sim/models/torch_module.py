"""Any torch module, differentiated by torch.func."""

import os
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from pydantic import Field
from pydantic_core import PydanticCustomError

from raydp_sim.errors import InputError, bad_field
from raydp_sim.kernels.types import Floats32
from raydp_sim.models.base import Classifier, Network, Part
from raydp_sim.random import Stream
from raydp_sim.registry import at_path

# Rows of every call: what torch makes of a row depends on how many there are.
TILE = 64
_KINDS_REFUSED = {
    "_BatchNorm": "it mixes the samples of a batch, so that no sample has a gradient of its own; "
    "use GroupNorm or LayerNorm",
    "_DropoutNd": "it draws numbers that no seed here governs; leave it out, or give it p = 0",
}


def loaded() -> Any:
    """Import torch, for one thread and for sums whose order does not depend on alignment.

    Raises:
        InputError: it is not installed.
    """
    # Read when MKL is first called: otherwise a row's bits depend on its place in a tile.
    os.environ.setdefault("MKL_CBWR", "AUTO")
    try:
        import torch
    except ImportError:
        remedy = 'it needs PyTorch, which is not installed: pip install "raydp-sim[learn]"'
        raise bad_field("task.model.kind", "torch", remedy) from None
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)
    return torch


class TorchModule(Classifier):
    """A `torch.nn.Module` of yours: features in, logits out, no state besides its parameters.

    It is called with a batch of samples, (samples, ...); images come with their channels first, as
    convolutions take them. It is built as module(**arguments) under a seed of the run, which draws
    its first parameters. Needs the extra `learn`.
    """

    kind: ClassVar[str] = "torch"
    examples: ClassVar[tuple[tuple[dict[str, Any], tuple[int, ...]], ...]] = (
        ({"module": "torch.nn:Linear", "arguments": {"in_features": 5, "out_features": 3}}, (5,)),
    )
    module: str = Field(description="where it is, as package.module:Class")
    arguments: dict[str, Any] = Field(default={}, description="what it is built with")

    def network(self, shape: tuple[int, ...], classes: int) -> Network:
        """Build the module, and try its per-sample gradients before any run.

        Raises:
            InputError: it cannot be built, has state, or has no per-sample gradients.
        """
        torch = loaded()
        network = TorchNetwork(self._built(torch, 0), self, shape)
        tried = np.zeros((2, 1, *shape), np.float32)
        theta = network.flat(network.module)
        try:
            logits, tape = network.forward(theta, tried)
            right = logits.shape == (2, 1, classes)
            found = network.backward(theta, tape, np.ones_like(logits)) if right else None
        except Exception as error:  # a user's module may fail in any way
            shown = " x ".join(map(str, shape))
            raise self._bad(
                f"it has no gradient of each sample by itself, tried on samples of {shown}: "
                f"{(str(error) or type(error).__name__).splitlines()[0]}"
            ) from None
        if found is None:
            raise self._bad(
                f"it gives logits of shape {logits.shape[2:]} for a sample; there are {classes} "
                "classes, so return (samples, classes)"
            )
        return network

    def _built(self, torch: Any, seed: int) -> Any:
        try:
            cls = at_path(self.module)
        except PydanticCustomError as refusal:
            raise self._bad(str(refusal.message())) from None
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            try:
                module = cls(**self.arguments)
            except Exception as error:  # a user's module may fail in any way
                name = f"{type(error).__name__}: {error}"
                raise bad_field(
                    "task.model.arguments", self.arguments, f"{name}; mend them"
                ) from None
        if not isinstance(module, torch.nn.Module):
            raise self._bad("it must be a subclass of torch.nn.Module")
        self._refuse_state(module)
        return module

    def _refuse_state(self, module: Any) -> None:
        for name, part in module.named_modules():
            for cls in type(part).__mro__:
                if cls.__name__ in _KINDS_REFUSED and getattr(part, "p", 1) != 0:
                    what = f"{name or 'itself'} ({type(part).__name__})"
                    raise self._bad(f"{what} cannot be used: {_KINDS_REFUSED[cls.__name__]}")
        for name, _ in module.named_buffers():
            raise self._bad(
                f"{name} is a buffer, which is neither trained nor sent; make it a parameter, or a "
                "plain attribute if it never changes"
            )
        names = [name for name, _ in module.named_parameters()]
        for name in module.state_dict():
            if name not in names:
                raise self._bad(f"{name} is the same tensor as another parameter; untie them")
        if not names:
            raise self._bad("it has no parameters")

    def _bad(self, remedy: str) -> InputError:
        return bad_field("task.model.module", self.module, remedy)


class TorchNetwork(Network):
    """The module as a function of one flat vector, in tiles of rows.

    Every call of torch sees the same number of rows, the last ones padded, so that its choice of
    algorithm cannot depend on how many clients there are.
    """

    tile = TILE

    def __init__(self, module: Any, made: TorchModule, shape: tuple[int, ...]) -> None:
        self.module, self.made, self.shape = module, made, shape
        super().__init__(
            Part(name, tuple(tensor.shape)) for name, tensor in module.named_parameters()
        )

    def init(self, stream: Stream) -> Floats32:
        """Build the module anew, under the stream's seed."""
        high, low = stream.key()
        return self.flat(self.made._built(loaded(), high << 31 ^ low))

    @staticmethod
    def flat(module: Any) -> Floats32:
        """Return a module's parameters as one vector."""
        each = [tensor.detach().numpy().reshape(-1) for _, tensor in module.named_parameters()]
        return np.concatenate(each).astype(np.float32)

    def forward(self, theta: Floats32, features: Floats32) -> tuple[Floats32, Any]:
        """Call the module; the tape is the features, for the way back goes there again."""
        from torch.func import vmap

        call = vmap(self._logits, in_dims=(0 if theta.ndim == 2 else None, 0))
        return self._tiled(call, theta, features), features

    def backward(
        self, theta: Floats32, tape: Any, slopes: Floats32, out: Floats32 | None = None
    ) -> Floats32:
        """Pull the slopes back to the parameters."""
        torch = loaded()
        from torch.func import vjp, vmap

        def pulled(parameters: Mapping[str, Any], x: Any, slope: Any) -> Any:
            _, pull = vjp(lambda own: self._logits(own, x), parameters)
            (found,) = pull(slope)
            return torch.cat([found[part.name].reshape(-1) for part in self.parts])

        call = vmap(pulled, in_dims=(0 if theta.ndim == 2 else None, 0, 0))
        found = self._tiled(call, theta, tape, slopes)
        if out is None:
            return found
        out[:] = found
        return out

    def _logits(self, parameters: Mapping[str, Any], x: Any) -> Any:
        from torch.func import functional_call

        return functional_call(self.module, dict(parameters), (x,))

    def _tiled(self, call: Any, theta: Floats32, *columns: Floats32) -> Floats32:
        torch, out = loaded(), []
        own = theta.ndim == 2
        for first in range(0, len(columns[0]), TILE):
            rows = slice(first, first + TILE)
            count = len(columns[0][rows])
            parameters = _padded(theta[rows]) if own else theta
            named = {
                name: torch.from_numpy(np.ascontiguousarray(tensor))
                for name, tensor in self.named(parameters).items()
            }
            given = [torch.from_numpy(_padded(column[rows])) for column in columns]
            given[0] = self._channels_first(given[0])
            out.append(call(named, *given).detach().numpy()[:count])
        return np.concatenate(out)

    def _channels_first(self, features: Any) -> Any:
        """Return images as (rows, samples, channels, height, width), contiguous."""
        if len(self.shape) == 2:
            return features.unsqueeze(2)
        return features.movedim(-1, 2).contiguous() if len(self.shape) == 3 else features


def _padded(rows: Floats32) -> Floats32:
    """Repeat the first row until there is a whole tile."""
    lacking = TILE - len(rows)
    rows = np.ascontiguousarray(rows)
    return np.concatenate([rows, np.repeat(rows[:1], lacking, axis=0)]) if lacking else rows
