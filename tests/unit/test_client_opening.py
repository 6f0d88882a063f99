"""How a client's connection begins, against a broker's side that the test drives message by message."""

import random

import pytest

from kafkacodec import messages
from kafkacodec.client.core.old_brokers import BASELINES, baseline_of
from kafkacodec.client.core.opening import FIRST_WAY, Opening, Way, renewal_time
from kafkacodec.client.options import ClientSettings
from kafkacodec.errors import AuthenticationFailed, ConnectionFailed, RemoteProtocolError, UnsupportedVersion
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


class Opened(Opening):
    """An opening whose time is 0."""

    def __init__(self, exchange=None, way=FIRST_WAY, fallback=None):
        settings = ClientSettings(bootstrap_servers="x", client_id="me", broker_version_fallback=fallback)
        super().__init__(settings, "broker x:9092", exchange, way)

    def start(self, now=0.0):
        return super().start(now)

    def receive(self, frame, now=0.0):
        return super().receive(frame, now)


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
    opening, broker = Opened(), Broker(k1=range(4, 12), k0=range(0, 100))
    assert opening.receive(broker.answer(opening.start())) == b""
    assert opening.ready
    assert opening.versions[1] == range(4, 12)
    assert opening.versions[0] == supported_ranges()[0]
    assert opening.way == FIRST_WAY


def test_a_lower_version_of_api_versions_is_used_if_the_broker_asks_for_it():
    opening, broker = Opened(), Broker(k18=range(0, 3))
    again = opening.receive(broker.answer(opening.start()))
    assert opening.receive(broker.answer(again)) == b""
    assert opening.ready
    assert [version for _, version, _ in broker.requests] == [supported_ranges()[18][-1], 2]


def test_a_broker_that_refuses_every_version_is_refused():
    opening = Opened()
    opening.start()
    refusal = messages.ApiVersionsResponse(error_code=35)  # it names no version: 0 is asked for next
    opening.receive(encode_response(refusal, 0, 0))
    with pytest.raises(RemoteProtocolError, match=r"refused the ApiVersions request: UNSUPPORTED_VERSION"):
        opening.receive(encode_response(refusal, 0, 1))


def test_sasl_with_tokens_in_requests():
    exchange = Tokens([b"second", None])
    opening, broker = Opened(exchange), Broker()
    data = opening.receive(broker.answer(opening.start()))
    data = opening.receive(broker.answer(data, handshake(0, "PLAIN")))
    data = opening.receive(broker.answer(data, authenticated(auth_bytes=b"one")))
    assert opening.receive(broker.answer(data, authenticated(auth_bytes=b"two", session_lifetime_ms=5000))) == b""
    assert opening.ready
    assert 4250 <= opening.renew_at <= 4750
    assert exchange.challenges == [b"one", b"two"]
    names = [name for name, _, _ in broker.requests]
    assert names == ["ApiVersionsRequest", "SaslHandshakeRequest", *["SaslAuthenticateRequest"] * 2]
    assert [bytes(message.auth_bytes) for _, _, message in broker.requests[2:]] == [b"first", b"second"]


def test_sasl_with_tokens_without_headers():
    exchange = Tokens([b"second", None])
    opening, broker = Opened(exchange), Broker(k17=range(1), k36=range(0))
    data = opening.receive(broker.answer(opening.start()))
    assert opening.receive(broker.answer(data, handshake(0, "PLAIN"))) == b"\0\0\0\5first"
    assert opening.receive(b"\0\0\0\3one") == b"\0\0\0\6second"
    assert (opening.receive(b"\0\0\0\0"), opening.ready) == (b"", True)
    assert exchange.challenges == [b"one", b""]


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (handshake(33, "GSSAPI", "PLAIN"), "does not accept the SASL mechanism SCRAM-SHA-256; it has GSSAPI, PLAIN"),
        (handshake(34), "listener does not use SASL"),
    ],
)
def test_a_refused_handshake(response, reason):
    opening, broker = Opened(Tokens(mechanism="SCRAM-SHA-256")), Broker()
    data = opening.receive(broker.answer(opening.start()))
    with pytest.raises(AuthenticationFailed, match=reason):
        opening.receive(broker.answer(data, response))


def test_refused_credentials():
    opening, broker = Opened(Tokens()), Broker()
    data = opening.receive(broker.answer(opening.start()))
    data = opening.receive(broker.answer(data, handshake()))
    refusal = authenticated(error_code=58, error_message="Invalid username or password")
    with pytest.raises(AuthenticationFailed, match=r"PLAIN: Invalid username or password \(SASL_AUTHENTICATION_FAILED"):
        opening.receive(broker.answer(data, refusal))


def test_credentials_refused_by_closing():
    opening, broker = Opened(Tokens()), Broker(k17=range(1), k36=range(0))
    data = opening.receive(broker.answer(opening.start()))
    opening.receive(broker.answer(data, handshake()))
    error = opening.lost()
    assert isinstance(error, AuthenticationFailed)
    assert "closed the connection during the authentication by PLAIN" in str(error)
    assert opening.next_way is None


def next_way(opening):
    assert type(opening.lost()) is ConnectionFailed
    return opening.next_way


def old_broker(release, way=FIRST_WAY, exchange=None, fallback=None):
    """Open connections to a broker that closes them at APIs that its release has not; the opening, the requests."""
    seen = []
    while True:
        opening, broker = Opened(exchange, way, fallback), Broker()
        seen.append([])
        data = opening.start()
        while not opening.ready:
            (event,) = broker.connection.receive(data)
            seen[-1].append(event.api_key)
            if event.api_key not in BASELINES[release]:
                way = next_way(opening)
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


def both(broker, opening):
    """A broker's events for ApiVersions and the request that follows it after silence."""
    return [*broker.connection.receive(opening.start()), *broker.connection.receive(opening.silent())]


def test_a_broker_that_ignores_api_versions():
    opening, broker = Opened(), Broker()
    _, listing = both(broker, opening)
    assert listing.api_key == 16
    frame = encode_response(messages.ListGroupsResponse(), 0, listing.correlation_id)
    assert (opening.receive(frame), opening.ready) == (b"", True)
    assert opening.way == Way("0.9.0", certain=True)
    assert opening.versions == BASELINES["0.9.0"]
    assert opening.connection.pending == 0


@pytest.mark.parametrize("highest", [2, supported_ranges()[18][-1]])
def test_a_slow_broker_is_not_taken_for_an_old_one(highest):
    opening, broker = Opened(), Broker(k18=range(0, highest + 1))
    versions, listing = both(broker, opening)
    send = broker.connection.send_response
    again = opening.receive(send(versions.correlation_id, broker.connection.api_versions(versions)))
    assert bool(again) == (highest == 2)
    if again:  # the broker has both before it answers
        (lower,) = broker.connection.receive(again)
    opening.receive(send(listing.correlation_id, messages.ListGroupsResponse()))
    if again:
        opening.receive(send(lower.correlation_id, broker.connection.api_versions(lower)))
    assert opening.ready
    assert opening.way == FIRST_WAY
    assert opening.connection.pending == 0


def test_silence_changes_nothing_after_an_answer_or_with_sasl():
    opening, broker = Opened(Tokens()), Broker()
    data = opening.start()
    assert opening.silent() == b""
    opening.receive(broker.answer(data))
    assert opening.silent() == b""


def test_the_fallback_names_the_release():
    opening, seen = old_broker("0.8.0", fallback="0.8.0")
    assert seen == [[18], []]
    assert opening.versions == BASELINES["0.8.0"]


def test_a_newer_broker_that_closed_the_first_connection_keeps_its_versions():
    first = Opened()
    first.start()
    opening, broker = Opened(way=next_way(first)), Broker()
    data = opening.receive(broker.answer(opening.start(), messages.ListGroupsResponse()))
    assert opening.receive(broker.answer(data)) == b""
    assert opening.ready
    assert opening.way == FIRST_WAY
    assert opening.versions == supported_ranges()


def test_a_broker_that_closes_every_connection_has_failed():
    way = FIRST_WAY
    for _ in range(3):
        opening = Opened(way=way)
        opening.start()
        way = next_way(opening)
    opening = Opened(way=way)
    opening.start()
    assert "without an answer: it is shutting down, or its listener uses another" in str(opening.lost())
    assert opening.next_way is None


def test_kerberos_before_everything_on_brokers_without_api_versions():
    first = Opened(exchange=Tokens(mechanism="GSSAPI"))
    first.start()
    way = next_way(first)
    assert way == Way("0.9.0")
    opening = Opened(exchange=Tokens(mechanism="GSSAPI"), way=way)
    assert opening.start() == b"\0\0\0\5first"
    probe = opening.receive(b"\0\0\0\1x")
    broker = Broker()
    versions = opening.receive(broker.answer(probe, messages.ListGroupsResponse()))
    (ignored,) = broker.connection.receive(versions)
    (listing,) = broker.connection.receive(opening.silent())
    assert (ignored.api_key, listing.api_key) == (18, 16)
    opening.receive(encode_response(messages.ListGroupsResponse(), 0, listing.correlation_id))
    assert opening.ready
    assert opening.way == Way("0.9.0", certain=True)
    plain = Opened(exchange=Tokens())
    plain.start()
    assert next_way(plain) is None  # 0.9 has GSSAPI only


def test_a_broker_without_a_common_api():
    opening = Opened()
    data = opening.start()
    broker = Broker()
    (event,) = broker.connection.receive(data)
    answer = broker.connection.send_response(event.correlation_id, messages.ApiVersionsResponse())
    with pytest.raises(UnsupportedVersion, match="broker x:9092 has no API in common"):
        opening.receive(answer)


def test_sessions_are_renewed_before_they_end():
    times = [renewal_time(1000.0, 10_000, random.Random(seed)) or 0 for seed in range(100)]
    assert 9500 <= min(times) < 9600
    assert 10400 < max(times) <= 10500
    assert renewal_time(1000.0, 0) is None


@pytest.mark.parametrize(
    ("text", "release"), [("0.9.0", "0.9.0"), ("0.9.0.1", "0.9.0"), ("0.8.2.2", "0.8.2"), ("0.9", "0.9.0")]
)
def test_names_of_releases(text, release):
    assert baseline_of(text) == release


@pytest.mark.parametrize("text", ["0.10.0", "0.7.2", "1.0", "0.9.x", "", "9"])
def test_other_names_of_releases(text):
    with pytest.raises(ValueError, match="one of 0"):
        baseline_of(text)
