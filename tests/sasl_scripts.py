"""Conversations of clients that log in, well and badly: the same with Apache Kafka and with the embedded broker.

Each public function is a scenario. It takes a `Talk` and says what it notes; `tests/data/broker/sasl.json` has what
Apache Kafka 4.4.0 answered, written by ``python -m tests.sasl_scripts HOST:PORT…`` (see `main`).
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kafkacodec import messages, protocol
from kafkacodec.net.sasl.scram import Scram
from tests.broker_wire import Connection

GOLDEN = Path(__file__).parent / "data" / "broker" / "sasl.json"
PASSWORDS = {"alice": "alice's secret", "bob": "ﬁn\N{NO-BREAK SPACE}ü", "carol": "c"}
NONCE = "fyko+d2lbbFgONRv9qkxdawL"


class Talk:
    """Connections to listeners of a broker, and what was answered.

    Args:
        listeners: host and port by the name of a listener: SASL; BRIEF, with sessions of two seconds; PLAIN, which has
            no other mechanism.
        waits: what a scenario calls to let time pass, in seconds.
        now: the time of the broker, in seconds.
    """

    def __init__(
        self, listeners: dict[str, str], waits: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._listeners, self.waits, self.now = listeners, waits, now
        self.noted: list[Any] = []
        self._connection: Connection | None = None
        self._sent = 0
        self.open("SASL")

    def open(self, listener: str) -> None:
        """Connect to a listener, in place of the connection before."""
        self.close()
        self._listener = listener
        self._connection = Connection(self._listeners[listener], seconds=20)

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()

    def ask(self, api: str, version: int, pick: tuple[str, ...] = (), **fields: Any) -> Any:
        """Send a request, and note the answer, or that the connection was closed."""
        self._sent += 1
        request = getattr(messages, f"{api}Request").from_dict(fields)
        self.raw(protocol.encode_request(request, version, self._sent, "me"))
        frame = self._frame()
        if frame is None:
            return self._note("closed")
        answer = protocol.decode_response(frame, request.api_key, version)[1]
        shown = _shown(answer.to_dict())
        self._note({name: shown[name] for name in pick} if pick else shown)
        return answer

    def handshake(self, mechanism: str, version: int = 1) -> Any:
        """Name a mechanism."""
        return self.ask("SaslHandshake", version, mechanism=mechanism)

    def token(self, data: bytes, version: int = 2) -> Any:
        """Send a token."""
        return self.ask("SaslAuthenticate", version, auth_bytes=data)

    def plain(self, user: str, password: str | None = None, version: int = 2) -> Any:
        """Log in by PLAIN."""
        self.handshake("PLAIN")
        return self.token(plain(user, password), version)

    def beside(self, api: str, version: int, **fields: Any) -> Any:
        """Send a request as carol on another connection to the same listener; no note."""
        own, noted, self._connection, self.noted = self._connection, self.noted, None, []
        try:
            self.open(self._listener)
            self.plain("carol")
            answer = self.ask(api, version, **fields)
            self.close()
        finally:
            self._connection, self.noted = own, noted
        self.waits(1)  # until each part of Apache Kafka knows
        return answer

    def works(self) -> None:
        """Note whether a request is answered."""
        self.ask("ListGroups", 0, pick=("error_code",))

    def bare(self, data: bytes) -> bytes | None:
        """Send a token without a header, and note the answer."""
        self.raw(len(data).to_bytes(4, "big") + data)
        frame = self._frame()
        self._note("closed" if frame is None else {"token": _text(frame[4:])})
        return None if frame is None else frame[4:]

    def ends(self) -> None:
        """Note whether the connection ends."""
        try:
            self._note("closed" if self._frame(2) is None else "more")
        except TimeoutError:
            self._note("open")

    def raw(self, data: bytes) -> None:
        """Send bytes."""
        assert self._connection is not None
        self._connection.write(data)

    def _note(self, what: Any) -> None:
        self.noted.append(what)

    def _frame(self, seconds: float | None = None) -> bytes | None:
        assert self._connection is not None
        return self._connection.frame(seconds)


def _shown(answer: dict[str, Any]) -> dict[str, Any]:
    if "api_keys" in answer:
        return {"error_code": answer["error_code"]}
    if "mechanisms" in answer:
        return {**answer, "mechanisms": sorted(answer["mechanisms"])}
    if "auth_bytes" in answer:
        lifetime = answer["session_lifetime_ms"]
        return {**answer, "auth_bytes": _text(answer["auth_bytes"]), "session_lifetime_ms": _rough(lifetime)}
    return answer


def _text(data: bytes) -> str:
    """A token as text; nonces and what follows from them are left out."""
    text = bytes(data).decode("latin-1")
    text = re.sub(r"r=.*,s=.*,i=", "r=NONCE,s=SALT,i=", text)
    return re.sub(r"v=.*", "v=SIGNATURE", text)


def _rough(lifetime: int) -> str | int:
    """A lifetime to a second: how long the answer took is not of interest."""
    return lifetime if lifetime <= 0 else f"up to {-(-lifetime // 1000)} s"


def plain(user: str, password: str | None = None, authzid: str = "") -> bytes:
    """The token of PLAIN."""
    return f"{authzid}\0{user}\0{PASSWORDS.get(user, '') if password is None else password}".encode()


def scram(mechanism: str, user: str, password: str | None = None, *, by_token: bool = False) -> Scram:
    """The client of SCRAM."""
    settings: Any = SimpleNamespace(
        sasl_mechanism=mechanism, sasl_plain_username=user, sasl_scram_tokenauth=by_token,
        sasl_plain_password=PASSWORDS.get(user) if password is None else password,
    )  # fmt: skip
    return Scram(settings, "", NONCE)


def jws(claims: dict[str, Any] | None = None, head: dict[str, Any] | None = None, **changes: Any) -> str:
    """An unsecured token, as Kafka's handler for tests takes it (KIP-255)."""
    now = time.time()
    body = {"sub": "alice", "iat": now, "exp": now + 3600} if claims is None else claims
    parts = head or {"alg": "none"}, {key: value for key, value in {**body, **changes}.items() if value is not None}
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts) + "."


def bearer(token: str, extensions: str = "") -> bytes:
    """The token of OAUTHBEARER."""
    return f"n,,\x01auth=Bearer {token}\x01{extensions}\x01".encode()


# Before and after the login


def versions_twice(talk: Talk) -> None:
    """They are asked for once."""
    talk.ask("ApiVersions", 0)
    talk.ask("ApiVersions", 3, client_software_name="a", client_software_version="1")


def metadata_after_the_handshake(talk: Talk) -> None:
    """The mechanism alone is no login."""
    talk.handshake("PLAIN")
    talk.ask("Metadata", 9, topics=[{"name": "a"}])
    talk.ends()


def all_topics_after_the_handshake(talk: Talk) -> None:
    """What there is stays hidden."""
    talk.handshake("PLAIN")
    talk.ask("DescribeTopicPartitions", 0, topics=[], response_partition_limit=10)
    talk.ends()


def groups_after_the_handshake(talk: Talk) -> None:
    """A request with an error for each row of its answer."""
    talk.handshake("PLAIN")
    talk.ask("DescribeGroups", 0, groups=["g"])
    talk.ends()


def versions_after_the_handshake(talk: Talk) -> None:
    """They come first."""
    talk.handshake("PLAIN")
    talk.ask("ApiVersions", 0)
    talk.token(plain("alice"))


def metadata_first(talk: Talk) -> None:
    """Any other request ends the connection."""
    talk.ask("Metadata", 1, topics=[])


def metadata_after_versions(talk: Talk) -> None:
    """Any other request ends the connection."""
    talk.ask("ApiVersions", 0)
    talk.ask("Metadata", 1, topics=[])


def versions_with_a_wrong_name_first(talk: Talk) -> None:
    """A client that has to ask again."""
    talk.ask("ApiVersions", 3, client_software_name="-", client_software_version="")
    talk.ask("ApiVersions", 3, client_software_name="a", client_software_version="1")
    talk.plain("alice")
    talk.works()
    talk.ask("ApiVersions", 3, client_software_name="a", client_software_version="1")


def unknown_versions_before(talk: Talk) -> None:
    """Versions that the broker does not have."""
    names = b"\x02a\x021\0"
    header = (18).to_bytes(2, "big") + (99).to_bytes(2, "big") + (7).to_bytes(4, "big") + b"\0\1c\0"
    talk.raw(len(header + names).to_bytes(4, "big") + header + names)
    frame = talk._frame()
    talk._note("closed" if frame is None else {"error_code": int.from_bytes(frame[8:10], "big")})
    talk.ask("ApiVersions", 0)
    talk.plain("alice")
    talk.works()


def token_without_handshake(talk: Talk) -> None:
    """A token, but no mechanism."""
    talk.token(plain("alice"))
    talk.ends()


def two_handshakes(talk: Talk) -> None:
    """The second one instead of a token."""
    talk.handshake("PLAIN")
    talk.handshake("PLAIN")
    talk.ends()


def unknown_mechanism(talk: Talk) -> None:
    """One that the listener does not have."""
    talk.handshake("GSSAPI")
    talk.handshake("PLAIN")
    talk.ends()


def unknown_mechanism_v0(talk: Talk) -> None:
    """The same in the old version."""
    talk.handshake("nothing", 0)
    talk.ends()


def empty_mechanism(talk: Talk) -> None:
    """No name."""
    talk.handshake("")
    talk.ends()


def lower_case_mechanism(talk: Talk) -> None:
    """Names of mechanisms are upper case."""
    talk.handshake("plain")
    talk.ends()


def mechanism_of_another_listener(talk: Talk) -> None:
    """What one listener has, another need not have."""
    talk.open("PLAINONLY")
    talk.handshake("SCRAM-SHA-256")
    talk.ends()


def handshake_after_login(talk: Talk) -> None:
    """Sessions without an end are not renewed."""
    talk.plain("alice")
    talk.handshake("PLAIN")
    talk.works()
    talk.token(plain("alice"))
    talk.works()


def handshake_after_login_v0(talk: Talk) -> None:
    """The old version."""
    talk.plain("alice")
    talk.handshake("PLAIN", 0)
    talk.works()


def large_token(talk: Talk) -> None:
    """A token larger than a broker takes before the login."""
    talk.handshake("PLAIN")
    talk.token(b"\0alice\0" + b"x" * 600_000)


# PLAIN


def plain_v0(talk: Talk) -> None:
    """Version 0 of SaslAuthenticate."""
    talk.plain("alice", version=0)
    talk.works()


def plain_v1(talk: Talk) -> None:
    """Version 1."""
    talk.plain("carol", version=1)
    talk.works()


def plain_v2(talk: Talk) -> None:
    """Version 2."""
    talk.plain("alice")
    talk.works()


def plain_bare(talk: Talk) -> None:
    """Tokens without headers, after version 0 of SaslHandshake."""
    talk.handshake("PLAIN", 0)
    talk.bare(plain("alice"))
    talk.works()


def plain_bare_wrong(talk: Talk) -> None:
    """A wrong password without headers."""
    talk.handshake("PLAIN", 0)
    talk.bare(plain("alice", "wrong"))


def plain_authenticate_after_handshake_v0(talk: Talk) -> None:
    """A header where a bare token is expected."""
    talk.handshake("PLAIN", 0)
    talk.token(plain("alice"))


def plain_wrong_password(talk: Talk) -> None:
    """A wrong password."""
    talk.plain("alice", "wrong")
    talk.ends()


def plain_wrong_password_v0(talk: Talk) -> None:
    """A wrong password."""
    talk.plain("alice", "wrong", 0)
    talk.ends()


def plain_unknown_user(talk: Talk) -> None:
    """A user that nobody made."""
    talk.plain("nobody", "x")
    talk.ends()


def plain_same_identity(talk: Talk) -> None:
    """An authorization id that is the user."""
    talk.handshake("PLAIN")
    talk.token(plain("alice", authzid="alice"))
    talk.works()


def plain_other_identity(talk: Talk) -> None:
    """An authorization id that is somebody else."""
    talk.handshake("PLAIN")
    talk.token(plain("alice", authzid="bob"))
    talk.ends()


def _plain_token(talk: Talk, data: bytes) -> None:
    talk.handshake("PLAIN")
    talk.token(data)
    talk.ends()


def plain_no_user(talk: Talk) -> None:
    """An empty user name."""
    _plain_token(talk, b"\0\0x")


def plain_no_password(talk: Talk) -> None:
    """An empty password."""
    _plain_token(talk, b"\0alice\0")


def plain_two_parts(talk: Talk) -> None:
    """One zero byte."""
    _plain_token(talk, b"alice\0x")


def plain_four_parts(talk: Talk) -> None:
    """Three zero bytes."""
    _plain_token(talk, b"\0alice\0x\0y")


def plain_empty(talk: Talk) -> None:
    """An empty token."""
    _plain_token(talk, b"")


def plain_not_utf8(talk: Talk) -> None:
    """Bytes that are not UTF-8."""
    _plain_token(talk, b"\0al\xffice\0x")


# SCRAM


def _scram(talk: Talk, client: Scram, mechanism: str, version: int = 2) -> None:
    talk.handshake(mechanism)
    answer = talk.token(client.first(), version)
    if answer is not None and not answer.error_code:
        talk.token(client.step(bytes(answer.auth_bytes)) or b"", version)


def scram_256(talk: Talk) -> None:
    """SCRAM-SHA-256."""
    _scram(talk, scram("SCRAM-SHA-256", "alice"), "SCRAM-SHA-256")
    talk.works()


def scram_512(talk: Talk) -> None:
    """SCRAM-SHA-512, with a password beyond ASCII."""
    _scram(talk, scram("SCRAM-SHA-512", "bob"), "SCRAM-SHA-512", 0)
    talk.works()


def scram_wrong_password(talk: Talk) -> None:
    """A wrong password."""
    _scram(talk, scram("SCRAM-SHA-256", "alice", "wrong"), "SCRAM-SHA-256")
    talk.ends()


def scram_unknown_user(talk: Talk) -> None:
    """A user that nobody made."""
    _scram(talk, scram("SCRAM-SHA-512", "nobody", "x"), "SCRAM-SHA-512")
    talk.ends()


def scram_bare(talk: Talk) -> None:
    """Tokens without headers."""
    client = scram("SCRAM-SHA-256", "alice")
    talk.handshake("SCRAM-SHA-256", 0)
    answer = talk.bare(client.first())
    if answer is not None:
        talk.bare(client.step(answer) or b"")
        talk.works()


def scram_other_mechanism(talk: Talk) -> None:
    """A proof by the other hash."""
    _scram(talk, scram("SCRAM-SHA-512", "alice"), "SCRAM-SHA-256")
    talk.ends()


def _scram_first(talk: Talk, data: bytes) -> None:
    talk.handshake("SCRAM-SHA-256")
    answer = talk.token(data)
    if answer is None or answer.error_code:
        talk.ends()


def scram_malformed(talk: Talk) -> None:
    """No message of SCRAM."""
    _scram_first(talk, b"hello")


def scram_empty(talk: Talk) -> None:
    """An empty token."""
    _scram_first(talk, b"")


def scram_channel_binding(talk: Talk) -> None:
    """Channel binding, which Kafka has none of."""
    _scram_first(talk, b"p=tls-unique,,n=alice,r=abc")


def scram_channel_binding_possible(talk: Talk) -> None:
    """A client that could bind channels."""
    _scram_first(talk, b"y,,n=alice,r=abc")


def scram_other_identity(talk: Talk) -> None:
    """An authorization id."""
    _scram_first(talk, b"n,a=bob,n=alice,r=abc")


def scram_same_identity(talk: Talk) -> None:
    """An authorization id that is the user."""
    _scram_first(talk, b"n,a=alice,n=alice,r=abc")


def scram_extensions(talk: Talk) -> None:
    """Extensions of the first message."""
    _scram_first(talk, b"n,,n=alice,r=abc,x=y")


def scram_mandatory_extension(talk: Talk) -> None:
    """An extension that has to be understood."""
    _scram_first(talk, b"n,,m=x,n=alice,r=abc")


def scram_token(talk: Talk) -> None:
    """A delegation token that nobody made."""
    _scram_first(talk, b"n,,n=alice,r=abc,tokenauth=true")


def _scram_last(talk: Talk, changed: Callable[[bytes], bytes]) -> None:
    client = scram("SCRAM-SHA-256", "alice")
    talk.handshake("SCRAM-SHA-256")
    answer = talk.token(client.first())
    talk.token(changed(client.step(bytes(answer.auth_bytes)) or b""))
    talk.ends()


def scram_other_nonce(talk: Talk) -> None:
    """A nonce that was not given."""
    _scram_last(talk, lambda data: re.sub(rb"r=[^,]*", b"r=other", data))


def scram_other_binding(talk: Talk) -> None:
    """Another channel binding than the first message has."""
    _scram_last(talk, lambda data: data.replace(b"c=biws", b"c=eSws"))


def scram_no_proof(talk: Talk) -> None:
    """A last message without a proof."""
    _scram_last(talk, lambda data: data.partition(b",p=")[0])


def scram_short_proof(talk: Talk) -> None:
    """A proof of another length."""
    _scram_last(talk, lambda data: data.partition(b",p=")[0] + b",p=AAAA")


def scram_malformed_proof(talk: Talk) -> None:
    """A proof that is not base64."""
    _scram_last(talk, lambda data: data.partition(b",p=")[0] + b",p=%%%%")


def scram_nothing_last(talk: Talk) -> None:
    """An empty last message."""
    _scram_last(talk, lambda data: b"")


# OAUTHBEARER


def _bearer(talk: Talk, data: bytes, version: int = 2) -> None:
    talk.handshake("OAUTHBEARER")
    answer = talk.token(data, version)
    if answer is not None and not answer.error_code and answer.auth_bytes:
        talk.token(b"\x01", version)
        talk.ends()
    else:
        talk.works()


def bearer_accepted(talk: Talk) -> None:
    """A token that is valid for an hour; so long is the session."""
    talk.handshake("OAUTHBEARER")
    talk.ask("SaslAuthenticate", 2, pick=("error_code", "error_message", "auth_bytes"), auth_bytes=bearer(jws()))
    talk.works()


def bearer_extensions(talk: Talk) -> None:
    """Extensions that nobody checks."""
    talk.handshake("OAUTHBEARER")
    data = bearer(jws(), "traceId=123\x01")
    talk.ask("SaslAuthenticate", 2, pick=("error_code", "error_message", "auth_bytes"), auth_bytes=data)
    talk.works()


def bearer_expired(talk: Talk) -> None:
    """A token that was valid once."""
    _bearer(talk, bearer(jws(exp=1_600_000_000, iat=1_500_000_000)))


def bearer_of_the_future(talk: Talk) -> None:
    """A token that was made later than now."""
    _bearer(talk, bearer(jws(iat=4_000_000_000, exp=4_000_003_600)))


def bearer_without_subject(talk: Talk) -> None:
    """A token of nobody."""
    _bearer(talk, bearer(jws(sub=None)))


def bearer_without_end(talk: Talk) -> None:
    """A token without an end."""
    _bearer(talk, bearer(jws(exp=None)))


def bearer_without_issue_time(talk: Talk) -> None:
    """A token without its time of issue."""
    talk.handshake("OAUTHBEARER")
    data = bearer(jws(iat=None))
    talk.ask("SaslAuthenticate", 2, pick=("error_code", "error_message", "auth_bytes"), auth_bytes=data)


def bearer_signed(talk: Talk) -> None:
    """A token that says that it is signed."""
    _bearer(talk, bearer(jws(head={"alg": "RS256"}) + "c2lnbmF0dXJl"))


def bearer_with_signature(talk: Talk) -> None:
    """An unsecured token with a signature."""
    _bearer(talk, bearer(jws() + "c2lnbmF0dXJl"))


def bearer_no_jws(talk: Talk) -> None:
    """Not a token."""
    _bearer(talk, bearer("abc"))


def bearer_not_json(talk: Talk) -> None:
    """Parts that are not JSON."""
    _bearer(talk, bearer("YWJj.YWJj."))


def bearer_malformed(talk: Talk) -> None:
    """No message of OAUTHBEARER."""
    _bearer(talk, b"hello")


def bearer_empty(talk: Talk) -> None:
    """An empty message."""
    _bearer(talk, b"")


def bearer_without_token(talk: Talk) -> None:
    """Extensions only."""
    _bearer(talk, b"n,,\x01traceId=1\x01\x01")


def bearer_other_scheme(talk: Talk) -> None:
    """Another kind of credentials."""
    _bearer(talk, b"n,,\x01auth=Basic abc\x01\x01")


def bearer_other_identity(talk: Talk) -> None:
    """An authorization id that is somebody else."""
    _bearer(talk, bearer(jws()).replace(b"n,,", b"n,a=bob,"))


def bearer_same_identity(talk: Talk) -> None:
    """An authorization id that is the subject."""
    talk.handshake("OAUTHBEARER")
    data = bearer(jws()).replace(b"n,,", b"n,a=alice,")
    talk.ask("SaslAuthenticate", 2, pick=("error_code", "error_message", "auth_bytes"), auth_bytes=data)


def bearer_reserved_extension(talk: Talk) -> None:
    """An extension of a name that is not allowed."""
    _bearer(talk, bearer(jws(), "a1=2\x01"))


# Sessions that end


def session_lifetime(talk: Talk) -> None:
    """How long a session lasts, by version."""
    for version in (0, 1, 2):
        talk.open("BRIEF")
        talk.plain("alice", version=version)
        talk.works()


def session_lifetime_of_scram(talk: Talk) -> None:
    """With a mechanism of two steps."""
    talk.open("BRIEF")
    _scram(talk, scram("SCRAM-SHA-256", "alice"), "SCRAM-SHA-256")


def session_lifetime_of_bearer(talk: Talk) -> None:
    """A token that lasts longer than a session may."""
    talk.open("BRIEF")
    _bearer(talk, bearer(jws()))


def session_that_ended(talk: Talk) -> None:
    """A request after the end closes the connection."""
    talk.open("BRIEF")
    talk.plain("alice")
    talk.waits(2.5)
    talk.works()


def session_that_cannot_be_renewed(talk: Talk) -> None:
    """Clients that know nothing of the end are cut off, too."""
    talk.open("BRIEF")
    talk.plain("alice", version=0)
    talk.waits(2.5)
    talk.works()


def session_renewed(talk: Talk) -> None:
    """Before and after its end."""
    talk.open("BRIEF")
    talk.plain("alice")
    talk.waits(1.2)
    talk.plain("alice")
    talk.waits(1.2)
    talk.works()
    talk.waits(1.2)
    talk.plain("alice")
    talk.works()


def session_renewed_too_soon(talk: Talk) -> None:
    """Within a second of the login."""
    talk.open("BRIEF")
    talk.plain("alice")
    talk.plain("alice")
    talk.works()


def session_of_another_user(talk: Talk) -> None:
    """A connection keeps its user."""
    talk.open("BRIEF")
    talk.plain("alice")
    talk.waits(1.2)
    talk.plain("carol")
    talk.ends()


def session_by_another_mechanism(talk: Talk) -> None:
    """A connection keeps its mechanism."""
    talk.open("BRIEF")
    talk.plain("alice")
    talk.waits(1.2)
    _scram(talk, scram("SCRAM-SHA-256", "alice"), "SCRAM-SHA-256")
    talk.works()


def session_renewed_twice_at_once(talk: Talk) -> None:
    """A second renewal within a second of the first."""
    talk.open("BRIEF")
    talk.plain("alice")
    talk.plain("alice")
    talk.plain("alice")
    talk.works()


def session_renewed_by_scram(talk: Talk) -> None:
    """With another user's name and a wrong password, when the session was begun by SCRAM."""
    talk.open("BRIEF")
    _scram(talk, scram("SCRAM-SHA-256", "alice"), "SCRAM-SHA-256")
    talk.waits(1.2)
    _scram(talk, scram("SCRAM-SHA-256", "alice"), "SCRAM-SHA-256")
    talk.works()
    talk.waits(1.2)
    _scram(talk, scram("SCRAM-SHA-256", "alice", "wrong"), "SCRAM-SHA-256")
    talk.ends()


def session_of_another_user_by_scram(talk: Talk) -> None:
    """A connection keeps its user, whose name SCRAM has in its first message."""
    talk.open("BRIEF")
    _scram(talk, scram("SCRAM-SHA-256", "alice"), "SCRAM-SHA-256")
    talk.waits(1.2)
    _scram(talk, scram("SCRAM-SHA-256", "bob"), "SCRAM-SHA-256")
    talk.ends()


def session_as_long_as_the_token(talk: Talk) -> None:
    """A listener whose sessions have no end, and a token that has one."""
    talk.handshake("OAUTHBEARER")
    talk.token(bearer(jws(exp=talk.now() + 60.9)))
    talk.works()
    talk.handshake("OAUTHBEARER")
    talk.token(bearer(jws(exp=talk.now() + 60.9)), 0)
    talk.works()


def session_ends_with_the_token(talk: Talk) -> None:
    """The end comes when the token's does, if that is before that of the listener."""
    talk.open("BRIEF")
    talk.handshake("OAUTHBEARER")
    talk.token(bearer(jws(exp=talk.now() + 0.9)))
    talk.waits(1.2)
    talk.works()


def session_renewed_wrongly(talk: Talk) -> None:
    """A wrong password the second time."""
    talk.open("BRIEF")
    talk.plain("alice")
    talk.waits(1.2)
    talk.plain("alice", "wrong")
    talk.ends()


def session_renewal_interrupted(talk: Talk) -> None:
    """Another request between handshake and token."""
    talk.open("BRIEF")
    talk.plain("alice")
    talk.waits(1.2)
    talk.handshake("PLAIN")
    talk.works()


def session_renewal_without_handshake(talk: Talk) -> None:
    """A token that nothing announced."""
    talk.open("BRIEF")
    talk.plain("alice")
    talk.waits(1.2)
    talk.token(plain("alice"))
    talk.works()


def session_renewed_by_v0(talk: Talk) -> None:
    """The old handshake."""
    talk.open("BRIEF")
    talk.plain("alice")
    talk.waits(1.2)
    talk.handshake("PLAIN", 0)
    talk.works()


# Users that are altered and tokens that end while their clients are connected


def _user(talk: Talk, name: str, password: str | None) -> None:
    """Give a user of SCRAM-SHA-256 a password, or take the user away."""
    if password is None:
        talk.beside("AlterUserScramCredentials", 0, deletions=[{"name": name, "mechanism": 1}])
        return
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), b"salt", 4096)
    row = {"name": name, "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": salted}
    talk.beside("AlterUserScramCredentials", 0, upsertions=[row])


def _as(talk: Talk, user: str, password: str, *, by_token: bool = False) -> None:
    _scram(talk, scram("SCRAM-SHA-256", user, password, by_token=by_token), "SCRAM-SHA-256")


def user_altered_while_connected(talk: Talk) -> None:
    """Who is logged in stays so; the next login needs the new password."""
    _user(talk, "dave", "old")
    _as(talk, "dave", "old")
    _user(talk, "dave", "new")
    talk.works()
    talk.open("SASL")
    _as(talk, "dave", "old")
    talk.ends()
    talk.open("SASL")
    _as(talk, "dave", "new")
    talk.works()


def user_removed_while_connected(talk: Talk) -> None:
    """Who is logged in stays so, if the session has no end."""
    _user(talk, "erin", "old")
    _as(talk, "erin", "old")
    _user(talk, "erin", None)
    talk.works()
    talk.open("SASL")
    _as(talk, "erin", "old")
    talk.ends()


def session_of_a_user_altered(talk: Talk) -> None:
    """It is renewed with the new password only."""
    talk.open("BRIEF")
    _user(talk, "frank", "old")
    _as(talk, "frank", "old")
    _user(talk, "frank", "new")
    talk.waits(0.7)
    _as(talk, "frank", "new")
    talk.works()
    talk.waits(1.2)
    _as(talk, "frank", "old")
    talk.ends()


def session_of_a_user_removed(talk: Talk) -> None:
    """It is not renewed."""
    talk.open("BRIEF")
    _user(talk, "grace", "old")
    _as(talk, "grace", "old")
    _user(talk, "grace", None)
    talk.waits(0.7)
    _as(talk, "grace", "old")
    talk.ends()


def _made(talk: Talk, lifetime: int = -1) -> Any:
    """A new delegation token of carol."""
    return talk.beside("CreateDelegationToken", 2, renewers=[], max_lifetime_ms=lifetime)


def _by_token(talk: Talk, token: Any) -> None:
    _as(talk, token.token_id, base64.b64encode(token.hmac).decode(), by_token=True)


def session_of_a_token(talk: Talk) -> None:
    """It ends with the token, also where other sessions have no end."""
    token = _made(talk, 8000)
    _by_token(talk, token)
    talk.works()
    talk.waits(8)
    talk.works()


def session_of_a_token_where_sessions_end(talk: Talk) -> None:
    """The earlier end counts."""
    talk.open("BRIEF")
    token = _made(talk, 60_000)
    _by_token(talk, token)
    talk.waits(1.2)
    _by_token(talk, token)
    talk.works()
    talk.waits(2.5)
    talk.works()


def session_of_a_token_taken_away(talk: Talk) -> None:
    """It goes on to the end that the token had at the login."""
    token = _made(talk, 8000)
    _by_token(talk, token)
    talk.beside("ExpireDelegationToken", 2, hmac=token.hmac, expiry_time_period_ms=-1)
    talk.works()
    talk.waits(8)
    talk.works()


def session_of_a_token_renewed(talk: Talk) -> None:
    """A token that lasts longer now does not make the session longer, before the client logs in again."""
    token = _made(talk, 60_000)
    talk.beside("ExpireDelegationToken", 2, hmac=token.hmac, expiry_time_period_ms=10_000)
    _by_token(talk, token)
    talk.beside("RenewDelegationToken", 2, hmac=token.hmac, renew_period_ms=30_000)
    talk.waits(1.2)
    _by_token(talk, token)
    talk.waits(9)
    talk.works()


def session_of_a_token_not_used_again(talk: Talk) -> None:
    """The same without a second login."""
    token = _made(talk, 60_000)
    talk.beside("ExpireDelegationToken", 2, hmac=token.hmac, expiry_time_period_ms=8000)
    _by_token(talk, token)
    talk.beside("RenewDelegationToken", 2, hmac=token.hmac, renew_period_ms=30_000)
    talk.waits(8)
    talk.works()


def session_of_a_token_then_of_its_owner(talk: Talk) -> None:
    """The user is the same, but the client no longer comes by a token."""
    talk.open("BRIEF")
    _user(talk, "carol", "of carol")
    token = _made(talk, 60_000)
    _by_token(talk, token)
    talk.ask("DescribeDelegationToken", 2, pick=("error_code",), owners=[])
    talk.waits(1.2)
    _as(talk, "carol", "of carol")
    talk.ask("DescribeDelegationToken", 2, pick=("error_code",), owners=[])
    talk.waits(1.2)
    _by_token(talk, token)
    talk.ask("DescribeDelegationToken", 2, pick=("error_code",), owners=[])


SCENARIOS = {
    name: found
    for name, found in list(globals().items())
    if inspect.isfunction(found) and list(inspect.signature(found).parameters) == ["talk"]
}


def run(
    name: str, listeners: dict[str, str], waits: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.time,
) -> list[Any]:  # fmt: skip
    """What a scenario notes."""
    talk = Talk(listeners, waits, now)
    try:
        SCENARIOS[name](talk)
    finally:
        talk.close()
    return json.loads(json.dumps(talk.noted, default=str))


def main(arguments: list[str]) -> None:
    """Write the golden file, or some scenarios of it, if the first argument names them.

    The other arguments are ``NAME=HOST:PORT`` for each listener of a broker with the users of `PASSWORDS`.
    """
    only = arguments[0].split(",") if "=" not in arguments[0] else list(SCENARIOS)
    listeners = dict(argument.split("=") for argument in arguments if "=" in argument)
    found = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    found = {name: found.get(name) for name in SCENARIOS} | {name: run(name, listeners) for name in only}
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
