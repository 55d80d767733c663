"""Does a class keep its promises? The checks of the shared test-suite, for anyone's class."""

from raydp_sim.check.finding import Finding as Finding
from raydp_sim.check.models import MODEL_CHECKS as MODEL_CHECKS
from raydp_sim.check.suite import MECHANISM_CHECKS as MECHANISM_CHECKS
from raydp_sim.check.suite import TASK_CHECKS as TASK_CHECKS
from raydp_sim.check.suite import check_mechanism as check_mechanism
from raydp_sim.check.suite import check_model as check_model
from raydp_sim.check.suite import check_task as check_task
from raydp_sim.check.suite import checks_of as checks_of
