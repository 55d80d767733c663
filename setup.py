"""Build the compiled kernels where there is a C compiler; without one NumPy does the same work."""

from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE = Path("raydp_sim/kernels/source")
# No contraction: a fused multiply-add rounds once where NumPy rounds twice.
UNIX = ["-O3", "-std=c11", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden"]
MSVC = ["/O2", "/fp:precise"]


class Build(build_ext):
    """Choose the flags once the compiler is known."""

    def build_extensions(self) -> None:
        """Compile with the flags of the compiler at hand."""
        flags = MSVC if self.compiler.compiler_type == "msvc" else UNIX
        for extension in self.extensions:
            extension.extra_compile_args = [*flags, *extension.extra_compile_args]
        super().build_extensions()


setup(
    ext_modules=[
        Extension(
            "raydp_sim.kernels._compiled",
            [str(SOURCE / "module.c")],
            depends=sorted(str(path) for path in SOURCE.glob("*.h")),
            define_macros=[("Py_LIMITED_API", "0x030b0000")],
            py_limited_api=True,
            optional=True,
        )
    ],
    cmdclass={"build_ext": Build},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
