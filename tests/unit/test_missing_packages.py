"""A name that needs a package that is not installed says how to install it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import kafkacodec as kc


@pytest.mark.parametrize(
    ("missing", "call", "reason"),
    [
        ("pyarrow", "kc.values.infer_json", r"pyarrow is not installed: pip install 'kafkacodec[values]'"),
        ("orjson", "kc.values.infer_json([[b'1']])", r"orjson is not installed: pip install 'kafkacodec[values]'"),
        ("pyarrow", "kc.log.record_statistics", r"pyarrow is not installed: pip install 'kafkacodec[arrow]'"),
        ("pyarrow", "kc.log.lag(kc.sample()).to_arrow()", r"pyarrow is not installed: pip install 'kafkacodec[arrow]'"),
        ("polars", "kc.sample().topic('orders').to_polars()", r"polars is not installed: pip install polars"),
        ("pandas", "kc.log.statistics(kc.sample()).to_pandas()", r"pandas is not installed: pip install pandas"),
    ],
)
def test_what_is_missing_and_how_to_install_it(missing: str, call: str, reason: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; import kafkacodec as kc; {call}"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.stderr.rstrip().endswith(f"ModuleNotFoundError: {reason}")


def test_other_missing_modules_keep_their_error() -> None:
    with pytest.raises(AttributeError, match="nonesuch"):
        _ = kc.log.nonesuch  # type: ignore[attr-defined]
