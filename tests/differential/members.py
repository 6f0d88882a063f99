"""Members of groups, as scripts need them."""

from __future__ import annotations

import itertools
import time
from typing import Any

from kafkacodec import messages
from tests.differential.scenario import NOT_ADVERTISED, Scenario, Stop


def subscription(*topics: str) -> bytes:
    """The metadata of a consumer in JoinGroup."""
    return b"\0\0" + messages.ConsumerProtocolSubscription(topics=list(topics)).encode(0)


def join_fields(
    group: str, member: str = "", topics: tuple[str, ...] = (), protocols: dict[str, bytes] | None = None, **fields: Any
) -> dict[str, Any]:
    """A JoinGroup request's fields; without `protocols`, the protocol "range" and a subscription to `topics`."""
    offered = protocols or {"range": subscription(*topics)}
    rows = [{"name": name, "metadata": data} for name, data in offered.items()]
    return {"group_id": group, "member_id": member, "protocols": rows, **fields}


class Member:
    """A member of a classic group on a connection of its own. Its requests are steps unless they are `quiet`."""

    def __init__(self, s: Scenario, group: str, name: str, *, version: int = 7, **fields: Any) -> None:
        self.s, self.group, self.name, self.version, self.fields = s, group, name, version, fields
        self.id, self.generation = "", -1

    def got(self, answer: Any) -> Any:
        if answer is not None and answer.error_code in (0, 79):
            self.id = answer.member_id
            self.s.mask.value("member_id", self.id)  # numbered in the order in which members got their ids
            if answer.error_code == 0:
                self.generation = answer.generation_id
        return answer

    def join(self, *, label: str = "", quiet: bool = False, **options: Any) -> Any:
        """Gets an id when it has none (no step), joins, and waits for the answer."""
        self.enter()
        request = join_fields(self.group, self.id, **{**self.fields, **options.pop("fields", {})})
        return self.got(
            self.s.ask(
                "JoinGroup", self.version, on=self.name, label=label or self.name, quiet=quiet, **request, **options
            )
        )

    def enter(self) -> None:
        """Asks for a member id, with versions that want one."""
        if not self.id and self.version >= 4 and not self.fields.get("group_instance_id"):
            self.got(
                self.s.ask(
                    "JoinGroup", self.version, on=self.name, quiet=True, **join_fields(self.group, **self.fields)
                )
            )

    def start_joining(self, **fields: Any) -> Any:
        """Sends JoinGroup only; `joined` takes what it returns."""
        self.enter()
        return self.s.send(
            "JoinGroup", self.version, on=self.name, **join_fields(self.group, self.id, **{**self.fields, **fields})
        )

    def joined(self, sent: Any, label: str = "", quiet: bool = False, **shape: Any) -> Any:
        return self.got(self.s.answer(sent) if quiet else self.s.finish(sent, label=label or self.name, **shape))

    def sync_fields(self, assignments: dict[str, bytes] | None = None, **fields: Any) -> dict[str, Any]:
        rows = [{"member_id": member, "assignment": data} for member, data in (assignments or {}).items()]
        return {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.id,
            "assignments": rows,
            **fields,
        }

    def sync(
        self,
        assignments: dict[str, bytes] | None = None,
        *,
        version: int = 4,
        label: str = "",
        quiet: bool = False,
        **options: Any,
    ) -> Any:
        fields = self.sync_fields(assignments, **options.pop("fields", {}))
        return self.s.ask(
            "SyncGroup", version, on=self.name, label=label or self.name, quiet=quiet, **fields, **options
        )

    def beat(self, *, version: int = 4, label: str = "", **options: Any) -> Any:
        fields = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.id,
            **options.pop("fields", {}),
        }
        return self.s.ask("Heartbeat", version, on=self.name, label=label or self.name, **fields, **options)

    def leave(self, *, version: int = 4, label: str = "", **options: Any) -> Any:
        return self.s.ask(
            "LeaveGroup",
            version,
            on=self.name,
            label=label or self.name,
            group_id=self.group,
            members=[{"member_id": self.id}],
            **options,
        )


def in_state(s: Scenario, group: str, state: str) -> None:
    """Waits until a group is in this state. No step."""
    s.ask("DescribeGroups", 5, groups=[group], quiet=True, until=lambda a: a.groups[0].group_state == state)


def stable(s: Scenario, group: str, *names: str, **fields: Any) -> list[Member]:
    """Members of a stable group, the leader first; each is assigned its name. No steps."""
    members: list[Member] = []
    for name in names:
        members.append(Member(s, group, name, **fields))
        sent = members[-1].start_joining()
        if members[1:]:
            in_state(s, group, "PreparingRebalance")
        for member, waiting in [(m, m.start_joining()) for m in members[:-1]] + [(members[-1], sent)]:
            member.joined(waiting, quiet=True)
        for member in members:
            member.sync({m.id: m.name.encode() for m in members} if member is members[0] else None, quiet=True)
    return members


def listed(s: Scenario, group: str, topic: str) -> None:
    """Waits until a group that has only just been joined is among those described and listed. No step.

    Such a group has written nothing yet; readers see it after the next write to the same partition of
    __consumer_offsets.
    """
    probe = same_place(s, group)
    row = {"partition_index": 0, "committed_offset": 0, "committed_metadata": ""}
    s.ask("OffsetCommit", 8, group_id=probe, topics=[{"name": topic, "partitions": [row]}], quiet=True)
    s.ask("DeleteGroups", 2, groups_names=[probe], quiet=True)
    s.ask("DescribeGroups", 5, groups=[group], quiet=True, until=lambda a: a.groups[0].group_state != "Dead", wait=3)


def assignment(**partitions: list[int]) -> bytes:
    """The assignment of a consumer in SyncGroup: partitions by topic."""
    rows = [{"topic": topic, "partitions": numbers} for topic, numbers in partitions.items()]
    return b"\0\0" + messages.ConsumerProtocolAssignment.from_dict({"assigned_partitions": rows}).encode(0)


def _place(group: str) -> int:
    """The partition of __consumer_offsets, of 50, that a group belongs to."""
    number = 0
    for letter in group:
        number = (31 * number + ord(letter)) & 0xFFFFFFFF
    return (number & 0x7FFFFFFF) % 50


def same_place(s: Scenario, group: str) -> str:
    """Another name that belongs to the same partition of __consumer_offsets."""
    return next(name for name in (s.name(f"probe{n}") for n in itertools.count()) if _place(name) == _place(group))


def known(s: Scenario, group: str, *topics: str) -> str:
    """Waits until the coordinator of a group knows these topics; returns the group's name. No step.

    Coordinators learn of topics a little later than brokers; each partition of __consumer_offsets by itself.
    """
    probe = same_place(s, group)
    member = Consumer(s, probe, "probe", *topics)
    s.ask("ConsumerGroupHeartbeat", 1, quiet=True, **member.fields(topic_partitions=[], **member.joining),
          until=lambda h: h.assignment is None or len(h.assignment.topic_partitions) == len(topics))  # fmt: skip
    member.leave(quiet=True)
    s.ask("DeleteGroups", 2, groups_names=[probe], quiet=True)
    return group


class Consumer:
    """A member of a group of the consumer protocol (KIP-848). Reports what it was assigned as soon as it knows."""

    def __init__(self, s: Scenario, group: str, name: str, *topics: str, version: int = 1, **fields: Any) -> None:
        self.s, self.group, self.name, self.version = s, group, name, version
        self.id, self.epoch, self.owned = s.name(name), 0, {}  # type: str, int, dict[Any, list[int]]
        self.joining = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": list(topics), **fields}

    def fields(self, **changes: Any) -> dict[str, Any]:
        return {"group_id": self.group, "member_id": self.id, "member_epoch": self.epoch, **changes}

    def took(self, answer: Any) -> Any:
        if answer is not None and not answer.error_code:
            self.id, self.epoch = answer.member_id or self.id, answer.member_epoch
            if answer.assignment is not None:
                self.owned = {part.topic_id: sorted(part.partitions) for part in answer.assignment.topic_partitions}
        return answer

    def join(self, *, label: str = "joins", **options: Any) -> Any:
        self.epoch, self.owned = 0, {}
        wanted = self.fields(topic_partitions=[], **{**self.joining, **options.pop("fields", {})})
        return self.took(
            self.s.ask(
                "ConsumerGroupHeartbeat", self.version, on=self.name, label=label or self.name, **wanted, **options
            )
        )

    def beat(self, *, label: str = "", report: bool = False, **options: Any) -> Any:
        """A heartbeat; `report` tells what it owns."""
        if report:
            options["topic_partitions"] = [{"topic_id": t, "partitions": p} for t, p in self.owned.items()]
        names = ("group_id", "member_id", "member_epoch")
        fields = self.fields(**{name: options.pop(name) for name in names if name in options})
        return self.took(
            self.s.ask(
                "ConsumerGroupHeartbeat", self.version, on=self.name, label=label or self.name, **fields, **options
            )
        )

    def leave(self, epoch: int = -1, *, label: str = "leaves", **options: Any) -> Any:
        fields = self.fields(member_epoch=epoch, **options.pop("fields", {}))
        return self.s.ask("ConsumerGroupHeartbeat", self.version, on=self.name, label=label, **fields, **options)


def settle(s: Scenario, group: str, *members: Consumer) -> None:
    """Heartbeats until the group is stable and every member knows its assignment. No steps."""
    end = time.monotonic() + s.server.patience
    while time.monotonic() < end:
        for member in members:
            member.beat(report=True, quiet=True)
        known = s.ask("ConsumerGroupDescribe", 0, group_ids=[group], quiet=True).groups[0]
        if known.group_state == "Stable" and len({m.epoch for m in members} | {known.group_epoch}) == 1:
            return
        time.sleep(0.1)
    raise Stop(f"group not stable after {s.server.patience} s")


def shares(s: Scenario, label: str, *members: Consumer) -> None:
    """A step: what each member was assigned."""
    s.note(label, {m.name: [{"topic": t, "partitions": p} for t, p in m.owned.items()] for m in members})


def sizes(s: Scenario, label: str, *members: Consumer) -> None:
    """A step: how many partitions each member was assigned, smallest first, and how many different ones in all."""
    given = [(topic, number) for m in members for topic, numbers in m.owned.items() for number in numbers]
    s.note(label, {"each": sorted(sum(map(len, m.owned.values())) for m in members), "all": len(set(given))})


class ShareMember:
    """A member of a share group (KIP-932) with its share session."""

    def __init__(self, s: Scenario, group: str, name: str, *topics: str, version: int = 1) -> None:
        self.s, self.group, self.name, self.version, self.topics = s, group, name, version, topics
        self.id, self.epoch, self.session = s.name(name), 0, 0

    def heartbeat(self, *, label: str = "", **options: Any) -> Any:
        names = ("group_id", "member_id", "member_epoch")
        fields = {"group_id": self.group, "member_id": self.id, "member_epoch": self.epoch}
        fields.update({name: options.pop(name) for name in names if name in options})
        answer = self.s.ask("ShareGroupHeartbeat", 1, on=self.name, label=label or self.name, **fields, **options)
        if answer is not None and not answer.error_code:
            self.epoch = max(0, answer.member_epoch)
        return answer

    def join(self, **options: Any) -> Any:
        return self.heartbeat(subscribed_topic_names=list(self.topics), member_epoch=0, **{"label": "joins", **options})

    def assigned(self) -> None:
        """Joins, and waits until it is assigned its topics, or an error. No steps."""
        self.join(quiet=True, retry=())
        self.heartbeat(
            quiet=True,
            retry=(),
            subscribed_topic_names=list(self.topics),
            until=lambda h: h.error_code or (h.assignment and len(h.assignment.topic_partitions) == len(self.topics)),
        )

    def leave(self, **options: Any) -> Any:
        return self.heartbeat(member_epoch=-1, **{"label": "leaves", **options})

    def _topics(self, partitions: Any, acks: Any) -> list[dict[str, Any]]:
        """partitions: (topic, partition)s; acks: {(topic, partition): [(first, last, types)]}."""
        rows: dict[Any, list[dict[str, Any]]] = {}
        for topic, number in dict.fromkeys([*partitions, *(acks or ())]):
            batches = [
                {"first_offset": first, "last_offset": last, "acknowledge_types": list(types)}
                for first, last, types in (acks or {}).get((topic, number), [])
            ]
            rows.setdefault(self.s.ids[topic], []).append(
                {"partition_index": number, "acknowledgement_batches": batches}
            )
        return [{"topic_id": topic, "partitions": parts} for topic, parts in rows.items()]

    def request(
        self,
        api: str,
        partitions: Any = (),
        acks: Any = None,
        *,
        forgotten: Any = (),
        session: int | None = None,
        **options: Any,
    ) -> Any:
        """ShareFetch or ShareAcknowledge in this session, whose epoch goes on when there is no error."""
        epoch = self.session if session is None else session
        fields: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.id,
            "share_session_epoch": epoch,
            "topics": self._topics(partitions, acks),
        }
        if forgotten:
            fields["forgotten_topics_data"] = [{"topic_id": self.s.ids[t], "partitions": [p]} for t, p in forgotten]
        fields.update({name: options.pop(name) for name in ("group_id", "member_id") if name in options})
        answer = self.s.ask(api, options.pop("version", self.version), on=self.name, **fields, **options)
        if answer is not None and not answer.error_code:
            self.session = 0 if epoch == -1 else epoch + 1
        return answer

    def fetch(
        self,
        *partitions: Any,
        acks: Any = None,
        until: Any = None,
        label: str = "",
        quiet: bool = False,
        **options: Any,
    ) -> Any:
        """A fetch; repeated in the session, with the last answer as the step, while `until` does not hold."""
        options = {"retry": (), **options}
        end = time.monotonic() + self.s.server.patience
        shape = {name: options.pop(name) for name in ("hide", "ordered", "pick") if name in options}
        version = options.get("version", self.version)
        step = f"ShareFetch-v{version}-{label or self.name}"
        if not self.s.server.serves("ShareFetch", version):
            return self.s.note(step, NOT_ADVERTISED)
        while True:
            answer = self.request("ShareFetch", partitions, acks, quiet=True, **options)
            partitions, acks = (), None
            options.pop("session", None)
            if not until or answer.error_code or until(answer) or time.monotonic() > end:
                break
        if not quiet:
            self.s.note(step, answer.to_dict(), **shape)
        return answer

    def until_acquired(self, *partitions: Any, count: int = 1, **options: Any) -> Any:
        """Fetches until `count` records are acquired in one answer."""

        def enough(answer: Any) -> bool:
            rows = [r for topic in answer.responses for part in topic.partitions for r in part.acquired_records]
            return sum(r.last_offset - r.first_offset + 1 for r in rows) >= count

        return self.fetch(*partitions, until=enough, **options)

    def acknowledge(self, acks: Any, *, label: str = "", **options: Any) -> Any:
        return self.request("ShareAcknowledge", (), acks, label=label or self.name, **{"retry": (), **options})


def acquired(a: Any) -> Any:
    """Of a ShareFetch answer: errors, offsets of the records sent, and what was acquired."""
    if a["error_code"]:
        return a["error_code"]
    return [
        {"partition": p["partition_index"], "errors": [p["error_code"], p["acknowledge_error_code"]],
         "sent": [i["offset"] for r in p["records"] or [] for i in r["items"]],
         "acquired": [[r["first_offset"], r["last_offset"], r["delivery_count"]] for r in p["acquired_records"]]}
        for topic in a["responses"] for p in topic["partitions"]
    ]  # fmt: skip


def share_setting(s: Scenario, group: str, **configs: str) -> None:
    """Sets configs of a group; `_` stands for a dot. No step."""
    rows = [{"name": name.replace("_", "."), "config_operation": 0, "value": value} for name, value in configs.items()]
    s.ask(
        "IncrementalAlterConfigs",
        1,
        quiet=True,
        resources=[{"resource_type": 32, "resource_name": group, "configs": rows}],
    )
    s.ask(
        "DescribeConfigs",
        4,
        quiet=True,
        resources=[{"resource_type": 32, "resource_name": group, "configuration_keys": [rows[0]["name"]]}],
        until=lambda a: a.results[0].configs and a.results[0].configs[0].value == rows[0]["value"],
    )
