"""What mechanisms that release the majority of votes have in common."""

from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from pydantic import model_validator

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages
from raydp_sim.mechanisms.wires.symbols import Symbols
from raydp_sim.random import ClientStream, Stream


class Ballot(Mechanism):
    """Voters send one bit each to an aggregator that they trust; it releases one bit.

    Whoever does not vote is counted as a fair coin, which tells nothing of anyone's data: so the
    guarantee is that of all voters, whoever came.
    """

    where: ClassVar[Literal["client", "aggregator"]] = "aggregator"
    tells: ClassVar[Literal["mean", "majority"]] = "majority"

    @model_validator(mode="after")
    def _single(self) -> "Ballot":
        if self.dimension not in (None, 1):
            raise ValueError(f"dimension is {self.dimension}; '{self.kind}' takes one vote: 1")
        return self

    @property
    def domain(self) -> Domain:
        """One bit."""
        return Domain("binary", 1.0, 1)

    @cached_property
    def wire(self) -> Symbols:
        """One message of one bit."""
        return Symbols(2)

    @property
    def voters(self) -> int:
        """K, all clients."""
        if self.clients is None:
            raise InputError(f"mechanism '{self.kind}' has no clients; give clients=K")
        return self.clients

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Send the votes."""
        return Messages(values.astype(self.wire.dtype))

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Return the label, 0 or 1, that is released."""
        draw = stream.generator()
        missing = self.voters - int(counts.sum())
        if missing < 0:
            raise InputError(f"there are {counts.sum()} votes of {self.voters} voters")
        ones = int(counts[0, 1]) + int(draw.binomial(missing, 0.5))
        says_one = self.law()[ones]
        return np.array([float(draw.random() < says_one)])

    def law(self) -> Floats:
        """Return Pr[1 | tally] for tallies 0..K."""
        raise NotImplementedError

    @property
    def bias(self) -> str:
        """It is no mean."""
        return "it tells the majority of the votes, not their mean"
