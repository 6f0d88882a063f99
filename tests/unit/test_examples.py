"""Which cases `make quick` leaves out."""

from __future__ import annotations

import pytest

from tests.examples import left_out


@pytest.mark.parametrize(("cases", "kept"), [(1, 1), (5, 5), (6, 3), (10, 5), (11, 4), (20, 5), (100, 10), (999, 100)])
def test_some_cases_of_every_test_are_left(cases: int, kept: int) -> None:
    names = [name for n in range(cases) for name in (f"test_a.py::test_b[{n}]", f"test_a.py::test_c[{n}]")]
    out = left_out([*names, "test_a.py::test_d"])
    assert len(names) - len(out) == 2 * kept
    assert not out & {0, 1, len(names)}
