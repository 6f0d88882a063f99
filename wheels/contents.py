"""Checks a wheel: shared libraries, their dependencies and exports, the SBOM, and the platform tag."""

import io
import json
import re
import sys
import zipfile
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

# The system's C library, glibc or musl.
SYSTEM = re.compile(r"(libc|libm|libpthread)\.so\.6|libpthread\.so\.0|ld-linux.*\.so\.\d|libc\.musl-.*\.so\.1")
# The newest glibc that a wheel may require (as in CentOS 8 and Debian 10).
NEWEST_GLIBC = (2, 28)


# The project's C library, which the extensions share.
LIBRARY = "libkafkacodec.so"


def dynamic(elf: ELFFile, kind: str, value: str) -> list[str]:
    """The values of the tags of a kind in the dynamic section."""
    sections = [s for s in elf.iter_sections() if isinstance(s, DynamicSection)]
    return [getattr(tag, value) for s in sections for tag in s.iter_tags() if tag.entry.d_tag == kind]


def exported(elf: ELFFile) -> list[str]:
    sections = [s for s in elf.iter_sections() if isinstance(s, SymbolTableSection)]
    symbols = [symbol for s in sections for symbol in s.iter_symbols()]
    return [
        symbol.name
        for symbol in symbols
        if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] in ("STB_GLOBAL", "STB_WEAK")
    ]


def check_shared(name: str, content: bytes) -> None:
    """Checks the dependencies of a shared library, and that it exports only an init function or its own functions."""
    elf = ELFFile(io.BytesIO(content))
    file = Path(name).name
    own = file == LIBRARY
    for needed in dynamic(elf, "DT_NEEDED", "needed"):
        if not SYSTEM.fullmatch(needed) and (own or needed != LIBRARY):
            sys.exit(f"{name} needs {needed}")
    for path in dynamic(elf, "DT_RUNPATH", "runpath") + dynamic(elf, "DT_RPATH", "rpath"):
        if path.split("/")[0] != "$ORIGIN" or ":" in path:
            sys.exit(f"{name} looks for libraries in {path}")
    init = f"PyInit_{file.split('.')[0]}"
    if foreign := [symbol for symbol in exported(elf) if not (symbol.startswith("kc_") if own else symbol == init)]:
        sys.exit(f"{name} exports {', '.join(foreign)}")
    if elf.get_section_by_name(".symtab") or elf.get_section_by_name(".debug_info"):
        sys.exit(f"{name} is not stripped")


def check_sbom(bom: dict, requirements: set[str]) -> None:
    names = {component["name"] for component in bom["components"]}
    if bom["bomFormat"] != "CycloneDX" or not {"csrc", "cython", *requirements} <= names:
        sys.exit(f"the SBOM names {', '.join(sorted(names))}")


def requirements_of(metadata: str) -> set[str]:
    lines = [line for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra ==" not in line]
    return {re.match(r"Requires-Dist: ([\w.-]+)", line)[1] for line in lines}


def check_tag(wheel: Path) -> None:
    found = re.search(r"manylinux_(\d+)_(\d+)_", wheel.name)
    if not found or (int(found[1]), int(found[2])) > NEWEST_GLIBC:
        sys.exit(f"{wheel.name} is not for manylinux_{NEWEST_GLIBC[0]}_{NEWEST_GLIBC[1]} or older systems")


def check(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        shared = [name for name in names if name.endswith(".so")]
        for name in shared:
            check_shared(name, archive.read(name))
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        (sbom,) = (name for name in names if "/sboms/kafkacodec" in name)
        check_sbom(json.loads(archive.read(sbom)), requirements_of(archive.read(metadata).decode()))
    if [Path(name).name for name in shared].count(LIBRARY) != 1 or len(shared) == 1:
        sys.exit(f"{wheel.name} has no extensions, or not one {LIBRARY}")
