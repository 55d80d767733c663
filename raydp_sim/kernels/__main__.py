"""`python -m raydp_sim.kernels` says which kernels are used, and checks that they draw as NumPy."""

import sys

from raydp_sim.kernels import CHOICE


def main() -> int:
    """Print one line; 1 if no kernels are compiled or what was asked for is not there."""
    print(CHOICE.refused or CHOICE.notice or f"kernels: {CHOICE.name}")
    return int(bool(CHOICE.refused or CHOICE.notice))


if __name__ == "__main__":
    sys.exit(main())
