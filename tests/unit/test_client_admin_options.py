"""Arguments of the admin clients, which are checked before anything is sent."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import subprocess
import sys
import uuid

import pytest

import kafkacodec as kc
from kafkacodec import client, errors
from kafkacodec.client.blocking.admin import Admin

NOBODY = "127.0.0.1:1"


def test_blocking_methods_are_those_for_asyncio_with_their_help():
    for name, method in inspect.getmembers(client.aio.Admin, inspect.iscoroutinefunction):
        if name.startswith("_") or name == "close":
            continue
        blocking = getattr(Admin, name)
        assert inspect.signature(blocking) == inspect.signature(method)
        assert blocking.__doc__ == method.__doc__
        assert not inspect.iscoroutinefunction(blocking)


def test_options_are_shown_and_checked():
    assert inspect.signature(Admin).parameters["request_timeout_ms"].default == 30_000
    assert inspect.signature(Admin).parameters["allow_auto_create_topics"].default is False
    for kind in (Admin, client.aio.Admin):
        with pytest.raises(TypeError, match=r"unknown option 'request_timeout'.*request_timeout_ms"):
            kind(NOBODY, **{"request_timeout": 5})
        with pytest.raises(TypeError, match=r"unknown option 'bootstrap.server'.*bootstrap.servers"):
            kind.from_config({"bootstrap.server": NOBODY})


def test_dotted_names():
    with Admin.from_config({"bootstrap.servers": NOBODY, "default.api.timeout.ms": "70"}) as admin:
        assert admin._face._settings.default_api_timeout_ms == 70


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda a: a.list_offsets({"t": "latest"}), TypeError, "a partition is a pair of topic and number, not 't'"),
        (
            lambda a: a.list_offsets({("t", 0): "last"}),
            ValueError,
            "is 'last'; did you mean 'latest'",
        ),
        (lambda a: a.list_offsets({("t", 0): -1}), ValueError, "a time must not be negative"),
        (lambda a: a.list_offsets([("t", 0)]), TypeError, r"partitions must be a dict by \(topic, number\), not list"),
        (lambda a: a.create_topics({"t": "4"}), TypeError, "num_partitions must be an integer, not str"),
        (lambda a: a.create_topics({"t": 2**31}), ValueError, "num_partitions must be from -2147483648 to 2147483647"),
        (lambda a: a.delete_records({("t", 0): "4"}), TypeError, "the offset before .* must be an integer, not str"),
        (lambda a: a.alter_configs({("topic", "t"): {"x": b"5"}}), TypeError, "the value of x must be text, a number"),
        (lambda a: a.create_topics([("t", 3)]), TypeError, r"each of topics must be text or NewTopic, not \('t', 3\)"),
        (
            lambda a: a.create_topics([client.NewTopic("t", 1), client.NewTopic("u"), client.NewTopic("t", 5)]),
            ValueError,
            "topics has two different topics 't'",
        ),
        (
            lambda a: a.alter_user_scram_credentials(
                {"ann": [client.ScramCredential("SCRAM-SHA-256", "a"), "SCRAM-SHA-256"]}
            ),
            ValueError,
            "credentials has two different changes of 'ann', SCRAM-SHA-256",
        ),
        (lambda a: a.create_topics({5: 1}), TypeError, "the name of a topic must be text, not int"),
        (lambda a: a.create_partitions({5: 1}), TypeError, "the name of a topic must be text, not int"),
        (lambda a: a.delete_topics([5]), TypeError, "each of topics must be text or UUID, not 5"),
        (lambda a: a.describe_topics([5]), TypeError, "each of topics must be text, not 5"),
        (lambda a: a.delete_groups([b"g"]), TypeError, "each of groups must be text, not b'g'"),
        (lambda a: client.NewTopic(5), TypeError, "the name of a topic must be text, not int"),  # type: ignore[arg-type]
        (lambda a: client.NewTopic("t", configs=[("x", "y")]), TypeError, "configs must be a dict, not list"),  # type: ignore[arg-type]
        (lambda a: client.NewTopic("t", configs={"x": ["y"]}), TypeError, "x must be text, .*; write several as 'y'"),  # type: ignore[dict-item]
        (lambda a: client.NewTopic("t", replica_assignments=[[1]]), TypeError, "replica_assignments must be a dict"),  # type: ignore[arg-type]
        (lambda a: client.NewTopic("t", replica_assignments={0: 1}), TypeError, "a list of brokers .*, not 1"),  # type: ignore[dict-item]
        (lambda a: client.NewTopic("t", replica_assignments={"0": [1]}), TypeError, "must be an integer, not str"),  # type: ignore[dict-item]
        (
            lambda a: a.alter_configs({("topic", "t"): "x"}),
            TypeError,
            "the configs of topic 't' must be a dict, not str",
        ),
        (
            lambda a: a.incremental_alter_configs({("topic", "t"): {"x": ["a", "b"]}}),
            TypeError,
            "the value of x must be text, .*, not list; write several as 'a,b'",
        ),
        (lambda a: a.describe_acls("t"), TypeError, "acl_filter must be of type AclFilter, not str"),
        (lambda a: a.create_acls(["t"]), TypeError, "acls must be of type Acl, not str"),
        (lambda a: a.delete_acls(["t"]), TypeError, "filters must be of type AclFilter, not str"),
        (lambda a: a.create_partitions([("t", 4)]), TypeError, "topics must be a dict, not list"),
        (
            lambda a: a.create_partitions({"t": "4"}),
            TypeError,
            "each topic needs a number of partitions or NewPartitions, not '4'",
        ),
        (lambda a: a.incremental_alter_configs([("topic", "t")]), TypeError, "changes must be a dict, not list"),
        (lambda a: a.alter_configs([("topic", "t")]), TypeError, "configs must be a dict, not list"),
        (lambda a: a.incremental_alter_configs({"t": {}}), TypeError, "such as .*'topic', 'orders'.*, not 't'"),
        (
            lambda a: a.describe_configs([("topic", "t")], names=5),
            TypeError,
            "names must be a name or several, not int",
        ),
        (lambda a: a.describe_configs("t"), TypeError, "a resource is a pair of texts"),
        (lambda a: a.describe_configs(("topic", "t")), TypeError, "a resource is a pair of texts .*, not 'topic'"),
        (lambda a: a.describe_configs([("broker", 1)]), TypeError, r"a resource is a pair of texts .*\('broker', 1\)"),
        (
            lambda a: a.alter_client_quotas({"alice": {"producer_byte_rate": 1.0}}),
            TypeError,
            "a tuple of pairs .* not 'al",
        ),
        (lambda a: a.alter_client_quotas({("user", "alice"): {}}), TypeError, "a tuple of pairs"),
        (lambda a: a.list_groups(types=["shared"]), ValueError, "a type of groups must be .* not 'shared'"),
        (lambda a: a.list_groups(states=["stabel"]), ValueError, "a state of groups must be .* not 'stabel'"),
        (lambda a: a.elect_leaders(None), TypeError, r"partitions must be a list of \(topic, number\), not None"),
        (lambda a: a.alter_client_quotas([]), TypeError, "quotas must be a dict"),
        (lambda a: a.update_features(["metadata.version"]), TypeError, "updates must be a dict"),
        (lambda a: a.alter_replica_log_dirs([]), TypeError, "paths must be a dict"),
        (lambda a: a.alter_user_scram_credentials(["u"]), TypeError, "credentials must be a dict"),
        (lambda a: a.list_group_offsets(["g"]), TypeError, "group must be text, not list"),
        (lambda a: a.alter_group_offsets(["g"], {}), TypeError, "group must be text, not list"),
        (lambda a: a.delete_group_offsets(["g"], []), TypeError, "group must be text, not list"),
        (lambda a: a.list_share_group_offsets(["g"]), TypeError, "group must be text, not list"),
        (lambda a: a.alter_share_group_offsets(["g"], {}), TypeError, "group must be text, not list"),
        # Brokers take it, and every member of the group then starts anew. Java's OffsetAndMetadata refuses it.
        (lambda a: a.alter_group_offsets("g", {("t", 0): -3}), ValueError, "offset must be from 0"),
        (lambda a: a.alter_group_offsets("g", {("t", 0): "3"}), TypeError, "offset must be an integer, not str"),
        (lambda a: a.describe_topics(5), TypeError, "topics must be a name or several, not int"),
        (lambda a: a.describe_topics("t", timeout_ms=-1), ValueError, "timeout_ms"),
        (lambda a: a.describe_configs([("topics", "t")]), ValueError, "'topics'"),
        (lambda a: a.describe_configs([("broker", "b1")]), ValueError, "a broker is its id, not 'b1'"),
        (lambda a: a.create_acls(client.Acl("topic", "t", "User:a", "reed")), ValueError, "operation .* not 'reed'"),
        (lambda a: a.elect_leaders([("t", 0)], election_type="dirty"), ValueError, "election_type"),
        (lambda a: a.alter_user_scram_credentials({"u": "PLAIN"}), ValueError, "a mechanism must be"),
        (
            lambda a: a.create_delegation_token(owner="alice"),
            ValueError,
            "owner must be .*'User:alice', not 'alice'",
        ),
        (lambda a: a.create_delegation_token(max_lifetime_ms=-2), ValueError, "max_lifetime_ms"),
        (lambda a: a.remove_raft_voter(1, "x"), TypeError, "directory_id must be a uuid.UUID, not str"),
        (lambda a: a.add_raft_voter(1, uuid.UUID(int=1), {}), ValueError, "endpoints must have"),
        (lambda a: a.describe_client_quotas({"users": None}), ValueError, "'users'"),
    ],
)
def test_wrong_arguments(call, error, match):
    with Admin(NOBODY) as admin, pytest.raises(error, match=match):
        call(admin)


def test_nothing_to_do_asks_nobody():
    with Admin(NOBODY) as admin:
        assert admin.describe_topics([]) == {}
        admin.delete_groups([])


def test_nobody_there_is_one_error_within_the_time():
    with (
        Admin(NOBODY) as admin,
        pytest.raises(errors.DeadlineExceeded, match=r"Metadata timed out; last error: .*127\.0\.0\.1:1"),
    ):
        admin.list_topics(timeout_ms=300)


class Refusing(client.aio.Admin):
    """An admin client whose brokers refuse every item with an error."""

    def __init__(self, *refusals):
        super().__init__(NOBODY)
        self.refusals = list(refusals)

    async def _run(self, job):
        refusal = self.refusals.pop(0) if self.refusals else kc.UnsupportedVersion("old")
        job.errors.update(dict.fromkeys(job.keys, refusal))


def test_what_brokers_cannot_do_for_any_item_is_one_error():
    async def run(*refusals):
        async with Refusing(*refusals) as admin:
            await admin.describe_groups(["a", "b"])

    too_old, no_group = kc.UnsupportedVersion("old"), errors.error(69)()
    with pytest.raises(kc.UnsupportedVersion, match="old"):
        asyncio.run(run(too_old))
    with pytest.raises(kc.ItemErrors) as caught:  # not a classic group, and the broker has no others
        asyncio.run(run(no_group, too_old, too_old))
    assert {name: type(found).__name__ for name, found in caught.value.errors.items()} == {
        "a": "GroupIdNotFoundError",
        "b": "GroupIdNotFoundError",
    }


def test_a_closed_client_says_so():
    admin = Admin(NOBODY)
    admin.close()
    admin.close()
    with pytest.raises(errors.ClientClosed):
        admin.list_topics()

    async def run():
        found = client.aio.Admin(NOBODY)
        await found.close()
        with pytest.raises(errors.ClientClosed):
            await found.list_topics()

    asyncio.run(run())


@pytest.mark.filterwarnings("ignore:.* was not closed:ResourceWarning")
@pytest.mark.usefixtures("left_open")
def test_another_loop_is_refused():
    found = client.aio.Admin(NOBODY)

    async def use():
        with pytest.raises(errors.KafkaCodecError) as caught:
            await found.list_topics(timeout_ms=50)
        return type(caught.value)

    assert asyncio.run(use()) is errors.DeadlineExceeded
    assert asyncio.run(use()) is errors.ClientClosed


def test_a_password_is_in_no_repr():
    assert "secret" not in repr(client.ScramCredential("SCRAM-SHA-256", "secret"))


def test_item_errors_group_errors_by_item():
    exists, denied = errors.error(36)(), errors.error(29)()
    found = kc.ItemErrors("2 of 3 topics were not created", {"a": exists, "b": denied}, {"c": 1})
    assert str(found) == "2 of 3 topics were not created: a: TOPIC_ALREADY_EXISTS; b: TOPIC_AUTHORIZATION_FAILED"
    assert isinstance(found, kc.KafkaCodecError)
    again = pickle.loads(pickle.dumps(found))
    assert (str(again), again.results) == (str(found), {"c": 1})
    chosen, others = found.split(errors.TopicAlreadyExistsError)
    assert (chosen.exceptions, others.exceptions) == ((exists,), (denied,))
    many = kc.ItemErrors("all", dict.fromkeys(range(9), exists), {})
    assert str(many).endswith("and 4 more")


def test_the_import_of_the_room_loads_no_client():
    program = "import sys, kafkacodec.client; print('asyncio' in sys.modules, 'ssl' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]


def test_topics_with_their_numbers_of_partitions():
    """A mapping was taken for its names, and the numbers were ignored."""
    with kc.broker.serve() as broker, kc.client.Admin(broker.bootstrap_servers) as admin:
        made = admin.create_topics({"a": 3, "b": 1})
        assert {name: topic.num_partitions for name, topic in made.items()} == {"a": 3, "b": 1}
