"""What the tests of single mechanisms take from the checks that all of them pass."""

from raydp_sim.check.enumeration import exact_moments as exact_moments
from raydp_sim.check.enumeration import losses as losses
from raydp_sim.check.samples import ALPHA as ALPHA
from raydp_sim.check.samples import SERVER as SERVER
from raydp_sim.check.samples import folded as folded
from raydp_sim.check.samples import inputs as inputs
from raydp_sim.check.samples import reports as reports
