"""Builds the C library in csrc/ once and links it into every extension, which are kafkacodec/**/_*.pyx.

Switches (environment variables, set to 1):
  DEBUG     no optimisation, assertions and debugging symbols
  SANITIZE  AddressSanitizer and UndefinedBehaviorSanitizer
  COVERAGE  gcov counters for C and line tracing for Cython
"""

import json
import os
import re
import subprocess
import sysconfig
from functools import cache
from glob import glob
from pathlib import Path

import Cython
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel


def switch(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


DEBUG, SANITIZE, COVERAGE = switch("DEBUG"), switch("SANITIZE"), switch("COVERAGE")

common = ["-std=c11", "-fvisibility=hidden", "-fno-strict-aliasing", "-pthread"]
link = ["-pthread"]
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

sources = sorted(glob("csrc/*/kc_*.c"))
bindings = sorted(glob("kafkacodec/**/_*.pyx", recursive=True))
declarations = sorted(glob("kafkacodec/**/*.pxd", recursive=True))

# What a file names: headers of csrc, and declarations by their modules.
HEADER = re.compile(r'^(?:#include|cdef extern from) "([\w/]+\.h)"', re.M)
CIMPORT = re.compile(r"^from ([\w.]+) cimport (\w+)", re.M)


@cache
def included(path: str) -> list[str]:
    """The headers and .pxd files that a C or Cython file is made of, its own .pxd among them."""
    found: set[str] = set()
    todo = [path]
    while todo:
        text = Path(todo[-1]).read_text()
        names = [f"csrc/{header}" for header in HEADER.findall(text)]
        for module, name in CIMPORT.findall(text):
            names += [f"{module}.{name}".replace(".", os.sep) + ".pxd", module.replace(".", os.sep) + ".pxd"]
        if path.endswith(".pyx"):
            names.append(todo[-1].removesuffix(".pyx") + ".pxd")
        todo.pop()
        new = {name for name in names if os.path.exists(name)} - found
        found |= new
        todo += new
    return sorted(found)


library = (
    "kc",
    {
        "sources": sources,
        "include_dirs": ["csrc"],
        "cflags": [*common, "-fPIC", *warnings],
        "obj_deps": {source: included(source) for source in sources},
    },
)

extensions = [
    Extension(
        path.removesuffix(".pyx").replace(os.sep, "."),
        [path],
        include_dirs=["csrc"],
        depends=[*sources, *included(path)],
        extra_compile_args=common,
        extra_link_args=link,
        define_macros=[("CYTHON_TRACE_NOGIL", "1")] if COVERAGE else [],
    )
    for path in bindings
]

GENERATED = "build/cython" + "-debug" * DEBUG + "-trace" * COVERAGE  # directives differ, so does the C


def outdated(extension: Extension) -> bool:
    """Whether a .pxd is newer than the C code made from it, which cythonize does not see inside a package."""
    (path,) = extension.sources
    made = Path(GENERATED, path).with_suffix(".c")
    return made.exists() and any(
        os.path.getmtime(p) > made.stat().st_mtime for p in extension.depends if p.endswith(".pxd")
    )


def cythonized() -> list[Extension]:
    """The extensions with C code for sources; what is outdated is written anew."""
    directives = {
        "boundscheck": DEBUG,
        "wraparound": False,
        "cdivision": True,
        "embedsignature": True,
        "linetrace": COVERAGE,
    }
    done = []
    for force in (True, False):
        chosen = [extension for extension in extensions if outdated(extension) == force]
        options = {"build_dir": GENERATED, "language_level": 3, "compiler_directives": directives}
        done += cythonize(chosen, force=force, **options)
    return done


def compiler() -> str:
    """Name and version of the C compiler, as its own first line says."""
    command = [*(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split(), "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.partition("\n")[0]


def sbom(name: str, version: str, requirements: list[str]) -> dict:
    """What is in the wheel's extensions, and what it needs beside them, in CycloneDX's form (PEP 770).

    Nothing in it depends on when or where it was made.
    """
    linked = [
        {"name": "csrc", "version": version, "description": "the project's own C library"},
        {
            "name": "cython",
            "version": Cython.__version__,
            "purl": f"pkg:pypi/cython@{Cython.__version__}",
            "description": "wrote the C of the extensions, with its own run-time functions in it",
        },
        {
            "name": "compiler",
            "version": compiler(),
            "description": "start-up code, and the test for processor features",
        },
    ]
    needed = []
    for requirement in requirements:
        package, rest = re.fullmatch(r"([\w.-]+)(.*)", requirement).groups()
        description = f"installed beside it: {rest.strip()}"
        needed.append({"name": package, "purl": f"pkg:pypi/{package.lower()}", "description": description})
    components = [{"type": "library", "bom-ref": c["name"], **c} for c in linked + needed]
    own = {"type": "library", "bom-ref": name, "name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**own, "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": components,
        "dependencies": [{"ref": name, "dependsOn": [c["name"] for c in components]}],
    }


class Wheel(bdist_wheel):
    """A wheel with its bill of materials in dist-info/sboms."""

    def write_wheelfile(self, wheelfile_base, *arguments, **options):
        super().write_wheelfile(wheelfile_base, *arguments, **options)
        d = self.distribution
        path = Path(wheelfile_base) / "sboms" / f"{d.get_name()}.cdx.json"
        path.parent.mkdir(exist_ok=True)
        content = sbom(d.get_name(), d.get_version(), sorted(d.install_requires))
        path.write_text(json.dumps(content, indent=1) + "\n")


setup(
    cmdclass={"bdist_wheel": Wheel},
    options={"build_ext": {"parallel": os.cpu_count()}},
    libraries=[library],
    ext_modules=cythonized(),
)
