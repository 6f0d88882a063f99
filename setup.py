"""Builds the C library in csrc/ as a shared library inside the package, and the extensions, kafkacodec/**/_*.pyx,
that call it. docs/architecture.md says why it is shared.

Switches (environment variables, set to 1):
  DEBUG     no optimisation, assertions and debugging symbols
  SANITIZE  AddressSanitizer and UndefinedBehaviorSanitizer
  COVERAGE  gcov counters for C and line tracing for Cython
  PLAIN     message objects made and freed by CPython's functions alone, as where its version is unknown or has no GIL
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from glob import glob
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036  # pip itself says so only after minutes of compiling
    sys.exit(f"kafkacodec needs Python 3.11 or later; this is {sys.version.split()[0]}")

import Cython
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext


def switch(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


DEBUG, SANITIZE, COVERAGE, PLAIN = switch("DEBUG"), switch("SANITIZE"), switch("COVERAGE"), switch("PLAIN")

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

macros: list[tuple[str, str | None]] = [("CYTHON_TRACE_NOGIL", "1")] * COVERAGE + [("KC_PLAIN", "1")] * PLAIN

warnings = ["-Wall", "-Wextra", "-Wconversion", "-Wsign-compare", "-Wshadow", "-Wvla"]
if os.environ.get("CI"):
    warnings += ["-Werror"]

# An extension finds the library relative to its own path. Calls inside the library are bound when it is linked
# (-Bsymbolic and -fno-semantic-interposition; macOS always does so).
MACOS = sys.platform == "darwin"
LIBRARY = "kafkacodec/_core/libkafkacodec" + (".dylib" if MACOS else ".so")
ORIGIN = "@loader_path" if MACOS else "$ORIGIN"
library_flags = [*common, "-fPIC", "-fno-semantic-interposition", "-fvisibility=default", *warnings]
library_link = ["-Wl,-install_name,@rpath/" if MACOS else "-Wl,-Bsymbolic,-soname,"]
library_link = [*link, library_link[0] + os.path.basename(LIBRARY)]

sources = sorted(glob("csrc/*/kc_*.c"))
bindings = sorted(glob("kafkacodec/**/_*.pyx", recursive=True))
declarations = sorted(glob("kafkacodec/**/*.pxd", recursive=True))

# The references in a file: to headers of csrc by path, to .pxd files by module.
HEADER = re.compile(r'^(?:#include|cdef extern from) "([\w/]+\.h)"', re.M)
CIMPORT = re.compile(r"^from ([\w.]+) cimport (\w+)", re.M)


@cache
def included(path: str) -> list[str]:
    """The headers and .pxd files that a C or Cython file includes, directly or not, and its own .pxd."""
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


def extension(path: str) -> Extension:
    """The extension of a .pyx file."""
    back = os.path.relpath(os.path.dirname(LIBRARY), os.path.dirname(path))
    return Extension(
        path.removesuffix(".pyx").replace(os.sep, "."),
        [path],
        include_dirs=["csrc"],
        depends=included(path),
        libraries=["kafkacodec"],
        extra_compile_args=common,
        extra_link_args=[*link, f"-Wl,-rpath,{ORIGIN}/{back}"],
        define_macros=macros,
    )


extensions = [extension(path) for path in bindings]

GENERATED = "build/cython" + "-debug" * DEBUG + "-trace" * COVERAGE  # directives change the generated C


def outdated(extension: Extension) -> bool:
    """Whether a .pxd is newer than the generated C code, which cythonize does not detect inside a package."""
    (path,) = extension.sources
    made = Path(GENERATED, path).with_suffix(".c")
    return made.exists() and any(
        os.path.getmtime(p) > made.stat().st_mtime for p in extension.depends if p.endswith(".pxd")
    )


def cythonized() -> list[Extension]:
    """The extensions with generated C code as sources; outdated code is generated again."""
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


class BuildExtensions(build_ext):
    """Builds the library, then the extensions that link it."""

    def build_extensions(self):
        # The linker command of this Python may have search paths of this machine, which must not get into a wheel.
        self.compiler.linker_so = [part for part in self.compiler.linker_so if not part.startswith("-Wl,-rpath")]
        self.build_library(self.library())
        # Extensions that use only inline functions do not link the library.
        self.compiler.linker_so.append("-Wl,-dead_strip_dylibs" if MACOS else "-Wl,--as-needed")
        for extension in self.extensions:
            extension.library_dirs.append(os.path.dirname(self.library()))
        super().build_extensions()

    def library(self) -> str:
        """The path of the built library; an in-place build copies it from there, like the extensions."""
        return os.path.join(self.build_lib, LIBRARY)

    def build_library(self, target: str) -> None:
        def is_new(source: str) -> bool:
            (made,) = self.compiler.object_filenames([source], output_dir=self.build_temp)
            newest = max(os.path.getmtime(path) for path in (source, *included(source)))
            return self.force or not os.path.exists(made) or os.path.getmtime(made) < newest

        def compile(source: str) -> None:
            self.compiler.compile([source], self.build_temp, include_dirs=["csrc"], extra_postargs=library_flags)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(compile, filter(is_new, sources)))
        objects = self.compiler.object_filenames(sources, output_dir=self.build_temp)
        command = [part.replace("-bundle", "-dynamiclib") for part in self.compiler.linker_so]
        os.makedirs(os.path.dirname(target), exist_ok=True)
        self.spawn([*command, *objects, *library_link, "-o", target])

    def copy_extensions_to_source(self):
        super().copy_extensions_to_source()
        with contextlib.suppress(FileNotFoundError):  # unlinked, since a process may have the old file mapped
            os.unlink(LIBRARY)
        shutil.copy(self.library(), LIBRARY)

    def get_output_mapping(self):
        return {**super().get_output_mapping(), self.library(): LIBRARY}

    def get_outputs(self):
        return [*super().get_outputs(), self.library()]


def compiler() -> str:
    """Name and version of the C compiler: the first line of the output of --version."""
    command = [*(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split(), "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.partition("\n")[0]


def sbom(name: str, version: str, requirements: list[str]) -> dict:
    """A software bill of materials in the CycloneDX format (PEP 770): contents of the extensions, required packages.

    It does not depend on the time and place of the build.
    """
    linked = [
        {"name": "csrc", "version": version, "description": "the project's own C library"},
        {
            "name": "cython",
            "version": Cython.__version__,
            "purl": f"pkg:pypi/cython@{Cython.__version__}",
            "description": "generated the C code of the extensions, including its run-time functions",
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
        description = f"required package: {rest.strip()}"
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
    """Adds the bill of materials to the wheel, in dist-info/sboms."""

    def write_wheelfile(self, wheelfile_base, *arguments, **options):
        super().write_wheelfile(wheelfile_base, *arguments, **options)
        d = self.distribution
        path = Path(wheelfile_base) / "sboms" / f"{d.get_name()}.cdx.json"
        path.parent.mkdir(exist_ok=True)
        content = sbom(d.get_name(), d.get_version(), sorted(d.install_requires))
        path.write_text(json.dumps(content, indent=1) + "\n")


# A release names the repository that it is made in, and the tag: PROJECT_URL, PROJECT_REF.
URL, REF = os.environ.get("PROJECT_URL", ""), os.environ.get("PROJECT_REF", "")
sys.path.insert(0, "wheels")
from package_page import package_page, package_urls

setup(
    long_description=package_page(Path("README.md").read_text(), URL, REF),
    long_description_content_type="text/markdown",
    project_urls=package_urls(URL, REF),
    cmdclass={"bdist_wheel": Wheel, "build_ext": BuildExtensions},
    options={"build_ext": {"parallel": os.cpu_count()}},
    ext_modules=cythonized(),
)
