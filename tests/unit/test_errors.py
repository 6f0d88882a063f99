"""The place of a fault: how paths are put together, and what survives a pickle."""

import pickle

import pytest

import kafkacodec as kc


@pytest.mark.parametrize(
    ("path", "place", "wanted"),
    [
        (None, "row 1", "row 1"),
        ("", "row 1", "row 1"),
        ("batch at offset 7", "row 1", "row 1: batch at offset 7"),
        ("row 1", "row 1", "row 1"),
        ("row 1: batch at offset 7", "row 1", "row 1: batch at offset 7"),
        ("row 12: batch at offset 7", "row 1", "row 1: row 12: batch at offset 7"),
    ],
)
def test_a_place_is_put_before_the_path_once(path, place, wanted):
    error = kc.CorruptIndex("an entry is out of order", position=8, path=path)
    assert error.within(place) is error
    assert error.path == wanted
    assert str(error) == f"{wanted}: an entry is out of order (byte 8)"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.path, again.position) == (kc.CorruptIndex, wanted, 8)


def test_a_damaged_index_is_no_damaged_record():
    assert issubclass(kc.CorruptIndex, kc.DecodeError)
    assert not issubclass(kc.CorruptIndex, kc.CorruptRecord)
