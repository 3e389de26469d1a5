"""Fixtures: a server, a clock, and a client that connects them."""

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mcad.kube.client import Client
from mcad.kube.rest import RestApi
from tests.fakeapi import FakeApi
from tests.kube.support import FakeClock, client_of, connection
from tests.serving import serve


@pytest.fixture
async def server() -> AsyncIterator[FakeApi]:
    async with serve() as running:
        yield running


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def api(server: FakeApi, clock: FakeClock) -> AsyncIterator[RestApi]:
    async with RestApi(connection(server.url), clock, timeout_s=2.0) as opened:
        yield opened


@pytest.fixture
def client(api: RestApi, clock: FakeClock) -> Client:
    return client_of(api, clock)


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA, a server certificate for 127.0.0.1 and two client certificates, and another CA."""
    folder = tmp_path_factory.mktemp("pki")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=ca")
    openssl("req", "-x509", *key, "-keyout", "no.key", "-out", "other-ca.crt", "-subj", "/CN=other")
    names = {"server": "subjectAltName=IP:127.0.0.1", "client": "", "client2": ""}
    for name, extension in names.items():
        request = ("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl(*request, "-subj", f"/CN={name}")
        (folder / "extensions").write_text(extension)
        openssl(
            "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
            "-CAcreateserial", "-out", f"{name}.crt", "-days", "2", "-extfile", "extensions",
        )  # fmt: skip
    return folder
