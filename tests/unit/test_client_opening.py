"""How a client's connection begins, against a broker's side that the test drives message by message."""

import random

import pytest

from kafkacodec import messages
from kafkacodec.client.core.old_brokers import baseline_of
from kafkacodec.client.core.opening import FIRST_WAY, Opening, Way, renewal_time
from kafkacodec.client.options import ClientSettings
from kafkacodec.errors import AuthenticationFailed, ConnectionFailed, RemoteProtocolError, UnsupportedVersion
from kafkacodec.protocol import Connection, encode_response
from kafkacodec.protocol.releases import BASELINES
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
    assert opening.way == Way(certain=True)


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


KNOWN = {"0.8.1": [0, 1, 2, 3, 8, 9], "0.8.2": [0, 1, 2, 3, 8, 9, 10], "0.9.0": [*range(4), *range(8, 17)]}
"""The requests that releases know. 0.8 and 0.9 do not check versions, as seen with 0.8.2.2 and 0.9.0.1."""


def old_broker(release, way=FIRST_WAY, exchange=None, fallback=None):
    """Open connections to a broker that does not check versions: 0.8 closes the connection at requests that it does not
    know, 0.9 ignores them. The opening, and the requests of each connection."""
    seen = []
    while True:
        opening = Opened(exchange, way, fallback)
        seen.append([])
        data = opening.start()
        while not opening.ready:
            key, correlation_id = request_in(data)
            seen[-1].append(key)
            if key in KNOWN[release]:
                response = messages.by_key(key)[1]()
                data = opening.receive(encode_response(response, 0, correlation_id))
            elif release == "0.9.0":
                data = opening.silent()
            else:
                way = next_way(opening)
                break
        else:
            return opening, seen


def request_in(data):
    """API key and correlation id."""
    return int.from_bytes(data[4:6], "big"), int.from_bytes(data[8:12], "big")


@pytest.mark.parametrize(
    ("release", "requests"),
    [("0.9.0", [[18, 16, 2]]), ("0.8.2", [[18], [18], [10]]), ("0.8.1", [[18], [18], [10], [9]])],
)
def test_brokers_without_api_versions_are_found_out(release, requests):
    opening, seen = old_broker(release)
    assert seen == requests
    assert opening.way == Way(release, certain=True)
    assert opening.versions == BASELINES[release]
    assert opening.connection.pending == 0
    _, seen = old_broker(release, opening.way)
    assert seen == [[]]  # known from now on


@pytest.mark.parametrize("release", KNOWN)
def test_an_old_broker_is_asked_again_after_its_connection_has_ended_and_never_taken_for_an_older_one(release):
    opening, seen = old_broker(release)
    again, seen_again = old_broker(release, opening.way.again())
    assert (seen_again, again.versions) == (seen, opening.versions)
    way = opening.way.again()
    while way is not None:
        assert way.release in (None, "0.10.0") or way.release >= release
        closed = Opened(way=way)
        closed.start()
        way = next_way(closed)


def both(broker, opening):
    """A broker's events for ApiVersions and the request that follows it after silence."""
    return [*broker.connection.receive(opening.start()), *broker.connection.receive(opening.silent())]


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
    assert opening.way == Way(certain=True)
    assert opening.connection.pending == 0


def test_silence_changes_nothing_after_an_answer_or_with_sasl():
    opening, broker = Opened(Tokens()), Broker()
    data = opening.start()
    assert opening.silent() == b""
    opening.receive(broker.answer(data))
    assert opening.silent() == b""


def test_the_fallback_names_the_release():
    opening, seen = old_broker("0.8.2", fallback="0.8.1")
    assert seen == [[18], [18], [2]]
    assert opening.versions == BASELINES["0.8.1"]


class NewBroker:
    """A broker that checks versions, as all since 0.10; `deaf` are requests whose answers are lost."""

    def __init__(self, deaf=()):
        self.broker, self.deaf = Broker(), deaf

    def open(self, opening):
        """Answer what the opening sends until the broker closes the connection, which returns False, or it is ready."""
        data = opening.start()
        while not opening.ready:
            key, _ = request_in(data)
            if int.from_bytes(data[6:8], "big") not in supported_ranges()[key]:
                return False
            answer = self.broker.answer(data, *([messages.ListGroupsResponse()] if key == 16 else []))
            data = opening.silent() if key in self.deaf else opening.receive(answer)
        return True


@pytest.mark.parametrize("fallback", [None, "0.8.2", "0.9"])
@pytest.mark.parametrize("closed", range(6))
def test_a_new_broker_that_closes_connections_is_never_taken_for_an_old_one(closed, fallback):
    """Whatever requests it closes the connection at, however often: before it was ever reached and afterwards."""
    way = FIRST_WAY
    for _ in range(closed):
        opening = Opened(way=way, fallback=fallback)
        opening.start()
        way = next_way(opening) or FIRST_WAY
    opening = Opened(way=way, fallback=fallback)
    while not NewBroker().open(opening):
        opening = Opened(way=next_way(opening) or FIRST_WAY, fallback=fallback)
    assert opening.way == Way(certain=True)
    assert opening.versions == supported_ranges()
    again = Opened(way=opening.way.again(), fallback=fallback)
    again.start()
    assert next_way(again) is None


def test_a_new_broker_whose_answer_is_lost_is_not_taken_for_an_old_one():
    opening = Opened()
    assert not NewBroker(deaf=[18]).open(opening)
    assert next_way(opening) is None
    assert not opening.ready


def test_a_broker_that_closes_every_connection_has_failed():
    way: Way | None = FIRST_WAY
    releases = []
    while way is not None:
        releases.append(way.release)
        opening = Opened(way=way)
        opening.start()
        error = opening.lost()
        way = opening.next_way
    assert releases == [None, "0.10.0", "0.8.2", "0.8.1", "0.8.0"]
    assert "without an answer: it is shutting down, or its listener uses another" in str(error)


def test_kerberos_before_everything_on_brokers_without_api_versions():
    way = FIRST_WAY
    for expected in (Way("0.10.0"), Way("0.9.0")):
        opening = Opened(exchange=Tokens(mechanism="GSSAPI"), way=way)
        opening.start()
        way = next_way(opening)
        assert way == expected
    opening = Opened(exchange=Tokens(mechanism="GSSAPI"), way=way)
    assert opening.start() == b"\0\0\0\5first"
    key, correlation_id = request_in(opening.receive(b"\0\0\0\1x"))
    assert key == 2
    opening.receive(encode_response(messages.ListOffsetsResponse(), 0, correlation_id))
    assert opening.ready
    assert opening.way == Way("0.9.0", certain=True)
    plain = Opened(exchange=Tokens(), way=Way("0.10.0"))
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
