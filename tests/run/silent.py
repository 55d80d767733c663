"""A task that does not say what to expect of it."""

from raydp_sim.tasks.base import Setting
from raydp_sim.tasks.expected import Expected, Outlook
from raydp_sim.tasks.mean import Mean


class Silent(Mean):
    """A mean without a formula."""

    def expected(self, setting: Setting, outlook: Outlook) -> Expected | None:
        """Say nothing."""
        return None
