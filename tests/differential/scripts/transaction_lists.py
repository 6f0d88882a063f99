"""What is said of transactions and of producers (KIP-664)."""

from tests.differential.producers import Producer, finished


def describe(s):
    t, u, p = s.topic("t", 2), s.topic("u"), Producer(s)
    s.ask("DescribeTransactions", 0, transactional_ids=[p.name], label="unknown")
    p.init()
    s.ask("DescribeTransactions", 0, transactional_ids=[p.name], label="empty")
    p.add(t, 0, 1)
    p.add(u)
    s.ask("DescribeTransactions", 0, transactional_ids=[p.name], label="ongoing")
    p.end()
    s.ask(
        "DescribeTransactions",
        0,
        transactional_ids=[p.name],
        label="committed",
        until=lambda a: a.transaction_states[0].transaction_state == "CompleteCommit",
    )
    p.add(t, 1)
    p.end(False)
    s.ask(
        "DescribeTransactions",
        0,
        transactional_ids=[p.name],
        label="aborted",
        until=lambda a: a.transaction_states[0].transaction_state == "CompleteAbort",
    )
    s.ask("DescribeTransactions", 0, transactional_ids=[], label="none")
    s.ask("DescribeTransactions", 0, transactional_ids=[""], label="empty-name")
    s.ask("DescribeTransactions", 0, transactional_ids=[p.name, s.name("none"), p.name], label="twice-and-unknown")


def list_transactions(s):
    t, one, two, three = s.topic(), Producer(s, "one"), Producer(s, "two"), Producer(s, "three")
    for p in (one, two, three):
        p.init()
    one.add(t)
    two.add(t)
    two.end()
    s.ask(
        "DescribeTransactions",
        0,
        transactional_ids=[two.name],
        quiet=True,
        until=lambda a: a.transaction_states[0].transaction_state == "CompleteCommit",
    )

    def mine(a):
        return [a["error_code"], a["unknown_state_filters"], a["transaction_states"]]

    for version in range(3):
        s.ask("ListTransactions", version, mine=True, pick=mine)
    for states in (["Ongoing"], ["CompleteCommit", "Empty"], ["ongoing"], ["Nonsense"], ["Ongoing", "Nonsense"]):
        s.ask("ListTransactions", 0, state_filters=states, mine=True, pick=mine, label="-".join(states))
    s.ask("ListTransactions", 0, producer_id_filters=[two.id], pick=mine, label="by-id")
    s.ask(
        "ListTransactions",
        0,
        producer_id_filters=[two.id, 4_000_000_000],
        state_filters=["Ongoing"],
        pick=mine,
        label="by-id-and-state",
    )
    s.ask("ListTransactions", 1, duration_filter=3_600_000, mine=True, pick=mine, label="an-hour-long")
    s.ask("ListTransactions", 1, duration_filter=0, mine=True, pick=mine, label="of-any-length")
    s.ask("ListTransactions", 2, transactional_id_pattern="t.*" + s.token, mine=True, pick=mine, label="pattern")
    s.ask("ListTransactions", 2, transactional_id_pattern="one", mine=True, pick=mine, label="pattern-of-a-part")
    s.ask("ListTransactions", 2, transactional_id_pattern="(", mine=True, pick=mine, label="bad-pattern")
    s.ask("ListTransactions", 2, transactional_id_pattern="", mine=True, pick=mine, label="empty-pattern")
    one.end(False)


def producers_of_a_partition(s):
    t, p = s.topic(), Producer(s)
    p.init()
    p.add(t)
    s.produce(t, b"plain")
    p.produce(t, b"a", b"b")
    s.ask("DescribeProducers", 0, topics=[{"name": t, "partition_indexes": [0]}], label="open")
    p.end()
    finished(s, t, 4)
    s.ask(
        "DescribeProducers",
        0,
        topics=[{"name": t, "partition_indexes": [0]}],
        label="committed",
        hide=("coordinator_epoch",),
    )
