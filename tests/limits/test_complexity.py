"""Work on hostile data grows linearly: instructions counted at n, 2n and 4n, in every codec, format and parser.

A factor above 2.5 per doubling fails, and so does quadratic growth that is hidden by a fixed cost.
"""

import os
import shutil
import subprocess

import pytest

from benchmarks import callgrind
from tests.limits import complexity
from tests.limits.families import FAMILIES

MOST = 2.5
MOST_MORE = 3.8  # limit on the ratio of the increments of both doublings: 2 for linear work, 4 for quadratic work
PARTS = 2
ALL = os.environ.get("KAFKACODEC_LIMITS") == "full"
# Smaller increments are random: hash tables that grow, threads that wait.
NOTICEABLE = 1_000_000


@pytest.fixture(scope="module", autouse=True)
def valgrind(tmp_path_factory):
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is missing: it counts the instructions")
    try:
        callgrind.build(str(tmp_path_factory.mktemp("callgrind")))
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a C compiler with valgrind's headers is missing: {getattr(error, 'stderr', error)}")


@pytest.mark.parametrize("part", range(PARTS))
def test_work_grows_no_faster_than_the_data(part):
    found = complexity.count(part, PARTS, all_of_them=ALL)
    assert len(found) >= sum(ALL or not family.long for family in FAMILIES.values()) // PARTS
    wrong = {}
    for name, counts in found.items():
        first, second, third = counts
        assert min(counts) > 0, name
        grown, more = third / second, (third - second) / max(second - first, 1)
        if max(second / first, grown) > MOST or (third - second > NOTICEABLE and more > MOST_MORE):
            wrong[name] = (counts, round(grown, 2), round(more, 2))
    assert not wrong


def test_quadratic_work_is_noticed():
    """The rule itself, on counts as from repeated copying."""
    counts = [1000 + n * n for n in (100, 200, 400)]
    assert counts[2] / counts[1] > MOST
