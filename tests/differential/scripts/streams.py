"""Streams groups (KIP-1071). A broker that does not advertise them need not have them."""

VERSION = 0


def _topology(*sources, epoch=0):
    part = {
        "subtopology_id": "0",
        "source_topics": list(sources),
        "source_topic_regex": [],
        "state_changelog_topics": [],
        "repartition_sink_topics": [],
        "repartition_source_topics": [],
        "copartition_groups": [],
    }
    return {"epoch": epoch, "subtopologies": [part]}


def _join(s, group, member, *sources, **changes):
    return {
        "group_id": group,
        "member_id": s.name(member),
        "member_epoch": 0,
        "rebalance_timeout_ms": 60_000,
        "topology": _topology(*sources),
        "process_id": s.name("process"),
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        "client_tags": [],
        **changes,
    }


def one_member(s):
    t, g = s.topic(partitions=2), s.name("g")
    s.ask("StreamsGroupHeartbeat", VERSION, label="joins", hide=("status_detail",), **_join(s, g, "a", t))
    s.ask("StreamsGroupDescribe", VERSION, group_ids=[g], label="delayed", pick=_brief)
    again = {"group_id": g, "member_id": s.name("a"), "member_epoch": 1}
    s.ask(
        "StreamsGroupHeartbeat",
        VERSION,
        label="assigned",
        hide=("status_detail",),
        **again,
        until=lambda h: h.active_tasks,
    )
    s.ask("StreamsGroupHeartbeat", VERSION, label="owns-them", hide=("status_detail",), **{**again, "member_epoch": 2},
          active_tasks=[{"subtopology_id": "0", "partitions": [0, 1]}], standby_tasks=[], warmup_tasks=[])  # fmt: skip
    s.ask("StreamsGroupDescribe", VERSION, group_ids=[g], label="stable", pick=_brief)
    s.ask("StreamsGroupDescribe", VERSION, group_ids=[s.name("none")], label="unknown", pick=_brief)
    s.ask("StreamsGroupHeartbeat", VERSION, label="leaves", group_id=g, member_id=s.name("a"), member_epoch=-1)
    s.ask("StreamsGroupHeartbeat", VERSION, label="after-leaving", retry=(), **{**again, "member_epoch": 2})


def _brief(a):
    return [
        {
            k: v
            for k, v in group.items()
            if k in ("error_code", "group_id", "group_state", "group_epoch", "assignment_epoch", "topology")
        }
        | {"members": len(group["members"])}
        for group in a["groups"]
    ]


def refused(s):
    t, g = s.topic(), s.name("g")
    changes = {
        "empty-group": {"group_id": ""},
        "empty-member": {"member_id": ""},
        "no-topology": {"topology": None},
        "no-process": {"process_id": None},
        "no-rebalance-timeout": {"rebalance_timeout_ms": -1},
        "tasks-null": {"active_tasks": None},
        "epoch-minus-5": {"member_epoch": -5},
        "unknown-member": {"member_epoch": 4},
        "static": {"instance_id": "box"},
    }
    for label, change in changes.items():
        s.ask(
            "StreamsGroupHeartbeat",
            VERSION,
            label=label,
            retry=(),
            hide=("status_detail",),
            **{**_join(s, g, "a", t), **change},
        )


def missing_sources(s):
    g = s.name("g")
    s.ask("StreamsGroupHeartbeat", VERSION, label="joins", hide=("status_detail",), **_join(s, g, "a", s.name("none")))
    s.ask("StreamsGroupDescribe", VERSION, group_ids=[g], pick=_brief)
    s.ask("ListGroups", 5, types_filter=["streams"], mine=True, pick=lambda a: len(a["groups"]) < 2)
