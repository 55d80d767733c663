"""Every kernel in NumPy: what the compiled ones must give bit for bit."""

from raydp_sim.kernels.plain.draws import buckets, coins, dealt, mark, picked, sample, toss
from raydp_sim.kernels.plain.frames import coefficients, entries
from raydp_sim.kernels.plain.hadamard import hadamard
from raydp_sim.kernels.plain.rows import dots, gathered, largest, leaned, squares, steps, turned
from raydp_sim.kernels.plain.shuffle import group, merge, shuffle, tally
from raydp_sim.kernels.plain.softmax import softmax
from raydp_sim.kernels.plain.threefry import encrypt, normals, uniforms, words

__all__ = [
    "buckets",
    "coefficients",
    "coins",
    "dealt",
    "dots",
    "encrypt",
    "entries",
    "gathered",
    "group",
    "hadamard",
    "largest",
    "leaned",
    "mark",
    "merge",
    "normals",
    "picked",
    "sample",
    "shuffle",
    "softmax",
    "squares",
    "steps",
    "tally",
    "toss",
    "turned",
    "uniforms",
    "words",
]
