"""Calls of the admin client: what they make of the answers of brokers, and what they leave behind."""

from __future__ import annotations

import asyncio

import pytest

from kafkacodec import messages
from kafkacodec.client.admin.acls import Acl, AclFilter
from kafkacodec.client.aio import Admin, topic_admin as module
from kafkacodec.client.core.calls import Answer
from kafkacodec.errors import ClientClosed, DeadlineExceeded, ItemErrors
from tests.patience import SOON, until

NOBODY = "127.0.0.1:1"


class Answered(Admin):
    """An admin client whose requests get these responses, in this order."""

    def __init__(self, *responses):
        super().__init__(NOBODY)
        self.responses = list(responses)

    async def _run(self, job):
        now = self._now()
        while not job.done:
            for send in job.poll(now):
                job.answered(send, Answer(self.responses.pop(0), 2, 1), now)
            now = job.next_deadline() or now


def outcome(call, *responses):
    """The ItemErrors of a call."""

    async def run():
        async with Answered(*responses) as admin:
            with pytest.raises(ItemErrors) as found:
                await call(admin)
            assert admin.responses == []
            return found.value

    return asyncio.run(run())


def matching(name, code=0):
    kind = messages.DeleteAclsResponse.DeleteAclsMatchingAcl
    fields = dict.fromkeys(("resource_type", "operation", "pattern_type", "permission_type"), 3)
    return kind(error_code=code, resource_name=name, principal="User:a", host="*", **fields)


def acl(name):
    return Acl("group", name, "User:a", "read", "allow", "*", "literal")


def test_delete_acls_tells_of_filters_that_failed_and_of_rules_that_were_kept():
    kind = messages.DeleteAclsResponse
    filters = [AclFilter(resource_name=name) for name in ("a", "b", "c")]
    results = [
        kind.DeleteAclsFilterResult(matching_acls=[matching("y"), matching("x")]),
        kind.DeleteAclsFilterResult(error_code=42, error_message="a bad filter"),
        kind.DeleteAclsFilterResult(matching_acls=[matching("kept", 31), matching("z")]),
    ]
    found = outcome(lambda admin: admin.delete_acls(filters), kind(filter_results=results))
    kept, x, y, z = map(acl, ("kept", "x", "y", "z"))
    assert found.results == {filters[0]: [x, y], filters[2]: [z]}
    assert {item: error.name for item, error in found.errors.items()} == {
        filters[1]: "INVALID_REQUEST",
        kept: "CLUSTER_AUTHORIZATION_FAILED",
    }
    assert found.message == "1 of 3 filters failed, 1 ACLs were not deleted"


@pytest.mark.parametrize(("election", "code"), [("preferred", 80), ("unclean", 83)])
def test_an_election_without_a_replica_that_may_lead_ends_at_once(election, code):
    kind = messages.ElectLeadersResponse
    part = kind.PartitionResult(partition_id=0, error_code=code)
    response = kind(replica_election_results=[kind.ReplicaElectionResult(topic="t", partition_result=[part])])
    found = outcome(lambda admin: admin.elect_leaders([("t", 0)], election_type=election), response)
    assert found.errors[("t", 0)].code == code


def test_a_replica_that_its_broker_does_not_have_yet_is_not_asked_for_again():
    kind = messages.AlterReplicaLogDirsResponse
    part = kind.AlterReplicaLogDirPartitionResult(partition_index=0, error_code=9)
    response = kind(results=[kind.AlterReplicaLogDirTopicResult(topic_name="t", partitions=[part])])
    found = outcome(lambda admin: admin.alter_replica_log_dirs({("t", 0, 1): "/d"}), response)
    assert found.errors[("t", 0, 1)].name == "REPLICA_NOT_AVAILABLE"


@pytest.mark.parametrize("cancelled", [False, True])
def test_calls_that_end_leave_nothing_to_look_up(cancelled):
    async def run():
        limit_ms = 60_000 if cancelled else 500  # what is wanted is looked at before
        async with Admin(NOBODY) as admin:
            calls = [
                asyncio.create_task(admin.list_offsets({("t", 0): "latest"}, timeout_ms=limit_ms)),
                asyncio.create_task(admin.describe_groups("g", timeout_ms=limit_ms)),
            ]
            cluster = admin._cluster
            async with asyncio.timeout(SOON):
                while not (cluster._wanted.names and cluster.coordinators._wanted):
                    await asyncio.sleep(0)
            for call in calls if cancelled else []:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            assert not cluster._wanted.names
            assert not cluster.coordinators._wanted

    asyncio.run(run())


def test_topics_are_forgotten_some_time_after_the_last_call(monkeypatch):
    monkeypatch.setattr(module, "_TOPICS_KEPT_S", 0.05)

    async def run():
        async with Admin(NOBODY) as admin:
            cluster = admin._cluster
            with pytest.raises((DeadlineExceeded, ItemErrors)):
                await admin.list_offsets({("t", 0): "latest"}, timeout_ms=10)
            cluster.want(["t"])  # as if its leader had been found
            longer = asyncio.create_task(admin.describe_groups("g", timeout_ms=60_000))
            await asyncio.sleep(0.08)
            assert cluster._wanted.names == {"t"}  # a call runs
            longer.cancel()
            await asyncio.gather(longer, return_exceptions=True)
            await until(lambda: not cluster._wanted.names)

    asyncio.run(run())


async def test_a_second_close_waits_for_the_first():
    async with Admin(NOBODY, retry_backoff_ms=1) as admin:
        call = asyncio.create_task(admin.list_topics())
        traffic = admin._started()._traffic
        async with asyncio.timeout(SOON):
            while not any(node.connecting for node in traffic._nodes):
                await asyncio.sleep(0)
        first = asyncio.create_task(admin.close())
        await asyncio.sleep(0)
        assert not first.done()
        await admin.close()
        await asyncio.sleep(0)
        assert first.done()
        assert isinstance((await asyncio.gather(call, return_exceptions=True))[0], ClientClosed)
