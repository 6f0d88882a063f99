"""Members of streams groups, and topologies, as scripts need them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.differential.scenario import Scenario

ROLES = ("active_tasks", "standby_tasks", "warmup_tasks")


def part(name: str = "0", *sources: str, **fields: Any) -> dict[str, Any]:
    """A subtopology."""
    lists = ("source_topic_regex", "state_changelog_topics", "repartition_sink_topics", "repartition_source_topics",
             "copartition_groups")  # fmt: skip
    return {"subtopology_id": name, "source_topics": list(sources), **{key: [] for key in lists}, **fields}


def topic(name: str, partitions: int = 0, **configs: str) -> dict[str, Any]:
    """An internal topic; `_` in the configs' names stands for a dot."""
    rows = [{"key": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return {"name": name, "partitions": partitions, "replication_factor": 0, "topic_configs": rows}


def together(*sources: int, repartition: tuple[int, ...] = ()) -> dict[str, Any]:
    """A copartition group, by the numbers of topics."""
    return {"source_topics": sources, "source_topic_regex": [], "repartition_source_topics": repartition}


def topology(*parts: dict[str, Any], epoch: int = 0) -> dict[str, Any]:
    return {"epoch": epoch, "subtopologies": list(parts)}


def tasks(*numbers: int, of: str = "0") -> list[dict[str, Any]]:
    """Tasks of one subtopology."""
    return [{"subtopology_id": of, "partitions": list(numbers)}]


class StreamsMember:
    """A member; its heartbeats are steps. It keeps its epoch and tasks."""

    def __init__(
        self, s: Scenario, group: str, name: str, made: dict[str, Any], version: int = 1, **fields: Any
    ) -> None:
        self.s, self.group, self.name, self.version = s, group, name, version
        self.first = {
            "topology": made, "rebalance_timeout_ms": 60_000, "process_id": s.name(f"process-{name}"),
            "client_tags": [], **dict.fromkeys(ROLES, ()), **fields,
        }  # fmt: skip
        self.instance = {"instance_id": fields["instance_id"]} if "instance_id" in fields else {}
        self.epoch = 0
        self.tasks: dict[str, Any] = {}

    def beat(self, label: str = "", until: Callable[[Any], Any] | None = None, **options: Any) -> Any:
        """A heartbeat without news, unless the options have some; until: others before it, which are no steps."""
        end = time.monotonic() + self.s.server.patience
        while until:
            answer = self._ask("", quiet=True, **options)
            if until(answer) or answer.error_code or time.monotonic() > end:
                step = f"StreamsGroupHeartbeat-v{self.version}-{self.name}-{label}"
                self.s.note(step, answer.to_dict(), hide=options.get("hide", ("status_detail",)))
                return answer
            time.sleep(0.05)
        return self._ask(label, **options)

    def _ask(self, label: str, **options: Any) -> Any:
        fields = {"member_epoch": self.epoch, "retry": (), "hide": ("status_detail",), **self.instance, **options}
        answer = self.s.ask(
            "StreamsGroupHeartbeat", self.version, label=f"{self.name}-{label}",
            group_id=self.group, member_id=self.s.name(self.name), **fields,
        )  # fmt: skip
        if answer is not None and not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.active_tasks is not None:
                self.tasks = {role: [row.to_dict() for row in getattr(answer, role)] for role in ROLES}
        return answer

    def join(self, label: str = "joins", **options: Any) -> Any:
        return self.beat(label, **{**self.first, "member_epoch": 0, **options})

    def own(self, label: str = "owns-them", **options: Any) -> Any:
        """A heartbeat with all its tasks."""
        return self.beat(label, **{**self.tasks, **options})

    def start(self, **options: Any) -> None:
        """Join a new group, and wait until it has tasks."""
        self.join(**options)
        self.beat("assigned", until=lambda h: h.active_tasks)
        self.own()

    def leave(self, label: str = "leaves", epoch: int = -1, **options: Any) -> Any:
        return self.beat(label, member_epoch=epoch, **options)


def describe(s: Scenario, group: str, label: str = "", version: int = 1, **options: Any) -> Any:
    return s.ask("StreamsGroupDescribe", version, group_ids=[group], label=label, **options)


def brief(answer: dict[str, Any]) -> Any:
    """Of a description what most steps need."""
    kept = ("error_code", "group_state", "group_epoch", "assignment_epoch")
    members = ("member_id", "member_epoch", "assignment", "target_assignment")
    return [
        {key: group[key] for key in kept} | {"members": [{key: m[key] for key in members} for m in group["members"]]}
        for group in answer["groups"]
    ]


def source(s: Scenario, name: str = "t", partitions: int = 1) -> str:
    """A new topic that the coordinator of streams groups knows. No step."""
    made = s.topic(name, partitions)
    probe = StreamsMember(s, s.name(f"probe-{name}"), f"probe-{name}", topology(part("0", made)))
    s.ask("StreamsGroupHeartbeat", 1, quiet=True, group_id=probe.group, member_id=probe.name, member_epoch=0,
          **probe.first, until=lambda h: not any(row.status_code == 1 for row in h.status))  # fmt: skip
    s.ask("StreamsGroupHeartbeat", 1, quiet=True, group_id=probe.group, member_id=probe.name, member_epoch=-1)
    return made
