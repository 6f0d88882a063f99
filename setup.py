"""Builds the C library in csrc/ once and links it into every extension in kafkacodec/_*.pyx.

Switches (environment variables, set to 1):
  DEBUG     no optimisation, assertions and debugging symbols
  SANITIZE  AddressSanitizer and UndefinedBehaviorSanitizer
  COVERAGE  gcov counters for C and line tracing for Cython
"""

import os
from glob import glob

from Cython.Build import cythonize
from setuptools import Extension, setup


def switch(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


DEBUG, SANITIZE, COVERAGE = switch("DEBUG"), switch("SANITIZE"), switch("COVERAGE")

common = ["-std=c11", "-fvisibility=hidden", "-fno-strict-aliasing"]
link: list[str] = []
if DEBUG or SANITIZE or COVERAGE:
    common += ["-O1", "-g3"]
else:
    common += ["-O3", "-g0", "-DNDEBUG"]
    link += ["-s"]
if SANITIZE:
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]
    common += flags
    link += flags
if COVERAGE:
    common += ["--coverage"]
    link += ["--coverage"]

warnings = ["-Wall", "-Wextra", "-Wconversion", "-Wsign-compare", "-Wshadow", "-Wvla"]
if os.environ.get("CI"):
    warnings += ["-Werror"]

headers = sorted(glob("csrc/*.h"))
library = (
    "kc",
    {
        "sources": sorted(glob("csrc/*.c")),
        "include_dirs": ["csrc"],
        "cflags": [*common, "-fPIC", *warnings],
        "obj_deps": {"": headers},
    },
)

extensions = [
    Extension(
        "kafkacodec." + os.path.basename(path).removesuffix(".pyx"),
        [path],
        include_dirs=["csrc"],
        depends=[*headers, *sorted(glob("csrc/*.c")), *sorted(glob("kafkacodec/*.pxd"))],
        extra_compile_args=common,
        extra_link_args=link,
        define_macros=[("CYTHON_TRACE_NOGIL", "1")] if COVERAGE else [],
    )
    for path in sorted(glob("kafkacodec/_*.pyx"))
]

GENERATED = "build/cython" + "-debug" * DEBUG + "-trace" * COVERAGE  # directives differ, so does the C


def declarations_changed() -> bool:
    """Whether a .pxd is newer than the C code made from it, which cythonize does not see inside a package."""
    newest = max(os.path.getmtime(path) for path in glob("kafkacodec/*.pxd"))
    made = glob(f"{GENERATED}/kafkacodec/_*.c")
    return any(os.path.getmtime(path) < newest for path in made)


setup(
    options={"build_ext": {"parallel": os.cpu_count()}},
    libraries=[library],
    ext_modules=cythonize(
        extensions,
        build_dir=GENERATED,
        force=declarations_changed(),
        language_level=3,
        compiler_directives={
            "boundscheck": DEBUG,
            "wraparound": False,
            "cdivision": True,
            "embedsignature": True,
            "linetrace": COVERAGE,
        },
    ),
)
