"""S3 on this machine, by moto: what tests of object stores share."""

import re
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

BUCKET = "logs"


class Server:
    """S3 on loopback, with the bytes that it sent in answers to GET, by path, and the users."""

    def __init__(self):
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app  # slow to import
        from werkzeug.serving import make_server

        self.sent: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()  # by method
        self.users: set[str] = set()  # access keys
        self.tokens: set[str | None] = set()  # of sessions
        self.refusal: str | None = None  # the code of the error with which GET is answered
        self.moto = DomainDispatcherApplication(create_backend_app)
        self.server = make_server("127.0.0.1", 0, self.answer, threaded=True)
        self.url = f"http://127.0.0.1:{self.server.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, environ, start_response):
        if self.refusal is not None and environ["REQUEST_METHOD"] == "GET":
            start_response("400 Bad Request", [("Content-Type", "application/xml")])
            return [f"<Error><Code>{self.refusal}</Code><Message>a-secret-word</Message></Error>".encode()]
        body = list(self.moto(environ, start_response))
        self.requests[environ["REQUEST_METHOD"]] += 1
        self.users.update(re.findall(r"Credential=(\w+)/", environ.get("HTTP_AUTHORIZATION", "")))
        self.tokens.add(environ.get("HTTP_X_AMZ_SECURITY_TOKEN"))
        if environ["REQUEST_METHOD"] == "GET":
            self.sent[environ["PATH_INFO"]] += sum(map(len, body))
        return body


@contextmanager
def in_own_process():
    """A server in a process of its own, and a client with a bucket: deltalake keeps the GIL while it waits."""
    from botocore.exceptions import EndpointConnectionError

    from tests.integration.kafka_jvm import free_port

    url = f"http://127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "moto.server", "-p", url.rpartition(":")[2]]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            server = SimpleNamespace(url=url)
            until = time.monotonic() + 60
            while True:
                try:
                    found = client(server)
                    break
                except EndpointConnectionError:
                    assert process.poll() is None, "moto's server did not start"
                    assert time.monotonic() < until, "moto's server did not start within a minute"
                    time.sleep(0.1)
            yield url, found
        finally:
            process.terminate()


def client(server):
    """A client with a bucket."""
    import boto3

    found = boto3.client(
        "s3", endpoint_url=server.url, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y"
    )
    found.create_bucket(Bucket=BUCKET)
    return found


def upload(s3, directory, prefix):
    for path in Path(directory).rglob("*"):
        if path.is_file():
            s3.put_object(Bucket=BUCKET, Key=f"{prefix}/{path.relative_to(directory)}", Body=path.read_bytes())
    return f"s3://{BUCKET}/{prefix}"
