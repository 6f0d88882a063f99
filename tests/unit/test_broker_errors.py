import pickle
import subprocess
import sys

import pytest

import kafkacodec as kc


def test_known_codes():
    cls = kc.errors.error(3)
    assert cls is kc.errors.UnknownTopicOrPartitionError is kc.errors.CODES[3]
    assert (cls.code, cls.name, cls.retriable, cls.stale_metadata) == (3, "UNKNOWN_TOPIC_OR_PARTITION", True, True)
    assert not kc.errors.error(1).retriable
    assert kc.errors.error(0).name == "NONE"
    assert kc.errors.error(-1).name == "UNKNOWN_SERVER_ERROR"
    assert str(cls()) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_every_code_has_a_class_of_its_own():
    assert set(range(-1, 134)) <= set(kc.errors.CODES)
    assert len({cls.__name__ for cls in kc.errors.CODES.values()}) == len(kc.errors.CODES)
    assert all(issubclass(cls, kc.BrokerError) and cls.code == code for code, cls in kc.errors.CODES.items())


def test_codes_by_name():
    assert (kc.errors.NONE, kc.errors.NOT_COORDINATOR, kc.errors.UNKNOWN_SERVER_ERROR) == (0, 16, -1)
    assert all(getattr(kc.errors, cls.name) == code for code, cls in kc.errors.CODES.items())


def test_a_code_by_its_name_makes_no_classes():
    code = "from kafkacodec import errors; assert errors.NOT_COORDINATOR == 16; assert not errors._known"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_codes_of_the_future_survive():
    cls = kc.errors.error(31999)
    assert (cls.code, cls.retriable) == (31999, False)
    assert kc.errors.error(31999) is cls


@pytest.mark.parametrize("code", [0, 35, 31999])
def test_pickle(code):
    again = pickle.loads(pickle.dumps(kc.errors.error(code)("why")))
    assert type(again) is kc.errors.error(code)
    assert str(again) == "why"


def test_no_other_names():
    with pytest.raises(AttributeError):
        _ = kc.errors.NoSuchError


@pytest.mark.parametrize("code", ["3", None, 3.0])
def test_what_is_no_code(code):
    with pytest.raises(TypeError):
        kc.errors.error(code)
