"""Schemas from a registry's REST API: Confluent Schema Registry, Karapace, Redpanda, and Apicurio Registry.

Sources: "Schema Registry API Reference" of Confluent (``/schemas/ids/{id}``, ``/schemas/guids/{guid}``,
``/subjects/{subject}/versions/{version}``), "Apicurio Registry REST API v3" (``/ids/globalIds/{id}``,
``/ids/contentIds/{id}``).
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import time
from http.client import HTTPException, HTTPMessage
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, Request, build_opener
from uuid import UUID

from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import RegistryError, SchemaError, SchemaNotFound
from kafkacodec.shown import repr_of
from kafkacodec.signatures import suggests_options
from kafkacodec.values.schemas import MAX_TEXT_BYTES, Format, Reference, Schema, SchemaKey

__all__ = ["Registry"]

MAX_ANSWER_BYTES = 4 * MAX_TEXT_BYTES
"""Limit on the size of an answer: JSON may need several characters for one of the schema."""

_FORMATS: dict[str, Format] = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json"}

# A start of a .proto file, after comments.
_PROTO = re.compile(
    r"\s*(?://[^\n]*\s*|/\*.*?\*/\s*)*(?:syntax|edition|package|import|option|message|enum)\b", re.DOTALL
)

_BUSY = frozenset([408, 429, 500, 502, 503, 504])


class _Answer(NamedTuple):
    body: bytes
    headers: HTTPMessage


class _NoRedirects(HTTPRedirectHandler):
    """Redirects are errors: a credential must not reach another host."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Refuse."""
        return None


class Registry:
    """A schema registry. Schemas, which never change, are asked for once; a missing one is asked for again.

    Args:
        url: where the API is: ``http://host:8081``; for numbers of Apicurio's own headers and framing
            ``http://host:8080/apis/registry/v3``, for Confluent's ``http://host:8080/apis/ccompat/v7``.
        auth: user and password.
        token: a bearer token, instead of `auth`.
        headers: more headers of each request.
        timeout: limit on the wait for each answer, in seconds.
        retries: how often a request is repeated that the registry is too busy for, or that does not reach it.
        context: the certificates for ``https``. Default: those of the system.

    Raises:
        ValueError: the URL is neither ``http`` nor ``https``, or contains a password.
    """

    @suggests_options
    def __init__(
        self,
        url: str,
        *,
        auth: tuple[str, str] | None = None,
        token: str | None = None,
        headers: dict[str, str] | None = None,
        timeout: float = 10.0,
        retries: int = 2,
        context: ssl.SSLContext | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url: expected http://host:port or https://host:port, not {url!r}")
        if parts.username or parts.password:
            raise ValueError("url: pass user and password as auth, not in the URL")
        self._url = url.rstrip("/")
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json, */*", **(headers or {})}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        elif auth is not None:
            self._headers["Authorization"] = f"Basic {base64.b64encode(':'.join(auth).encode()).decode()}"
        self._timeout, self._retries, self._context = timeout, retries, context
        self._found: dict[SchemaKey | tuple[str, int], Schema] = {}

    def __repr__(self) -> str:
        return repr_of(self, self._url)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (self._url, self._headers, self._timeout, self._retries)

    def find(self, key: SchemaKey) -> Schema:
        """The schema of a key; `kafkacodec.values.SchemaSource` lists the exceptions."""
        key = key._replace(message=())
        if key not in self._found:
            self._found[key] = self._asked(key)
        return self._found[key]

    def version(self, subject: str, version: int) -> Schema:
        """The schema that is registered as this version of a subject; for Apicurio ``group:artifact``."""
        if (subject, version) not in self._found:
            self._found[subject, version] = self._asked_version(subject, version)
        return self._found[subject, version]

    def latest(self, subject: str) -> tuple[int, Schema]:
        """The latest schema of a subject, with its number; asked for at each call. For Confluent's API.

        Raises:
            SchemaNotFound, SchemaError, RegistryError: as `find`.
        """
        path = f"subjects/{quote(subject, '')}/versions/latest"
        answer = self._json(self._get(path, f"subject {subject}"), path)
        return self._number(answer, path), self._schema(answer, path, f"the latest version of {subject}")

    def number(self, subject: str, schema: Schema, *, register: bool = False) -> int:
        """The number of a schema that is registered for a subject. For Confluent's API.

        Args:
            subject: the subject.
            schema: the schema.
            register: register it if it is not there.

        Raises:
            SchemaNotFound: it is not registered.
            RegistryError: the registry refuses it, as one that is not compatible with earlier ones, or does not answer.
        """
        body: dict[str, Any] = {"schema": schema.text, "schemaType": schema.format.upper()}
        if schema.references:
            body["references"] = [reference._asdict() for reference in schema.references]
        path = f"subjects/{quote(subject, '')}" + ("/versions" if register else "")
        what = f"such schema of subject {subject}"
        return self._number(self._json(self._get(path, what, json.dumps(body).encode()), path), path)

    def _number(self, answer: Any, path: str) -> int:
        number = answer.get("id") if isinstance(answer, dict) else None
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**31:
            raise RegistryError(f"{self._url}/{path}: the answer has no number of a schema")
        return number

    def _asked(self, key: SchemaKey) -> Schema:
        if key.kind in ("global", "content"):
            return self._apicurio(f"ids/{key.kind}Ids/{key.value}", str(key))
        if key.kind == "glue":
            raise SchemaNotFound(f"{key}: schemas of AWS Glue are not read from a URL; save them in a directory")
        kind = "guids" if isinstance(key.value, UUID) else "ids"
        return self._confluent(f"schemas/{kind}/{key.value}", str(key))

    def _asked_version(self, subject: str, version: int) -> Schema:
        what = f"version {version} of {subject}"
        group, colon, artifact = subject.partition(":")
        if colon and "/apis/registry/" in self._url:
            path = f"groups/{quote(group, '')}/artifacts/{quote(artifact, '')}/versions/{version}"
            return self._apicurio(f"{path}/content" if "/v3" in self._url else path, what)
        return self._confluent(f"subjects/{quote(subject, '')}/versions/{version}", what)

    def _confluent(self, path: str, what: str) -> Schema:
        return self._schema(self._json(self._get(path, what), path), path, what)

    def _schema(self, answer: Any, path: str, what: str) -> Schema:
        try:
            references = tuple(
                Reference(str(each["name"]), str(each["subject"]), int(each["version"]))
                for each in answer.get("references") or ()
            )
            text, kind = answer["schema"], answer.get("schemaType") or "AVRO"
        except (KeyError, TypeError, ValueError, AttributeError):
            raise RegistryError(f"{self._url}/{path}: the answer is not a schema") from None
        if kind not in _FORMATS or not isinstance(text, str):
            raise SchemaError(f"{what} is of the unknown type {kind!r}")
        return Schema(text, _FORMATS[kind], references)

    def _apicurio(self, path: str, what: str) -> Schema:
        answer = self._get(f"{path}?returnArtifactType=true", what)
        try:
            text = answer.body.decode()
        except UnicodeDecodeError:
            raise RegistryError(f"{self._url}/{path}: the answer is not UTF-8") from None
        kind = answer.headers.get("X-Registry-ArtifactType") or answer.headers.get("X-Registry-Artifacttype")
        references = self._json(self._get(f"{path.removesuffix('/content')}/references", what), path)
        try:
            uses = tuple(
                Reference(
                    each["name"], f"{each.get('groupId') or 'default'}:{each['artifactId']}", int(each["version"])
                )
                for each in references
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise RegistryError(f"{self._url}/{path}/references: the answer is not a list of references") from None
        return Schema(text, _FORMATS.get(kind or "") or _guessed(text), uses)

    def _json(self, answer: _Answer, path: str) -> Any:
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError):
            raise RegistryError(f"{self._url}/{path}: the answer is not JSON: {answer.body[:60]!r}") from None

    def _get(self, path: str, what: str, body: bytes | None = None) -> _Answer:
        """The answer to a request, which posts the body if there is one.

        404 is `SchemaNotFound`, any other failure `RegistryError`.
        """
        posted = {} if body is None else {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        request = Request(f"{self._url}/{path}", body, {**self._headers, **posted})
        opener = build_opener(_NoRedirects, HTTPSHandler(context=self._context))
        for attempt in range(self._retries + 1):
            try:
                return self._opened(opener, request)
            except HTTPError as error:
                with error:
                    if error.code == 404:
                        raise SchemaNotFound(f"there is no {what} in {self._url}") from None
                    if error.code not in _BUSY or attempt == self._retries:
                        raise RegistryError(f"{request.full_url}: HTTP {error.code} {error.reason}") from None
            except (URLError, HTTPException, OSError) as error:
                if attempt == self._retries:
                    reason = error.reason if isinstance(error, URLError) else error
                    raise RegistryError(f"{request.full_url}: {reason or type(error).__name__}") from None
            time.sleep(min(0.2 * 2**attempt, 2))
        raise AssertionError("unreachable")

    def _opened(self, opener: OpenerDirector, request: Request) -> _Answer:
        with opener.open(request, timeout=self._timeout) as response:
            body = response.read(MAX_ANSWER_BYTES + 1)
            if len(body) > MAX_ANSWER_BYTES:
                raise RegistryError(f"{request.full_url}: the answer has more than {MAX_ANSWER_BYTES} bytes")
            return _Answer(body, response.headers)


def _rebuilt(url: str, headers: dict[str, str], timeout: float, retries: int) -> Registry:
    return Registry(url, headers=headers, timeout=timeout, retries=retries)


def _guessed(text: str) -> Format:
    """The format of a schema without a type."""
    if _PROTO.match(text):
        return "protobuf"
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        return "avro"
    return "json" if isinstance(schema, dict) and ("$schema" in schema or "properties" in schema) else "avro"
