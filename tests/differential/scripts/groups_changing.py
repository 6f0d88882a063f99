"""Groups of the consumer protocol with three and more members, and running groups that change their protocol."""

from tests.differential.members import Consumer, Member, assignment, in_state, known, settle, sizes


def _state(s, group, label=""):
    """A step: epochs of a group of the consumer protocol, and partitions of its members."""

    def brief(answer):
        def count(rows):
            return sum(len(row["partitions"]) for row in rows["topic_partitions"])

        (row,) = answer["groups"]
        members = [
            [m["instance_id"], m["member_epoch"], count(m["assignment"]), count(m["target_assignment"])]
            for m in row["members"]
        ]
        return [row["group_state"], row["group_epoch"], row["assignment_epoch"], sorted(members, key=str)]

    s.ask("ConsumerGroupDescribe", 1, group_ids=[group], label=label, pick=brief)


def _topic(s, group, name="t", partitions=12):
    t = s.topic(name, partitions)
    known(s, group, t)
    return t


def three_come_and_go(s):
    g = s.name("g")
    t = _topic(s, g)
    a, b, c, d = (Consumer(s, g, name, t) for name in "abcd")
    for members in ((a,), (a, b), (a, b, c), (a, b, c, d)):
        members[-1].join(quiet=True)
        settle(s, g, *members)
        sizes(s, f"{len(members)}", *members)
    _state(s, g)
    d.leave()
    _state(s, g, "not-yet-assigned-again")
    a.beat(report=True, hide=("assignment",))
    _state(s, g, "assigned-again")
    settle(s, g, a, b, c)
    sizes(s, "three-again", a, b, c)


def gives_up_and_gets_back(s):
    g = s.name("g")
    t = _topic(s, g)
    a, b, c = (Consumer(s, g, name, t) for name in "abc")
    a.join(quiet=True)
    had = a.owned
    b.join(quiet=True)
    a.beat(label="is-to-give-up", hide=("assignment",))
    _state(s, g, "gives-up")
    c.join(quiet=True)
    _state(s, g, "three")
    b.leave()
    c.leave()
    a.owned = had
    a.beat(report=True, label="keeps-all", hide=("assignment",))
    b.join(quiet=True)
    a.beat(quiet=True)
    b.beat(subscribed_topic_names=[], label="wants-nothing")
    a.beat(report=True, label="gets-it-back", hide=("assignment",))
    _state(s, g, "all-again")


def subscriptions(s):
    g = s.name("g")
    t, u = _topic(s, g), _topic(s, g, "u", 2)
    a, b = Consumer(s, g, "a"), Consumer(s, g, "b", t, u)
    a.join(label="without-topics")
    _state(s, g, "without-topics")
    b.join(label="joins", hide=("assignment",))
    b.beat(subscribed_topic_names=[u, t], label="in-another-order")
    a.beat(subscribed_topic_names=[t], label="wants-one", hide=("assignment",))
    b.beat(label="is-to-give-up", hide=("assignment",))
    b.beat(subscribed_topic_names=[t], label="wants-less", hide=("assignment",))
    _state(s, g, "gives-up-both")
    settle(s, g, a, b)
    sizes(s, "both", a, b)
    a.beat(subscribed_topic_regex=s.name("t"), label="a-new-expression", hide=("assignment",))
    # Which topics match is found out after the answer, and raises the epoch.
    s.ask("ConsumerGroupDescribe", 0, group_ids=[g], quiet=True, until=lambda found: found.groups[0].group_epoch == 5)
    a.leave()
    b.leave()
    _state(s, g, "empty")


def joins_again(s):
    g = s.name("g")
    t = _topic(s, g)
    a, b = Consumer(s, g, "a", t), Consumer(s, g, "b", t, instance_id="box")
    a.join(quiet=True)
    b.join(quiet=True)
    settle(s, g, a, b)
    b.join(label="static-while-it-is-there", retry=())
    a.join(label="dynamic", hide=("assignment",))
    b.epoch = 3
    b.beat(instance_id="box", label="goes-on")
    b.leave(-2, fields={"instance_id": "box"})
    _state(s, g, "away")
    b.join(label="static-after-it-left", hide=("assignment",))
    _state(s, g, "back")


def away_while_it_gives_up(s):
    g = s.name("g")
    t = _topic(s, g)
    a, b = Consumer(s, g, "a", t, instance_id="box"), Consumer(s, g, "b", t)
    a.join(quiet=True)
    b.join(quiet=True)
    a.beat(instance_id="box", label="is-to-give-up", hide=("assignment",))
    a.leave(-2, fields={"instance_id": "box"})
    b.beat(report=True, label="gets-what-was-given-up", hide=("assignment",))
    _state(s, g)


def classic_members_follow_targets(s):
    g = s.name("g")
    t = _topic(s, g)
    a = Consumer(s, g, "a", t)
    a.join(quiet=True)
    a.beat(report=True, quiet=True)
    old, other = Member(s, g, "old", version=9, topics=(t,)), Member(s, g, "other", version=9, topics=(t,))
    old.join(quiet=True)
    other.join(quiet=True)
    _state(s, g, "three")
    other.leave()
    _state(s, g, "no-target-yet")
    old.beat(label="no-target-yet")
    old.sync(label="no-target-yet")
    a.beat(report=True, quiet=True)
    a.beat(report=True, quiet=True)
    old.beat(label="a-new-target")
    old.join(label="again")
    _state(s, g, "two")


def classic_joins_refused(s):
    g = s.name("g")
    t = _topic(s, g)
    a = Consumer(s, g, "a", t, instance_id="a-box")
    Consumer(s, g, "b", t).join(quiet=True)
    a.join(quiet=True)
    old = Member(s, g, "old", version=9, topics=(t,))
    old.join(quiet=True)
    who = Member(s, g, "who", version=9, topics=(t,))
    who.id = "nobody"
    rows = {
        "instance-of-another": {"group_instance_id": "a-box"},
        "unknown-instance": {"group_instance_id": "no-box"},
        "no-protocol-in-common": {"protocols": {"x": b""}},
        "unreadable": {"protocols": {"range": b""}},
        "another-type": {"protocol_type": "connect"},
    }
    for label, fields in rows.items():
        who.join(label=label, fields=fields, retry=())
    who.id = ""
    for label in ("no-protocol-in-common", "unreadable"):
        offered = [{"name": name, "metadata": data} for name, data in rows[label]["protocols"].items()]
        s.ask("JoinGroup", 9, label=f"new-{label}", retry=(), on="who", group_id=g, member_id="", protocols=offered)
    _state(s, g)


def changes_over_without_topics(s):
    g = s.name("g")
    t = _topic(s, g)
    old = Member(s, g, "old", topics=(t,))
    old.join(quiet=True)
    old.sync({old.id: assignment(**{t: list(range(12))})}, quiet=True)
    new = Consumer(s, g, "new")
    new.join(label="without-topics")
    _state(s, g)
    old.beat(label="goes-on")
    Consumer(s, g, "another", t).join(label="with-a-topic", hide=("assignment",))
    old.beat(label="is-to-join-again")


def takes_the_place_of_the_last(s):
    """The last member of the newer protocol is replaced by a classic one of the same instance."""
    cases = ("alone", 0, False), ("alone-with-others", 0, True), ("of-two", 1, False), ("of-two-with-others", 1, True)
    for label, others, changed in cases:
        g = s.name(label)
        t = _topic(s, g, f"t-{label}")
        new = Consumer(s, g, f"new-{label}", t, instance_id="box")
        new.join(quiet=True)
        rest = [Member(s, g, f"{label}-{n}", version=9, topics=(t,)) for n in range(others)]
        for member in rest:
            member.join(quiet=True)
        topics = () if changed else (t,)
        back = Member(s, g, f"back-{label}", version=9, topics=topics, group_instance_id="box")
        back.join(label=label)
        s.ask("DescribeGroups", 6, groups=[g], label=label, hide=("member_assignment", "member_metadata"))
        back.beat(fields={"group_instance_id": "box"}, label=label)
        for member in rest:
            member.beat(label=f"{label}-other")
            member.sync(label=f"{label}-other", hide=("assignment",))


def takes_an_instance_over(s):
    """A member of the newer protocol replaces a classic one of the same instance."""
    g = s.name("g")
    t = _topic(s, g)
    a = Consumer(s, g, "a", t)
    a.join(quiet=True)
    old = Member(s, g, "old", version=9, topics=(t,), group_instance_id="box")
    old.join(quiet=True)
    new = Consumer(s, g, "new", t, instance_id="box")
    new.join(hide=("assignment",))
    old.beat(fields={"group_instance_id": "box"}, label="replaced")
    _state(s, g)


def last_one_leaves_two(s):
    g = s.name("g")
    t = _topic(s, g)
    a = Consumer(s, g, "a", t)
    a.join(quiet=True)
    a.beat(report=True, quiet=True)
    old = [Member(s, g, name, version=9, topics=(t,)) for name in ("old", "other")]
    for member in old:
        member.join(quiet=True)
    a.leave()
    in_state(s, g, "PreparingRebalance")
    for member in old:
        member.beat()
        member.sync(hide=("assignment",))
    sent = [(member, member.start_joining()) for member in old]
    for member, waiting in sent:
        member.joined(waiting, hide=("leader", "members"))
