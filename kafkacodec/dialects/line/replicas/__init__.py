"""Replication between brokers of the line protocol: what is decided, without I/O.

A partition has a replica on each broker of a list. One broker leads; the others fetch its records and report how far
they have them. Each leadership has an epoch, which only that broker uses.

The rules, with R replicas of which M must be in sync:

- A record is committed, and a PRODUCE with acks=all answered, when M replicas have it on their disks.
- Who is to lead asks the others for promises to serve no older leader. With those of R - M + 1 replicas, its own among
  them, no older leader commits anything more, and one of them has all that is committed: the one with the newest
  accepted epoch, and the longest log among those. If that is another one, its log is copied first.
- A follower accepts an epoch when it has the leader's log up to where the epoch begins; only then it counts as in sync.

That is how Raft and Viewstamped Replication keep what is committed; who is to lead is said by SET_PARTITION_ROLE.
"""
