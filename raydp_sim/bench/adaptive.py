"""A mean whose releases are asked for one by one, as those of an adaptive task are."""

from typing import ClassVar

from raydp_sim.tasks.mean import Mean


class AdaptiveMean(Mean):
    """Says that an ask may depend on the release before it, though none does."""

    kind: ClassVar[str] = "adaptive-mean"
    adaptive: ClassVar[bool] = True
    open_ended: ClassVar[bool] = False
