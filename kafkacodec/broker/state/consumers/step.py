"""The decision about a heartbeat in a group of the consumer protocol: its records, in Kafka's order."""

from __future__ import annotations

from collections.abc import Iterable

from kafkacodec.broker.state.consumers.group import ConsumerGroup
from kafkacodec.broker.state.consumers.member import ConsumerMember, Places
from kafkacodec.broker.state.epoch_group import targets_stay
from kafkacodec.messages.stored import StoredRecord

__all__ = ["Step"]


class Step:
    """A heartbeat's decision: `subscribe`, then `divide`, then `reconcile`.

    Args:
        group: the current group.
        member: the member, new or current.
        replaces: the id of the member that it replaces.

    Attributes:
        member: the member after the step.
        records: the records to write.
    """

    def __init__(self, group: ConsumerGroup, member: ConsumerMember, replaces: str | None = None) -> None:
        self._group, self.member, self._replaces = group, member, replaces
        self.records: list[StoredRecord] = []
        self._members = {key: each for key, each in group.members.items() if key != replaces}
        self._targets = {key: places for key, places in group.target.items() if key != replaces}
        self._patterns = dict(group.patterns)
        self._epoch, self._target_epoch = group.epoch, group.assignment_epoch
        self._new = member.id not in group.members
        self._resubscribed = False
        if replaces is not None:
            self.records += group.members[replaces].tombstones(group.name)
            self._targets[member.id] = group.target.get(replaces, frozenset())

    def subscribe(self, after: ConsumerMember) -> None:
        """Apply the member's fields; a new subscription, or new topics, raise the epoch of the group."""
        before = self.member
        self.member = self._members[after.id] = after
        if self._new or after != before:
            self.records.append(after.metadata_record(self._group.name))
        self._drop_patterns()
        self._subscriptions = self._group.subscriptions(self._members, self._patterns)
        self._counts = self._group.counts(self._subscriptions)
        hash_ = self._group.hash_of(self._counts)
        named = set(after.topics) != set(before.topics)
        self._resubscribed = named or after.pattern != before.pattern
        finds = after.pattern != before.pattern and after.pattern in self._patterns
        if named or finds or hash_ != self._group.hash:
            self._epoch += 1
            self.records.append(self._group.epoch_record(self._epoch, hash_))

    @property
    def raises(self) -> bool:
        """Whether the epoch of the group goes up."""
        return self._epoch > self._group.epoch

    def _drop_patterns(self) -> None:
        """Forget regular expressions that no member has."""
        for pattern in sorted(self._patterns.keys() - {member.pattern for member in self._members.values()}):
            del self._patterns[pattern]
            self.records.append(self._group.pattern_record(pattern, None))

    def divide(self, interval_ms: int) -> None:
        """Compute new targets, if the group's epoch has risen since the last time, and that was an interval ago.

        Nobody waits for the first members of a group, nor for the topics of a regular expression.
        """
        group = self._group
        waits = bool(group.members) and targets_stay(group, interval_ms)
        if group.assignment_epoch < self._epoch and not waits:
            self._targets = group.targets(self._members, self._targets, self._counts, self._subscriptions)
            self._target_epoch = self._epoch
            unknown = any(each.pattern and each.pattern not in self._patterns for each in self._members.values())
            self.records += group.target_records(self._targets, self._epoch, 0 if unknown else group.room.now)
        elif self._replaces is not None:
            moved = {self.member.id: self._targets[self.member.id]}
            self.records += group.target_records(moved, group.assignment_epoch, group.assigned_at)

    def reconcile(self, owned: Places | None) -> None:
        """Move the member closer to its target."""
        epoch = self._target_epoch
        others = [each for each in self._members.values() if each.id != self.member.id]
        taken = {place for each in others for place in each.assigned | each.revoking}
        target = self._targets.get(self.member.id, frozenset())
        after = self.member.reconciled(target, epoch, taken, owned)
        if self._resubscribed:
            ids = {self._group.topics.id_of(topic) for topic in self._subscriptions[self.member.id].topics}
            after = after.without(frozenset(place for place in after.assigned if place[0] not in ids))
        if self._new or after != self.member:
            self.records.append(after.assignment_record(self._group.name))
        self.member = after

    @staticmethod
    def removal(group: ConsumerGroup, members: Iterable[ConsumerMember]) -> list[StoredRecord]:
        """Return the records that remove members from a group."""
        gone = list(members)
        left = {key: each for key, each in group.members.items() if each not in gone}
        wanted = {member.pattern for member in left.values()}
        records = [record for member in gone for record in member.tombstones(group.name)]
        records += [group.pattern_record(pattern, None) for pattern in sorted(group.patterns.keys() - wanted)]
        counts = group.counts(group.subscriptions(left, group.patterns))
        records.append(group.epoch_record(group.epoch + 1, group.hash_of(counts)))
        return records if left else [*records, *group.target_records({}, group.epoch + 1, group.room.now)]

    @staticmethod
    def resolution(group: ConsumerGroup) -> list[StoredRecord]:
        """Return the records of regular expressions whose topics have changed."""
        wanted = {member.pattern for member in group.members.values() if member.pattern}
        found = {pattern: group.resolved(pattern) for pattern in sorted(wanted)}
        records = [group.pattern_record(p, names) for p, names in found.items() if group.patterns.get(p) != names]
        if not any(group.patterns.get(pattern, ()) != names for pattern, names in found.items()):
            return records
        counts = group.counts(group.subscriptions(group.members, found))
        return [*records, group.epoch_record(group.epoch + 1, group.hash_of(counts))]
