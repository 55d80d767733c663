"""Category plus a key of least entropy, modulo k."""

from functools import cached_property
from typing import Any, ClassVar

from raydp_sim.mechanisms.parts.additive_key import AdditiveKey
from raydp_sim.mechanisms.parts.heavy_keys import fewest_bits, key_entropy, spread_keys
from raydp_sim.mechanisms.recoverable import Recoverable


class LdpRec(Recoverable):
    """Send category + key modulo k; who is handed the key subtracts it and has the category.

    Girgis et al. 2020 (Girgis 2024, Theorem 7.5.1): without the key a report is epsilon_local-LDP,
    and no key of less entropy allows both. Of the k keys the s* of `fewest_bits` are
    e^epsilon_local times as likely as the others. Which ones is not said there; here those of
    `spread_keys`, so that the public can estimate frequencies as well, without bias. With one heavy
    key it is 'krr'. With 2 out of a power of two the public could estimate nothing; there, one key
    more or less is heavy, at a little more entropy.

    Probabilities are multiples of 2^-53; the loss is exact for what is drawn and never above
    epsilon_local.

    Fields:
        categories: how many there are, k, 2..1048576; clients hold whole numbers 0..k-1.

    Example:
        >>> round(LdpRec(epsilon_local=1.0, categories=10).key_entropy, 5)
        3.14539
    """

    kind: ClassVar[str] = "ldp-rec"
    source: ClassVar[str] = "Girgis et al. 2020"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "categories": 5},
        {"epsilon_local": 1.0, "categories": 10, "dimension": 1},
        {"epsilon_local": 3.0, "categories": 37},
        {"epsilon_local": 0.5, "categories": 2},
        {"epsilon_local": 0.5, "categories": 4},
    )

    @cached_property
    def key(self) -> AdditiveKey:
        """Elements of Z_k, the s* heavy ones spread out."""
        epsilon, k = self.need_epsilon(), self.categories
        best = fewest_bits(k, epsilon)
        near = sorted({best, max(1, best - 1), min(k - 1, best + 1)} - {best}, key=self._entropy)
        sets = (spread_keys(k, count) for count in (best, *near))
        return AdditiveKey(k, 1, k, next(heavy for heavy in sets if heavy is not None), epsilon)

    def _entropy(self, heavy: int) -> float:
        return key_entropy(self.categories, heavy, self.need_epsilon())
