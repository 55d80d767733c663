"""The C source under the address and undefined-behaviour sanitizers, on every case and set."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import raydp_sim.kernels

SOURCE = Path(raydp_sim.kernels.__file__).parent / "source"
FLAGS = "-O1 -g -std=c11 -ffp-contract=off -fPIC -shared -Wall -Wextra -Werror".split()
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
# Plays the cases with the extension at argv[1] in place of the installed one.
PLAY = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("raydp_sim.kernels._compiled", sys.argv[1])
sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules[spec.name])
from raydp_sim.kernels import compiled, plain
from tests.kernels.cases import CASES, played
assert compiled._compiled.__file__ == sys.argv[1]
expected = {name: played(plain, name) for name in CASES}
for each in compiled.sets():
    compiled.use(each)
    for name in CASES:
        assert played(compiled, name) == expected[name], (each, name)
    print(each, "is clean")
"""


@pytest.mark.slow
def test_no_sanitizer_finds_anything(tmp_path):
    compiler = shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("no gcc to compile with sanitizers")
    asked = [compiler, "-print-file-name=libasan.so"]
    asan = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(asan).is_absolute():
        pytest.skip("this gcc has no sanitizers")
    made = tmp_path / "_compiled.abi3.so"
    include = f"-I{sysconfig.get_path('include')}"
    command = [compiler, *FLAGS, *SANITIZERS, include, str(SOURCE / "module.c"), "-o", str(made)]
    built = subprocess.run([*command, "-lm"], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    # Python itself keeps memory to its end, which is no leak of the kernels.
    preloaded = {"LD_PRELOAD": asan, "ASAN_OPTIONS": "detect_leaks=0"}
    played = subprocess.run(
        [sys.executable, "-c", PLAY, str(made)],
        env={**os.environ, **preloaded, "OPENBLAS_NUM_THREADS": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert played.returncode == 0, played.stderr[-4000:]
    assert "baseline is clean" in played.stdout
