from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, final

@final
class Reply:
    """The answer to a request.

    Attributes:
        to: what the request came with: the host's object for it, which a service only keeps and gives back.
        response: a message for the codec of that connection, `NO_ANSWER` or `CLOSE`.
    """

    to: Any
    response: Any
    def __init__(self, to: Any, response: Any) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...

@final
class Append:
    """Something to be appended to a log.

    Attributes:
        log: the log, by the name that the service and its store have for it, such as (topic, partition).
        data: record batches as bytes; or keys and values, which the store writes as one batch.
        token: given back to `appended` or `not_appended`; None if the service need not know.
        durability: when the append counts as done: the system has it, so that it survives the process; or the disk has
            it.
    """

    log: Any
    data: Any
    token: Any
    durability: Literal["written", "flushed"]
    def __init__(
        self, log: Any, data: Any, token: Any = None, durability: Literal["written", "flushed"] = "written"
    ) -> None: ...

@final
class Effect:
    """What is to be done: first all appends in their order, then all replies in theirs.

    If one of the appends fails, the replies are not sent: `Service.not_appended` says what is answered instead.

    Attributes:
        appends, replies: belong together.
        others: further effects, which neither wait for these nor fail with them.
        written: logs that the service's storage has appended to already; where an append must be on the disk to count,
            the replies wait for that.
        lost: makes what is replied instead if the disk does not take what was written.
    """

    appends: Sequence[Append]
    replies: Sequence[Reply]
    others: Sequence[Effect]
    written: Sequence[Any]
    lost: Callable[[], Sequence[Reply]]
    def __init__(
        self,
        appends: Sequence[Append] = (),
        replies: Sequence[Reply] = (),
        others: Sequence[Effect] = (),
        written: Sequence[Any] = (),
        lost: Callable[[], Sequence[Reply]] = ...,
    ) -> None: ...
    def __bool__(self) -> bool: ...
