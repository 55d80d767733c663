"""What each accountant says of one run: which of them holds is the scenario's to choose."""

from typing import Any

from raydp_sim.mechanisms.central_epochs import CentralEpochs
from raydp_sim.tasks.shuffled_gradients import accounting
from raydp_sim.tasks.shuffled_gradients.plan import Epoch, private_epochs, tail

_SAYS = {
    "pabi": "only ends of epochs are seen; whoever knows the order",
    "secret-order": "only ends of epochs are seen, and nobody knows the order",
    "every-step": "every iterate is seen (DP-SGD without sampling)",
    "dp-gd": "another algorithm: as many full-batch steps with this noise on the mean gradient",
}


def accountants(
    noise: CentralEpochs, plan: tuple[Epoch, ...], records: int, delta: float, order: str
) -> dict[str, list[Any]]:
    """Return a column each: name, epsilon at delta, what it assumes, and whether it is charged.

    All convert divergences as the text does, so that they can be compared; the ledger converts
    more sharply.
    """
    used, sigma, bound = private_epochs(plan), noise.need_sigma(), noise.bound
    left, most = tail(plan, records), max(epoch.private for epoch in plan)
    found = {"pabi": 0.0, "every-step": 0.0}
    if used:
        linear = (accounting.divergence(bound, sigma, used, t) for t in (left, 1))
        found = dict(zip(found, (accounting.epsilon(c, delta) for c in linear), strict=True))
    if used and order != "ig":
        place = (delta, bound, sigma, records, most, used)
        found["secret-order"] = accounting.secret_epsilon(*place, order == "so")
    found["dp-gd"] = accounting.descent_epsilon(delta, bound, sigma, records, len(plan))
    return {
        "accountant": list(found),
        "epsilon": list(found.values()),
        "assumes": [_SAYS[name] for name in found],
        "charged": [name == noise.accountant for name in found],
    }
