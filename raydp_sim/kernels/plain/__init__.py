"""Every kernel in NumPy: what the compiled ones must give bit for bit."""

from raydp_sim.kernels.plain.draws import buckets, coins, mark, sample, toss
from raydp_sim.kernels.plain.frames import coefficients, entries
from raydp_sim.kernels.plain.hadamard import hadamard
from raydp_sim.kernels.plain.rows import dots, leaned, turned
from raydp_sim.kernels.plain.shuffle import group, shuffle, tally
from raydp_sim.kernels.plain.threefry import encrypt, normals, uniforms, words

__all__ = [
    "buckets",
    "coefficients",
    "coins",
    "dots",
    "encrypt",
    "entries",
    "group",
    "hadamard",
    "leaned",
    "mark",
    "normals",
    "sample",
    "shuffle",
    "tally",
    "toss",
    "turned",
    "uniforms",
    "words",
]
