"""Adds compiled modules to the zip files from which Spark's Python workers import pyspark and py4j.

They have only sources, and Python keeps nothing that it compiles from a zip file: each worker would compile them once
more, for more than a second of processor time, where Spark waits ten seconds for it on a machine however busy.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import sysconfig
import warnings
import zipfile
from pathlib import Path


def main() -> None:
    for archive in sorted(Path(sysconfig.get_path("purelib")).glob("pyspark/python/lib/*.zip")):
        with zipfile.ZipFile(archive) as given:
            if not any(name.endswith(".pyc") for name in given.namelist()):
                add_compiled(given, archive)


def add_compiled(given: zipfile.ZipFile, archive: Path) -> None:
    """Replaces an archive by one with the same files, and the compiled one beside each module."""
    made = archive.with_suffix(".new")
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as both:
        for name in given.namelist():
            source = given.read(name)
            both.writestr(name, source)
            if name.endswith(".py") and "/tests/" not in name:
                both.writestr(f"{name}c", compiled(source, name))
    os.replace(made, archive)


def compiled(source: bytes, name: str) -> bytes:
    """The content of a file *.pyc by PEP 552, which is not compared with the source."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = compile(source, name, "exec", dont_inherit=True)
    unchecked = (0b01).to_bytes(4, "little")
    return importlib.util.MAGIC_NUMBER + unchecked + importlib.util.source_hash(source) + marshal.dumps(code)


if __name__ == "__main__":
    main()
