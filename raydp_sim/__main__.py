"""`python -m raydp_sim` is `raydp-sim`."""

from raydp_sim.cli.main import main

if __name__ == "__main__":
    main()
