"""How a client's connection begins, against a broker's side that the test drives message by message."""

import random

import pytest

from kafkacodec import messages
from kafkacodec.client.core.old_brokers import BASELINES, baseline_of
from kafkacodec.client.core.opening import FIRST_WAY, Opening, Way, reauthenticate_at
from kafkacodec.errors import AuthenticationFailed, ConnectionFailed, LocalProtocolError, RemoteProtocolError
from kafkacodec.protocol import Connection, encode_response
from kafkacodec.protocol.versions import supported_ranges


class Tokens:
    """A mechanism of one token; `complete_at` is the number of the token after which the broker answers nothing."""

    mechanism = "PLAIN"
    complete = False

    def __init__(self, answers=(None,), mechanism="PLAIN"):
        self.mechanism, self.answers, self.challenges = mechanism, list(answers), []

    def first(self):
        return b"first"

    def step(self, challenge):
        self.challenges.append(challenge)
        return self.answers.pop(0)


class Broker:
    """Answers requests; keeps them."""

    def __init__(self, **versions):
        ranges = {**supported_ranges(), **{int(key[1:]): value for key, value in versions.items()}}
        self.connection = Connection("broker", versions={key: value for key, value in ranges.items() if value})
        self.requests = []

    def answer(self, data, *responses):
        """What it sends for the received bytes; the versions where no response is given."""
        (event,) = self.connection.receive(data)
        self.requests.append((type(event.message).__name__, event.version, event.message))
        response = responses[0] if responses else self.connection.api_versions(event)
        return self.connection.send_response(event.correlation_id, response)


def handshake(code=0, *mechanisms):
    return messages.SaslHandshakeResponse(error_code=code, mechanisms=list(mechanisms))


def authenticated(**fields):
    return messages.SaslAuthenticateResponse(**fields)


def test_versions_are_agreed_on():
    opening, broker = Opening("me"), Broker(k1=range(4, 12), k0=range(0, 100))
    assert opening.receive(broker.answer(opening.start())) == b""
    assert opening.ready
    assert opening.versions[1] == range(4, 12)
    assert opening.versions[0] == supported_ranges()[0]
    assert opening.way == FIRST_WAY
    with pytest.raises(LocalProtocolError, match="open already"):
        opening.receive(b"more")


def test_a_lower_version_of_api_versions_is_used_if_the_broker_asks_for_it():
    opening, broker = Opening(), Broker(k18=range(0, 3))
    again = opening.receive(broker.answer(opening.start()))
    assert opening.receive(broker.answer(again)) == b""
    assert opening.ready
    assert [version for _, version, _ in broker.requests] == [supported_ranges()[18][-1], 2]


def test_a_broker_that_refuses_every_version_is_refused():
    opening = Opening()
    opening.start()
    refusal = messages.ApiVersionsResponse(error_code=35)  # it names no version: 0 is asked for next
    opening.receive(encode_response(refusal, 0, 0))
    with pytest.raises(RemoteProtocolError, match=r"refused the ApiVersions request: UNSUPPORTED_VERSION"):
        opening.receive(encode_response(refusal, 0, 1))


def test_sasl_with_tokens_in_requests():
    exchange = Tokens([b"second", None])
    opening, broker = Opening("me", exchange), Broker()
    data = opening.receive(broker.answer(opening.start()))
    data = opening.receive(broker.answer(data, handshake(0, "PLAIN")))
    data = opening.receive(broker.answer(data, authenticated(auth_bytes=b"one")))
    assert opening.receive(broker.answer(data, authenticated(auth_bytes=b"two", session_lifetime_ms=5000))) == b""
    assert opening.ready
    assert opening.session_lifetime_ms == 5000
    assert exchange.challenges == [b"one", b"two"]
    names = [name for name, _, _ in broker.requests]
    assert names == ["ApiVersionsRequest", "SaslHandshakeRequest", *["SaslAuthenticateRequest"] * 2]
    assert [bytes(message.auth_bytes) for _, _, message in broker.requests[2:]] == [b"first", b"second"]


def test_sasl_with_tokens_without_headers():
    exchange = Tokens([b"second", None])
    opening, broker = Opening("me", exchange), Broker(k17=range(1), k36=range(0))
    data = opening.receive(broker.answer(opening.start()))
    assert opening.receive(broker.answer(data, handshake(0, "PLAIN"))) == b"\0\0\0\5first"
    assert opening.receive(b"\0\0") == b""
    assert opening.receive(b"\0\3one") == b"\0\0\0\6second"
    assert (opening.receive(b"\0\0\0\0"), opening.ready) == (b"", True)
    assert exchange.challenges == [b"one", b""]


@pytest.mark.parametrize(
    ("received", "reason"),
    [
        (b"\xff\xff\xff\xff", "negative frame size"),
        (b"\x7f\0\0\0", "exceeds the limit"),
        (b"\0\0\0\1ab", "unexpected 1 bytes after a SASL token"),
    ],
)
def test_broken_tokens(received, reason):
    opening, broker = Opening("me", Tokens([None, None])), Broker(k17=range(1), k36=range(0))
    data = opening.receive(broker.answer(opening.start()))
    opening.receive(broker.answer(data, handshake()))
    with pytest.raises(RemoteProtocolError, match=reason):
        opening.receive(received)


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (handshake(33, "GSSAPI", "PLAIN"), "does not accept the SASL mechanism SCRAM-SHA-256; it has GSSAPI, PLAIN"),
        (handshake(34), "listener does not use SASL"),
    ],
)
def test_a_refused_handshake(response, reason):
    opening, broker = Opening("me", Tokens(mechanism="SCRAM-SHA-256")), Broker()
    data = opening.receive(broker.answer(opening.start()))
    with pytest.raises(AuthenticationFailed, match=reason):
        opening.receive(broker.answer(data, response))


def test_refused_credentials():
    opening, broker = Opening("me", Tokens()), Broker()
    data = opening.receive(broker.answer(opening.start()))
    data = opening.receive(broker.answer(data, handshake()))
    refusal = authenticated(error_code=58, error_message="Invalid username or password")
    with pytest.raises(AuthenticationFailed, match=r"PLAIN: Invalid username or password \(SASL_AUTHENTICATION_FAILED"):
        opening.receive(broker.answer(data, refusal))


def test_credentials_refused_by_closing():
    opening, broker = Opening("me", Tokens()), Broker(k17=range(1), k36=range(0))
    data = opening.receive(broker.answer(opening.start()))
    opening.receive(broker.answer(data, handshake()))
    with pytest.raises(AuthenticationFailed, match="closed the connection during the authentication by PLAIN"):
        opening.closed_by_peer()


def old_broker(release, way=FIRST_WAY, exchange=None, fallback=None):
    """Open connections to a broker that closes them at APIs that its release has not; the opening, the requests."""
    seen = []
    while True:
        opening, broker = Opening("me", exchange, way, fallback=fallback), Broker()
        seen.append([])
        data = opening.start()
        while not opening.ready:
            (event,) = broker.connection.receive(data)
            seen[-1].append(event.api_key)
            if event.api_key not in BASELINES[release]:
                way = opening.closed_by_peer()
                break
            response = messages.by_key(event.api_key)[1]()
            data = opening.receive(broker.connection.send_response(event.correlation_id, response))
        else:
            return opening, seen


@pytest.mark.parametrize(
    ("release", "requests"),
    [
        ("0.9.0", [[18], [16, 18], []]),
        ("0.8.2", [[18], [16], [10, 18], []]),
        ("0.8.1", [[18], [16], [10], [9, 18], []]),
    ],
)
def test_brokers_without_api_versions_are_found_out(release, requests):
    opening, seen = old_broker(release)
    assert seen == requests
    assert opening.way == Way(release, certain=True)
    assert opening.versions == BASELINES[release]
    _, seen = old_broker(release, opening.way)
    assert seen == [[]]  # known from now on


def test_the_fallback_names_the_release():
    opening, seen = old_broker("0.8.0", fallback="0.8.0")
    assert seen == [[18], []]
    assert opening.versions == BASELINES["0.8.0"]


def test_a_newer_broker_that_closed_the_first_connection_keeps_its_versions():
    first = Opening()
    first.start()
    opening, broker = Opening(way=first.closed_by_peer()), Broker()
    data = opening.receive(broker.answer(opening.start(), messages.ListGroupsResponse()))
    assert opening.receive(broker.answer(data)) == b""
    assert opening.ready
    assert opening.way == FIRST_WAY
    assert opening.versions == supported_ranges()


def test_a_broker_that_closes_every_connection_has_failed():
    way = FIRST_WAY
    for _ in range(3):
        opening = Opening(way=way)
        opening.start()
        way = opening.closed_by_peer()
    opening = Opening(way=way)
    opening.start()
    with pytest.raises(ConnectionFailed, match="without an answer: it is shutting down, or its listener uses another"):
        opening.closed_by_peer()


def test_kerberos_before_everything_on_brokers_without_api_versions():
    first = Opening(exchange=Tokens(mechanism="GSSAPI"))
    first.start()
    way = first.closed_by_peer()
    assert way == Way("0.9.0")
    opening = Opening(exchange=Tokens(mechanism="GSSAPI"), way=way)
    assert opening.start() == b"\0\0\0\5first"
    probe = opening.receive(b"\0\0\0\1x")
    broker = Broker()
    opening.receive(broker.answer(probe, messages.ListGroupsResponse()))
    assert opening.closed_by_peer() == Way("0.9.0", certain=True)
    plain = Opening(exchange=Tokens())
    plain.start()
    with pytest.raises(ConnectionFailed):  # 0.9 has GSSAPI only
        plain.closed_by_peer()


def receive_in_steps(opening, received, step):
    for at in range(0, len(received), step):
        opening.receive(received[at : at + step])


@pytest.mark.parametrize(
    ("received", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "speaks HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x50", "uses TLS: set security_protocol to 'SSL' or 'SASL_SSL'"),
        (b"\x16\x03\x01", "uses TLS"),
        (b"SSH-2.0-OpenSSH\r\n", "speaks SSH"),
        (b"\xff\xff\xff\xff", "negative frame size"),
        (b"\x10\0\0\0", "exceeds the limit"),
        (b"\0\0\0\5\0\0\0\7\0", "unexpected correlation id 7"),
        (b"\0\0\0\1\0", "byte"),
    ],
)
@pytest.mark.parametrize("step", [1, 100])
def test_peers_that_are_no_brokers(received, reason, step):
    opening = Opening()
    opening.start()
    with pytest.raises(RemoteProtocolError, match=reason):
        receive_in_steps(opening, received, step)


def test_sessions_are_renewed_before_they_end():
    times = [reauthenticate_at(1000.0, 10_000, random.Random(seed)) or 0 for seed in range(100)]
    assert 9500 <= min(times) < 9600
    assert 10400 < max(times) <= 10500
    assert reauthenticate_at(1000.0, 0) is None


@pytest.mark.parametrize(
    ("text", "release"), [("0.9.0", "0.9.0"), ("0.9.0.1", "0.9.0"), ("0.8.2.2", "0.8.2"), ("0.9", "0.9.0")]
)
def test_names_of_releases(text, release):
    assert baseline_of(text) == release


@pytest.mark.parametrize("text", ["0.10.0", "0.7.2", "1.0", "0.9.x", "", "9"])
def test_other_names_of_releases(text):
    with pytest.raises(ValueError, match="one of 0"):
        baseline_of(text)
