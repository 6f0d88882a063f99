"""The coordinators of a broker, as machines without I/O whose state is the records of internal topics.

Every machine (`kafkacodec.broker.state.machine.Machine`) has the same calls, each of which returns a
`kafkacodec.net.service.Effect`:

- ``receive(request, version, client, to, now)``: a request of an API in ``machine.handlers`` (by API key). Exactly one
  ``Reply(to, response)`` follows, in this effect or a later one; the response is encoded in the request's version.
- ``tick(now)``, when ``next_deadline()`` says so.
- ``appended(token, result, now)`` and ``not_appended(token, error, now)``: what became of an ``Append``.

Times are milliseconds since 1970 of a clock that does not go back: records and retention have them too.

An ``Append`` has ``log=(topic, partition)`` and ``data=Records(rows, timestamp, producer_id, producer_epoch)``: one
batch, transactional if there is a producer id. Append in the order in which appends came out. An effect has appends or
replies, never both: no reply of it waits for, or fails with, an append of another request. A request for a key, such
as a group, that has records on their way waits within the machine, so a host may take its time.

At the start: ``load(key, value, producer_id)`` for each record of the topic in the order of the log; then
``loaded(now)``. When a marker of a transaction is in a partition of ``__consumer_offsets``, then and at the start,
``end_transaction(partition, producer_id, committed)``, in the order of the log. ``topics_deleted(names, now)`` when
topics are gone, ``topics_changed()`` when they came or grew, ``configure(group, name, value)`` for settings of a group.
A coordinator asks about topics through `kafkacodec.broker.state.machine.Topics`.

The transaction coordinator's appends to other topics have ``data=Marker(...)``: a control batch, for which the host
asks no machine. `kafkacodec.broker.state.verification` has what Produce and TxnOffsetCommit ask it before they append:

1. ``transactions.receive(verification(api, version, ...), VERIFY_VERSION, ...)``; its reply goes to the host itself.
2. ``verified(answer, api, version)`` has an error code for each partition. Where it is 0, Produce appends, and
   TxnOffsetCommit goes on to the group coordinator; else `kafkacodec.broker.state.offsets.answer_of` refuses it.

What depends on who asks is left to the host: authorization, and ``authorized_operations`` of what is described.

>>> from kafkacodec import messages
>>> from kafkacodec.broker.state.coordinator import GroupCoordinator
>>> from kafkacodec.broker.state.machine import Client, NoTopics
>>> groups = GroupCoordinator(NoTopics(), partitions=50)
>>> groups.loaded(now=0)
Effect(appends=(), replies=[])
>>> effect = groups.receive(messages.ListGroupsRequest(), 4, Client("me"), "request 1", now=1)
>>> effect.replies[0].to, effect.replies[0].response.groups
('request 1', [])
"""
