"""Seeds that follow from the run's own, and who is given which."""

from dataclasses import replace

from raydp_sim.random import Stream
from raydp_sim.scenario import Scenario
from raydp_sim.tasks.base import Setting


def readers_seed(scenario: Scenario) -> int:
    """Return the seed of readers: behind a shuffler no client's draw, cohort or order follows.

    Nor does any key, where readers have levels.
    """
    if not scenario.trust_model.shuffled and scenario.privacy.levels is None:
        return scenario.seed
    high, low = Stream(scenario.seed).at("aggregator's own").key()
    return (high << 31) ^ low


def opened(setting: Setting, readers: Stream) -> Setting:
    """Return the setting with the seed of what is public before the first release.

    Args:
        setting: of the run.
        readers: root of the readers' randomness in this repetition.
    """
    return replace(setting, seed=readers.at("init").key()[0])
