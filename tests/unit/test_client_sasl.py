"""SASL mechanisms: examples of the specifications, an independent server, and what hostile brokers answer."""

from __future__ import annotations

import base64

import pytest
import scramp

from kafkacodec.client.options import ClientSettings
from kafkacodec.errors import AuthenticationFailed, ConnectionFailed
from kafkacodec.net.sasl import SaslExchange, provided
from kafkacodec.net.sasl.scram import Scram


def settings(mechanism, user="user", password="pencil", **options):
    if mechanism == "OAUTHBEARER":
        options = {"sasl_oauth_token_provider": lambda: "token", **options}
    elif mechanism != "GSSAPI":
        options = {"sasl_plain_username": user, "sasl_plain_password": password, **options}
    return ClientSettings(bootstrap_servers="x", security_protocol="SASL_SSL", sasl_mechanism=mechanism, **options)


def exchange(mechanism, *arguments, **options):
    return SaslExchange(settings(mechanism, *arguments, **options), "broker.example")


def test_plain():
    made = exchange("PLAIN", "tim", "tanstaaftanstaaf")
    assert made.first() == b"\0tim\0tanstaaftanstaaf"  # RFC 4616, section 4
    assert made.step(b"") is None
    with pytest.raises(AuthenticationFailed, match="a token of 3 bytes, expected none"):
        made.step(b"abc")


def test_plain_cannot_send_zero_bytes():
    with pytest.raises(AuthenticationFailed, match="zero byte"):
        exchange("PLAIN", "a", "b\0c").first()


def test_scram_example():
    """RFC 7677, section 3."""
    made = Scram(settings("SCRAM-SHA-256"), "", nonce="rOprNGfwEbeRWgbNEkqO")
    assert made.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    found = made.step(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    assert found == f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    assert made.step(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(("user", "password"), [("user", "pencil"), ("a=b,c", "x" * 200), ("ü", "pässwörd")])
@pytest.mark.parametrize("iterations", [4096, 10_000])
def test_scram_with_an_independent_server(mechanism, user, password, iterations):
    server_side = scramp.ScramMechanism(mechanism)
    known = server_side.make_auth_info(password, iteration_count=iterations)
    asked = []
    server = server_side.make_server(lambda name: asked.append(name) or known)
    made = exchange(mechanism, user, password)
    server.set_client_first(made.first().decode())
    final = made.step(server.get_server_first().encode())
    server.set_client_final(final.decode())
    assert made.step(server.get_server_final().encode()) is None
    assert asked == [user]


def test_scram_nonces_differ():
    assert len({exchange("SCRAM-SHA-256").first() for _ in range(100)}) == 100


SALT = base64.b64encode(b"0123456789abcdef").decode()


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ("r={nonce}x,s={salt},i=4095", "asks for '4095' iterations, not 4096 to 1000000"),
        ("r={nonce}x,s={salt},i=2147483647", "asks for '2147483647' iterations"),
        ("r={nonce}x,s={salt},i=1000001", "asks for '1000001' iterations"),
        ("r={nonce}x,s={salt},i=-4096", "asks for '-4096' iterations"),
        ("r={nonce}x,s={salt},i=٤٠٩٦", "iterations"),
        ("r={nonce}x,s={salt}", "asks for '' iterations"),
        ("r={nonce}x,s=,i=4096", "no valid attribute 's'"),
        ("r={nonce}x,s=%%%,i=4096", "no valid attribute 's'"),
        ("r={nonce},s={salt},i=4096", "nonce does not continue the client's"),
        ("r=x{nonce},s={salt},i=4096", "nonce does not continue the client's"),
        ("s={salt},i=4096", "nonce does not continue the client's"),
        ("m=1,r={nonce}x,s={salt},i=4096", "malformed"),
        ("r={nonce}x,r={nonce}y,s={salt},i=4096", "malformed"),
        ("", "malformed"),
        ("\0\1\2", "malformed"),
        ("e=unknown-user", "the broker refused the authentication by SCRAM-SHA-256: unknown-user"),
    ],
)
def test_scram_refuses_what_brokers_must_not_send(first, reason):
    made = exchange("SCRAM-SHA-256")
    nonce = made.first().decode().rpartition("r=")[2]
    with pytest.raises(AuthenticationFailed, match=reason) as caught:
        made.step(first.format(nonce=nonce, salt=SALT).encode())
    assert nonce not in str(caught.value)


@pytest.mark.parametrize(
    ("final", "reason"),
    [
        (b"v=" + base64.b64encode(bytes(32)), "the broker does not know the password; its signature is wrong"),
        (b"v=", "no valid attribute 'v'"),
        (b"", "malformed"),
        (b"\xff", "not UTF-8"),
        (b"e=invalid-proof", "refused the authentication by SCRAM-SHA-256: invalid-proof"),
    ],
)
def test_scram_brokers_have_to_know_the_password(final, reason):
    made = exchange("SCRAM-SHA-256")
    nonce = made.first().decode().rpartition("r=")[2]
    made.step(f"r={nonce}x,s={SALT},i=4096".encode())
    with pytest.raises(AuthenticationFailed, match=reason):
        made.step(final)


def test_oauthbearer():
    made = exchange("OAUTHBEARER")
    assert made.needs_token
    made.token("vF9dft4qmT")
    assert made.first() == b"n,,\x01auth=Bearer vF9dft4qmT\x01\x01"  # RFC 7628, section 4.1
    assert made.step(b"") is None


def test_oauthbearer_extensions():
    made = exchange("OAUTHBEARER")
    made.token(("abc", {"traceId": "123", "cluster": "lkc-1"}))
    assert made.first() == b"n,,\x01auth=Bearer abc\x01traceId=123\x01cluster=lkc-1\x01\x01"  # KIP-342


def test_oauthbearer_refused():
    made = exchange("OAUTHBEARER")
    made.token("abc")
    made.first()
    assert made.step(b'{"status":"invalid_token"}') == b"\x01"  # RFC 7628, section 3.2.3
    with pytest.raises(AuthenticationFailed, match=r'refused the authentication by OAUTHBEARER: {"status":"invalid_t'):
        made.step(b"")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "returned NoneType, not a token"),
        (b"abc", "returned bytes, not a token"),
        ("", "returned an invalid token"),
        ("secret\x01auth=x", "returned an invalid token"),
        (("abc", "x"), "must be a dict, not str"),
        (("abc", {"auth": "x"}), "extension 'auth' of the token has an invalid name or value"),
        (("abc", {"a1": "x"}), "extension 'a1'"),
        (("abc", {"a": "secret\x01"}), "extension 'a'"),
    ],
)
def test_tokens_that_are_none(value, reason):
    made = exchange("OAUTHBEARER")
    with pytest.raises(AuthenticationFailed, match=reason) as caught:
        made.token(value)
    assert "secret" not in str(caught.value)


async def test_providers_of_tokens():
    async def later():
        return "b"

    assert await provided(lambda: "a") == "a"
    assert await provided(later) == "b"
    with pytest.raises(ConnectionFailed, match="sasl_oauth_token_provider raised ZeroDivisionError: integer division"):
        await provided(lambda: 1 // 0)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_no_secret_is_shown(mechanism):
    made = exchange(mechanism, password="sesame")
    if made.needs_token:
        made.token("sesame")
    made.first()
    assert repr(made) == f"<SaslExchange: {mechanism}>"
    assert "sesame" not in repr(settings(mechanism, password="sesame"))
    assert "sesame" not in repr(made._client)


@pytest.mark.parametrize(
    ("options", "kind", "reason"),
    [
        ({"sasl_mechanism": "PLAIN"}, ValueError, "needs sasl_plain_username and sasl_plain_password"),
        (
            {"sasl_mechanism": "SCRAM-SHA-256", "sasl_plain_username": "a"},
            ValueError,
            "'SCRAM-SHA-256' needs sasl_plain_password",
        ),
        ({"sasl_mechanism": "OAUTHBEARER"}, ValueError, "needs sasl_oauth_token_provider"),
        (
            {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": "abc"},
            TypeError,
            "must be a function, not str",
        ),
        (
            {"sasl_mechanism": "PLAIN", "sasl_plain_username": "a", "sasl_plain_password": b"sesame"},
            TypeError,
            "sasl_plain_password must be text, not bytes",
        ),
        (
            {"sasl_mechanism": "PLAIN", "sasl_plain_username": "a", "sasl_plain_password": "sesame\ud800"},
            ValueError,
            "sasl_plain_password has a lone surrogate",
        ),
        ({"sasl_mechanism": None}, ValueError, "go together"),
    ],
)
def test_options_that_do_not_fit(options, kind, reason):
    with pytest.raises(kind, match=reason) as caught:
        ClientSettings(bootstrap_servers="x", security_protocol="SASL_SSL", **options)
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize("name", ["ssl_context", "ssl_cafile", "ssl_certfile", "ssl_keyfile"])
def test_files_of_tls_without_tls(name):
    with pytest.raises(ValueError, match=f"{name} is given, but security_protocol is 'PLAINTEXT': set it to 'SSL'"):
        ClientSettings(bootstrap_servers="x", **{name: "file.pem"})


def test_old_releases_by_option():
    with pytest.raises(ValueError, match=r"brokers from 0\.10 on tell their versions"):
        ClientSettings(bootstrap_servers="x", broker_version_fallback="0.10.0")
