"""Replication between brokers of the line protocol: decisions, without I/O.

A partition has a replica on each broker of a list. One broker leads; the others fetch its records and report how far
they have them. Each leadership has an epoch, which only that broker uses.

The rules, with R replicas of which M must be in sync:

- A record is committed, and a PRODUCE with acks=all answered, when M replicas have it on their disks.
- A candidate asks the others for promises to serve no older leader. With promises of R - M + 1 replicas, including its
own, no older leader can commit anything, and one of them has all committed records: the one with the newest accepted
epoch, and the longest log among those. If that is another replica, the candidate copies its log first.
- A follower accepts an epoch when it has the leader's log up to the start of the epoch; only then it counts as in sync.

Raft and Viewstamped Replication keep committed records in this way; SET_PARTITION_ROLE chooses the candidate.
"""
