"""What is trained: one classifier per file, found by its kind. Only here is torch imported."""

from raydp_sim.models.base import Classifier
from raydp_sim.registry import Registry

# The base is only compared with, so it may be abstract.
MODELS = Registry("raydp_sim.models", Classifier)  # type: ignore[type-abstract]
