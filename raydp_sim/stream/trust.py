"""Who is trusted with what: which batches readers are handed, and what has to be paid for."""

from dataclasses import dataclass
from typing import Literal

Name = Literal["central", "local", "shuffle"]


@dataclass(frozen=True)
class Trust:
    """One trust model.

    Attributes:
        name: as the scenario file has it.
        shuffled: whether a shuffler stands between clients and readers, who then are handed
            `Shuffled` (or `Slotted`) batches; otherwise the server collects `Reports` itself.
        noise_at: who draws the noise.
        pays_unused: whether reports that arrive but are not used are charged too, because nobody
            who could be trusted drops them unseen.
    """

    name: Name
    shuffled: bool
    noise_at: Literal["client", "aggregator"]
    pays_unused: bool

    @property
    def collector(self) -> Literal["shuffler", "server"]:
        """Who receives the clients' reports."""
        return "shuffler" if self.shuffled else "server"


TRUSTS: dict[Name, Trust] = {
    "central": Trust("central", shuffled=False, noise_at="aggregator", pays_unused=False),
    "local": Trust("local", shuffled=False, noise_at="client", pays_unused=True),
    "shuffle": Trust("shuffle", shuffled=True, noise_at="client", pays_unused=False),
}
