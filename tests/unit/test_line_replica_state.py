"""What a broker with replicas tells others of what it leads, and what they make of it."""

from __future__ import annotations

from kafkacodec.dialects.line.config import BrokerConfig
from kafkacodec.dialects.line.parsing import parse_response
from kafkacodec.dialects.line.replicas.broker import ReplicatedBroker
from kafkacodec.dialects.line.replicas.commands import REPLICA_COMMANDS
from kafkacodec.dialects.line.replicas.roles import Roles
from kafkacodec.dialects.line.replicas.watching import Renew, Watch
from tests.replicas.simulation import Disk


class Broker:
    """A machine with four partitions, of which it leads what it is told to."""

    def __init__(self):
        self.roles = Roles([], lambda: None, leads=False)
        config = BrokerConfig(topics={"t": 4}, replication_factor=3, min_in_sync=2)
        self.machine = ReplicatedBroker(Disk(), config, self.roles, 1)

    def lead(self, number, epoch):
        self.machine.promise(("t", number), epoch)
        self.roles.change(("t", number), accepted=epoch, leads=True)
        self.machine.lead(("t", number), 0)

    def state(self, connection, since=None):
        arguments = "" if since is None else f"since={since}"
        (reply,) = self.machine.receive(f"V1|1|REPLICA_STATE|{arguments}", 0, connection)
        return parse_response(reply.line, "REPLICA_STATE", commands=REPLICA_COMMANDS).fields


def test_only_what_has_changed_is_told_again():
    broker = Broker()
    for number in (0, 1, 3):
        broker.lead(number, 4)
    first = broker.state("a")
    assert first["whole"]
    assert sorted(first["leads"]) == [("t", 4, number, 4) for number in (0, 1, 3)]
    again = broker.state("a", first["version"])
    assert (again["whole"], again["leads"], again["gone"]) == (False, [], [])
    broker.lead(2, 7)
    broker.machine.promise(("t", 1), 5)  # another broker is to lead
    changed = broker.state("a", first["version"])
    assert (changed["whole"], changed["leads"], changed["gone"]) == (False, [("t", 4, 2, 7)], [("t", 1)])
    assert broker.state("a", changed["version"])["leads"] == []


def test_another_connection_hears_all():
    """A version is one of the process that has told it, which a new connection may not be."""
    broker = Broker()
    broker.lead(0, 4)
    version = broker.state("a")["version"]
    assert broker.state("b", version)["whole"]
    broker.machine.disconnect("a")
    assert broker.state("a", version)["whole"]


def test_what_was_told_adds_up():
    watch = Watch(Broker().machine, Roles([], lambda: None, leads=False), [0], 2)
    broker = Broker()
    broker.lead(0, 4)
    broker.lead(1, 4)
    told = broker.state("a")
    assert sorted(watch.heard(0, told)) == [("t", 0), ("t", 1)]
    assert watch.heard(0, broker.state("a", told["version"])) == []
    broker.machine.promise(("t", 1), 5)
    broker.lead(0, 7)
    assert sorted(watch.heard(0, broker.state("a", told["version"]))) == [("t", 0), ("t", 1)]
    assert watch.heard(0, broker.state("b")) == []  # all of it is what was known
    assert watch.heard(0, None) == [("t", 0)]


def test_a_replica_that_has_promised_in_vain_asks_for_a_newer_epoch():
    """It can follow no leader of an older one: after a while the leader is asked to be elected anew, which it is."""
    leader, replica = Broker(), Broker()
    leader.lead(0, 4)
    replica.machine.promise(("t", 0), 8)  # to somebody who was not elected
    watch = Watch(replica.machine, replica.roles, [0], 2)
    told, decisions = leader.state("a"), []
    while not decisions:
        assert watch.heard(0, told) == [("t", 0)]
        decisions += [found for found in [watch.decide(("t", 0), None)] if found is not None]
        told = leader.state("a", told["version"])
    assert decisions == [Renew(0, 8)]
    leader.machine.take_wishes()
    leader.machine.receive("V1|1|REPLICA_RENEW|t 0 8", 0, "a")
    assert leader.machine.take_wishes() == {("t", 0): "lead"}
    assert (leader.roles["t", 0].promised, leader.roles["t", 0].leads) == (8, True)
    assert not leader.machine.leads(("t", 0))
    leader.machine.receive("V1|1|REPLICA_RENEW|t 0 9", 0, "a")  # it no longer leads: that is under way
    assert leader.machine.take_wishes() == {}


def test_followers_hear_at_once_of_a_commit_of_any_partition():
    broker = Broker()
    broker.lead(0, 4)
    assert broker.machine.receive("V1|1|JOIN|g t a", 0, "a") == []  # until a follower and the disk have it
    assert broker.machine.kept_groups(broker.machine.tickets(), 0) == []
    (pulled,) = broker.machine.receive("V1|1|REPLICA_GROUPS|t 0 4 1 -1", 0, "f")
    assert "|OK|ticket=1 " in pulled.line
    (joined,) = broker.machine.receive("V1|2|REPLICA_GROUPS|t 0 4 1 1", 0, "f")
    assert (joined.connection, joined.line) == ("a", "V1|1|OK|generation=1 assigned=[0,1,2,3]")
    (waited,) = broker.machine.receive("V1|2|COMMIT|g t a 1 3 0", 0, "a")
    assert (waited.connection, waited.line.partition(" ")[0]) == ("f", "V1|2|OK|ticket=2")
