"""Each client is there twice, for threads and for asyncio: with the same methods, arguments, defaults and words."""

import inspect
import re
from types import FunctionType

import pytest

import kafkacodec as kc
from kafkacodec.client import aio

CLIENTS = ("Admin", "Consumer", "KafkaConnection", "Producer", "ShareConsumer")
ONLY_ASYNC = {("Producer", "start")}
"""A blocking client starts when it is made."""
ONLY_BLOCKING = {("Consumer", "reader")}
"""What reads an Arrow stream waits for it."""
OTHER_WORDS = {(client, "close") for client in CLIENTS}
"""A blocking client has a thread to end, and may be closed in a callback."""
MEMBERS = [
    (client, name)
    for client in CLIENTS
    for name in sorted({*dir(getattr(aio, client)), *dir(getattr(kc.client, client))})
    if not name.startswith("_") and (client, name) not in ONLY_ASYNC | ONLY_BLOCKING
    if hasattr(getattr(aio, client), name) or hasattr(getattr(kc.client, client), name)
]


def both(client, name):
    return inspect.getattr_static(getattr(aio, client), name), inspect.getattr_static(getattr(kc.client, client), name)


def kind(member):
    """The type; a compiled function counts as any other."""
    return FunctionType if type(member).__name__ == "cython_function_or_method" else type(member)


def signature(member):
    """With text instead of types, and what asyncio adds taken away."""
    if isinstance(member, property):
        member = member.fget
    found = inspect.signature(getattr(member, "__func__", member))
    return re.sub(r"\bAsync(Iterator|Iterable)\b", r"\1", str(found))


@pytest.mark.parametrize(("client", "name"), MEMBERS, ids=map(".".join, MEMBERS))
def test_methods_are_the_same(client, name):
    of_async, of_blocking = both(client, name)
    assert kind(of_async) is kind(of_blocking)
    assert signature(of_async) == signature(of_blocking)
    assert not inspect.iscoroutinefunction(of_blocking)
    if (client, name) not in OTHER_WORDS:
        assert inspect.getdoc(of_async) == inspect.getdoc(of_blocking)
        assert inspect.getdoc(of_async)


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_are_made_the_same_way(client):
    for_async, for_blocking = getattr(aio, client), getattr(kc.client, client)
    assert inspect.signature(for_async) == inspect.signature(for_blocking)
    for section in ("Args", "Raises"):
        found = [words_of(section, inspect.getdoc(kind)) for kind in (for_async, for_blocking)]
        assert found[0] == found[1] != ""


def words_of(section, doc):
    """The lines of a docstring's section."""
    return "\n".join(re.findall(rf"^{section}:\n((?: .*\n?)*)", doc, re.MULTILINE)).strip()


@pytest.mark.parametrize(("client", "name"), [(c, n) for c in CLIENTS for n in ("enter", "exit", "iter")])
def test_special_methods_are_there_twice(client, name):
    asked = {"iter": ("__aiter__", "__iter__")}.get(name, (f"__a{name}__", f"__{name}__"))
    assert hasattr(getattr(aio, client), asked[0]) is hasattr(getattr(kc.client, client), asked[1])


@pytest.mark.parametrize("call", [
    lambda: aio.Producer("127.0.0.1:1").send("t", b""),
    lambda: aio.Consumer("t", bootstrap_servers="127.0.0.1:1").__aenter__(),
    lambda: aio.Admin("127.0.0.1:1").list_topics(),
], ids=["Producer", "Consumer", "Admin"])  # fmt: skip
def test_without_a_loop_of_asyncio_the_error_says_what_else_there_is(call):
    step = call()  # as another library's loop runs it, such as trio's
    with pytest.raises(RuntimeError, match=r"no event loop of asyncio runs here: kafkacodec\.client is for threads"):
        step.send(None)
