"""TLS: trust and client certificates, also when they change at run time."""

import base64
import gc
import logging
import shutil
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.aio.client import Configuration

from mcad.kube.connection import Connection, load
from mcad.kube.errors import ConnectionLost
from mcad.kube.port import Request, Response
from mcad.kube.rest import RestApi
from mcad.kube.tls import Tls
from tests.fakeapi import FakeApi, answer, refuse
from tests.kube.support import FakeClock, kubeconfig
from tests.serving import serve

GET = Request("GET", "/x")

PLUGIN = """
import json, pathlib, sys
folder, runs = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
name = "client2" if runs.exists() else "client"
runs.touch()
status = {
    "clientCertificateData": (folder / f"{name}.crt").read_text(),
    "clientKeyData": (folder / f"{name}.key").read_text(),
}
api = "client.authentication.k8s.io/v1"
print(json.dumps({"apiVersion": api, "kind": "ExecCredential", "status": status}))
"""


class Server:
    """Serves TLS, and records the subject of each request; those in ``unwanted`` get 401."""

    def __init__(self) -> None:
        self.api = FakeApi()
        self.subjects: list[str] = []
        self.unwanted: set[str] = set()

    async def tell(self, _: Request) -> Response:
        peer = self.api.peer
        self.subjects.append(peer["subject"][0][0][1] if peer else "")
        if self.subjects[-1] in self.unwanted:
            return refuse(401, "Unauthorized")
        return answer({})


@pytest.fixture
async def tls(pki: Path) -> AsyncIterator[Server]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=pki / "ca.crt")
    context.load_cert_chain(pki / "server.crt", pki / "server.key")
    context.verify_mode = ssl.CERT_OPTIONAL
    told = Server()
    told.api.fail_always("GET", "/", told.tell)
    async with serve(context, told.api):
        yield told


def to(url: str, **settings: object) -> Connection:
    configuration = Configuration(host=url)
    for name, value in settings.items():
        setattr(configuration, name, value)
    return Connection(configuration, Tls(configuration), "default", "a test")


@pytest.mark.parametrize(
    ("settings", "trusted"),
    [
        ({"ssl_ca_cert": "ca.crt"}, True),
        ({}, False),
        ({"verify_ssl": False}, True),
        ({"ssl_ca_cert": "ca.crt", "tls_server_name": "other.example"}, False),
    ],
    ids=["ca", "system trust only", "insecure-skip-tls-verify", "tls-server-name"],
)
async def test_trust(pki: Path, tls: Server, settings: dict[str, Any], trusted: bool) -> None:
    if "ssl_ca_cert" in settings:
        settings = {**settings, "ssl_ca_cert": str(pki / "ca.crt")}
    async with RestApi(to(tls.api.url, **settings), FakeClock()) as api:
        if trusted:
            assert (await api.request(GET)).status == 200
        else:
            with pytest.raises(ConnectionLost, match=r"(?i)certificate"):
                await api.request(GET)
    gc.collect()


def install(pki: Path, folder: Path, **files: str) -> dict[str, str]:
    """Copy files under names that stay the same, and the settings that name them."""
    for target, source in files.items():
        shutil.copy(pki / source, folder / target)
    return {
        "ssl_ca_cert": str(folder / "ca"),
        "cert_file": str(folder / "cert"),
        "key_file": str(folder / "key"),
    }


async def test_a_client_certificate_that_is_replaced_is_presented_from_then_on(
    pki: Path, tls: Server, tmp_path: Path
) -> None:
    settings = install(pki, tmp_path, ca="ca.crt", cert="client.crt", key="client.key")
    async with RestApi(to(tls.api.url, **settings), FakeClock()) as api:
        await api.request(GET)
        await api.request(GET)
        install(pki, tmp_path, cert="client2.crt", key="client2.key")
        await api.request(GET)
    assert tls.subjects == ["client", "client", "client2"]


async def test_half_of_a_replacement_changes_nothing(
    pki: Path, tls: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mcad")
    settings = install(pki, tmp_path, ca="ca.crt", cert="client.crt", key="client.key")
    async with RestApi(to(tls.api.url, **settings), FakeClock()) as api:
        install(pki, tmp_path, cert="client2.crt")
        await api.request(GET)
        await api.request(GET)
        install(pki, tmp_path, key="client2.key")
        await api.request(GET)
    assert tls.subjects == ["client", "client", "client2"]
    assert [one.getMessage().partition(" error")[0] for one in caplog.records] == [
        "new certificates cannot be used",
        "new certificates are used",
    ]


async def test_a_ca_that_is_rotated_is_trusted_from_then_on(
    pki: Path, tls: Server, tmp_path: Path
) -> None:
    settings = install(pki, tmp_path, ca="other-ca.crt", cert="client.crt", key="client.key")
    async with RestApi(to(tls.api.url, **settings), FakeClock()) as api:
        with pytest.raises(ConnectionLost, match="not trusted"):
            await api.request(GET)
        install(pki, tmp_path, ca="ca.crt")
        assert (await api.request(GET)).status == 200


async def test_a_plugin_that_gives_a_new_certificate_after_a_refusal(
    pki: Path, tls: Server, tmp_path: Path
) -> None:
    script = tmp_path / "plugin.py"
    script.write_text(PLUGIN)
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "interactiveMode": "Never",
        "command": sys.executable,
        "args": [str(script), str(pki), str(tmp_path / "runs")],
    }
    ca = base64.b64encode((pki / "ca.crt").read_bytes()).decode()
    config = kubeconfig(tls.api.url, {"exec": plugin}, **{"certificate-authority-data": ca})
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    clock = FakeClock()
    async with RestApi(await load(clock, str(path)), clock) as api:
        await api.request(GET)
        clock.now += 60
        tls.unwanted.add("client")
        assert (await api.request(GET)).status == 200
        await api.request(GET)
    assert tls.subjects == ["client", "client", "client2", "client2"]
