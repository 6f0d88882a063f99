"""What a wheel may contain: extensions that link the C library alone, a platform tag for old systems too, an SBOM."""

import io
import json
import re
import sys
import zipfile
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

# Parts of the C library of every Linux system.
SYSTEM = re.compile(r"(libc|libm|libpthread)\.so\.6|libpthread\.so\.0|ld-linux.*\.so\.\d|libc\.musl-.*\.so\.1")
# No newer than this may the system's C library have to be (CentOS 8 and Debian 10 have it).
NEWEST_GLIBC = (2, 28)


def needed(elf: ELFFile) -> list[str]:
    sections = [s for s in elf.iter_sections() if isinstance(s, DynamicSection)]
    return [tag.needed for s in sections for tag in s.iter_tags() if tag.entry.d_tag == "DT_NEEDED"]


def exported(elf: ELFFile) -> list[str]:
    sections = [s for s in elf.iter_sections() if isinstance(s, SymbolTableSection)]
    symbols = [symbol for s in sections for symbol in s.iter_symbols()]
    return [
        symbol.name
        for symbol in symbols
        if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] in ("STB_GLOBAL", "STB_WEAK")
    ]


def check_extension(name: str, content: bytes) -> None:
    """A module shows its init function and needs nothing but the system's C library: all else was linked from csrc."""
    elf = ELFFile(io.BytesIO(content))
    module = Path(name).name.split(".")[0]
    if foreign := [library for library in needed(elf) if not SYSTEM.fullmatch(library)]:
        sys.exit(f"{name} needs {', '.join(foreign)}")
    if set(exported(elf)) != {f"PyInit_{module}"}:
        sys.exit(f"{name} exports {', '.join(exported(elf))}")
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
        extensions = [name for name in names if name.endswith(".so")]
        for name in extensions:
            check_extension(name, archive.read(name))
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        (sbom,) = (name for name in names if "/sboms/kafkacodec" in name)
        check_sbom(json.loads(archive.read(sbom)), requirements_of(archive.read(metadata).decode()))
    if not extensions:
        sys.exit(f"{wheel.name} has no extensions")
