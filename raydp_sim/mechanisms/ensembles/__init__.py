"""A private majority of private votes: randomized response that depends on the tally.

Jiang 2025 (004), chapter 3. Every file holds one idea and nothing here draws or knows clients.
"""
