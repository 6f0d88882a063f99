"""Dataclasses and named tuples made without compiling: they behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import typing
from typing import Any, ClassVar

import pytest

from kafkacodec import datatypes

MODULES: tuple[Any, ...] = (datatypes, dataclasses)
OPTIONS = [
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"eq": False},
    {"repr": False},
    {"kw_only": True, "frozen": True},
    {"eq": False, "slots": True},
]
CALLS = [
    ((1, "b"), {}),
    ((1,), {"b": "x", "d": [2]}),
    ((), {"a": 1, "b": "b", "c": 3}),
    ((1, "b", 3, [4]), {}),
    ((), {}),
    ((1,), {}),
    ((), {"b": 2}),
    ((1, 2), {"a": 3}),
    ((1, 2), {"nonsense": 3}),
    ((1, 2, 3, [], 5), {}),
    ((), {"a": 1, "b": 2, "made": 3}),
]


def made(module, options):
    """A dataclass of that module; `module` is the standard library's or ours."""

    @module.dataclass(**options)
    class Part:
        number: ClassVar[int] = 7
        a: int
        b: str | None = module.field(repr=False)
        c: int = 0
        d: list[int] = module.field(default_factory=list)
        made: int = module.field(default=5, init=False)

        def total(self):
            return self.a + self.c

    return Part


def told(call, *arguments, **options):
    """What a call returns or raises."""
    try:
        return call(*arguments, **options)
    except Exception as error:
        return type(error)


def values(found):
    return found if isinstance(found, type) else dataclasses.asdict(found)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_instances_are_made_as_by_the_standard_library(options):
    ours, theirs = made(datatypes, options), made(dataclasses, options)
    for arguments, named in CALLS:
        assert values(told(ours, *arguments, **named)) == values(told(theirs, *arguments, **named))
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    assert ours.__match_args__ == theirs.__match_args__
    assert hasattr(ours(a=1, b=2), "__dict__") == hasattr(theirs(a=1, b=2), "__dict__")


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_instances_behave_as_those_of_the_standard_library(options):
    outcomes = []
    for module in MODULES:
        kind = made(module, options)
        one, same, other = kind(a=1, b="b", d=2), kind(a=1, b="b", d=2), kind(a=2, b="b", d=2)
        outcomes.append(
            [
                repr(one) if options.get("repr", True) else None,
                one == same,
                one == other,
                one == (1, "b", 0, 2, 5),
                told(lambda one=one, same=same: hash(one) == hash(same)),
                one.total(),
                told(setattr, one, "a", 3),
                "frozen" in options or told(setattr, one, "nonsense", 3),
                told(delattr, one, "c"),
                values(dataclasses.replace(other, a=5)),
                values(copy.copy(other)),
                values(copy.deepcopy(other)),
                [(f.name, f.type, f.default, f.repr, f.init, f.kw_only) for f in dataclasses.fields(kind)][2:3],
                dataclasses.is_dataclass(kind),
                kind.number,
            ]
        )
    assert outcomes[0] == outcomes[1]


def test_fields_are_inherited():
    outcomes = []
    for module in MODULES:

        @module.dataclass(slots=True)
        class Base:
            a: int
            b: int = 1

        @module.dataclass(slots=True)
        class Derived(Base):
            b: int = 2
            c: int = 3

        kind: Any = Derived
        found = kind(0)
        outcomes.append(
            (dataclasses.astuple(found), repr(found).rpartition(".")[2], kind.__slots__, hasattr(found, "__dict__"))
        )
    assert outcomes[0] == outcomes[1]


def test_what_a_class_defines_itself_stays():
    @datatypes.dataclass(frozen=True)
    class Own:
        a: int

        def __post_init__(self):
            object.__setattr__(self, "a", self.a + 1)

        def __repr__(self):
            return "own"

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 3

    assert (Own(1).a, repr(Own(1)), Own(1) == 5, hash(Own(1))) == (2, "own", True, 3)
    assert repr(datatypes.replace(Own(1), a=3)) == "own"


def test_a_class_that_contains_itself_is_shown():
    @datatypes.dataclass
    class Ring:
        next: object = None

    ring = Ring()
    ring.next = ring
    assert repr(ring).endswith("Ring(next=...)")


def test_a_default_that_all_instances_would_change_is_refused():
    with pytest.raises(ValueError, match="use default_factory"):

        @datatypes.dataclass
        class Shared:
            rows: list[int] = []  # noqa: RUF012


@datatypes.dataclass(frozen=True, slots=True)
class Kept:
    """At the top, so that pickle finds it."""

    a: int
    b: int = 2


class Pair(datatypes.NamedTuple):
    """A named tuple of ours."""

    a: int
    b: str | None = None

    def both(self):
        return f"{self.a}{self.b}"


class TheirPair(typing.NamedTuple):
    """One of the standard library."""

    a: int
    b: str | None = None


@pytest.mark.parametrize("found", [Kept(1), Pair(1, "x")], ids=["dataclass", "named tuple"])
def test_instances_are_pickled(found):
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(found, protocol)) == found


PAIRS = [((1,), {}), ((1, "b"), {}), ((), {"a": 1}), ((), {"b": 1}), ((1,), {"b": 2}), ((1,), {"a": 2}), ((), {}),
         ((1, 2, 3), {}), ((1,), {"c": 2}), ((), {"b": 2, "a": 1}), ((1, 2), {"b": 2})]  # fmt: skip


@pytest.mark.parametrize(("arguments", "named"), PAIRS, ids=str)
def test_named_tuples_are_made_as_by_the_standard_library(arguments, named):
    assert told(Pair, *arguments, **named) == told(TheirPair, *arguments, **named)


def test_named_tuples_behave_as_those_of_the_standard_library():
    ours, theirs = Pair(1), TheirPair(1)
    assert repr(ours) == repr(theirs).removeprefix("Their")
    assert ours.both() == "1None"
    assert (ours.a, ours.b, ours[1:], len(ours)) == (1, None, (None,), 2)
    assert ours._asdict() == theirs._asdict()
    assert ours._replace(b="x") == theirs._replace(b="x") == (1, "x")
    assert told(ours._replace, c=1) is ValueError  # a TypeError since Python 3.13
    assert Pair._make([1, 2]) == TheirPair._make([1, 2])
    assert told(Pair._make, [1, 2, 3]) == told(TheirPair._make, [1, 2, 3])
    assert told(setattr, ours, "a", 3) == told(setattr, theirs, "a", 3)
    assert told(setattr, ours, "c", 3) == told(setattr, theirs, "c", 3)
    assert (Pair._fields, Pair._field_defaults) == (TheirPair._fields, TheirPair._field_defaults)
    assert typing.get_type_hints(Pair) == typing.get_type_hints(TheirPair)
    assert [*inspect.signature(Pair).parameters.values()][1].default is None
    assert isinstance(ours, tuple)
    assert ours == (1, None)
    assert hash(ours) == hash((1, None))
    match ours:
        case Pair(a, b):
            assert (a, b) == (1, None)


@pytest.mark.parametrize(("kind", "method"), [(Kept, "__init__"), (Pair, "__new__")])
@pytest.mark.parametrize(
    ("arguments", "named", "reason"),
    [
        ((), {}, "missing 1 required argument: 'a'"),
        ((1, 2, 3), {}, "takes 3 positional arguments but 4 were given"),
        ((1,), {"c": 2}, "got an unexpected keyword argument 'c'"),
        ((1,), {"a": 2}, "got multiple values for argument 'a'"),
    ],
)
def test_errors_of_wrong_arguments(kind, method, arguments, named, reason):
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\.{method}\(\) {reason}$"):
        kind(*arguments, **named)
