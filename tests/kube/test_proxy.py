"""Which proxy is taken, and what goes through it."""

import asyncio
import base64
import ssl
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import yaml
from kubernetes.aio.client import Configuration

from mcad.kube.connection import Connection, load
from mcad.kube.errors import ConfigError, ConnectionLost
from mcad.kube.port import Request
from mcad.kube.proxy import Proxy, environment_proxy, read_proxy
from mcad.kube.rest import RestApi
from mcad.kube.tls import Tls
from tests.fakeapi import answer
from tests.kube.support import FakeClock, kubeconfig
from tests.serving import free_port, read_request, serve, serve_raw

GET = Request("GET", "/x")
NAMES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("url", "excluded", "taken"),
    [
        ("https://10.96.0.1:443", "", True),
        ("https://10.96.0.1:443", "10.96.0.0/12,.svc", False),
        ("https://10.112.0.1:443", "10.96.0.0/12", True),
        ("https://10.96.0.1:443", "10.96.0.1", False),
        ("https://10.96.0.1:6443", "10.96.0.1:443", True),
        ("https://[fd00::1]:443", "fd00::/8", False),
        ("https://[fd00::1]:443", "[fd00::1]:443", False),
        ("https://[fd00::1]:443", "fd00::1", False),
        ("https://api.example.com", "example.com", False),
        ("https://api.example.com", "*.example.com", False),
        ("https://api.example.com", ".example.com", False),
        ("https://example.com", ".example.com", True),
        ("https://example.com", "example.com", False),
        ("https://badexample.com", "example.com", True),
        ("https://API.Example.com.", "EXAMPLE.com", False),
        ("https://api.example.com:6443", "example.com:6443", False),
        ("https://api.example.com", "example.com:6443", True),
        ("https://api.example.com", " , foo, * ", False),
        ("https://api.example.com", "10.0.0.0/99,what/ever", True),
        ("https://localhost:6443", "", False),
        ("https://127.0.0.2:6443", "", False),
        ("https://[::1]:6443", "", False),
        ("http://10.96.0.1:80", "", False),
    ],
)
def test_what_the_environment_wants(url: str, excluded: str, taken: bool) -> None:
    environ = {"HTTPS_PROXY": "proxy.example:3128", "NO_PROXY": excluded}
    expected = Proxy("http://proxy.example:3128") if taken else None
    assert environment_proxy(url, environ) == expected
    lower = {name.lower(): value for name, value in environ.items()}
    assert environment_proxy(url, lower) == expected


def test_plain_http_has_a_variable_of_its_own() -> None:
    environ = {"HTTP_PROXY": "http://one:1", "HTTPS_PROXY": "http://two:2"}
    assert environment_proxy("http://10.0.0.1:8080", environ) == Proxy("http://one:1")


@pytest.mark.parametrize(
    ("text", "proxy", "shown"),
    [
        ("http://p:1", Proxy("http://p:1"), "http://p:1"),
        ("https://p", Proxy("https://p:443"), "https://p:443"),
        ("p", Proxy("http://p:80"), "http://p:80"),
        ("http://[::1]:3", Proxy("http://[::1]:3"), "http://[::1]:3"),
        ("http://me:s%40cret@p:1/", Proxy("http://p:1", "me", "s@cret"), "http://***@p:1"),
    ],
)
def test_a_proxy_is_read_and_shown_without_its_password(
    text: str, proxy: Proxy, shown: str
) -> None:
    assert read_proxy(text, "HTTPS_PROXY") == proxy
    assert str(proxy) == shown


@pytest.mark.parametrize("text", ["socks5://me:secret@p:1", "http://", "http://p:no", "http://[p"])
def test_what_is_no_proxy_for_us_is_refused_without_telling_it(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^proxy-url: ") as caught:
        read_proxy(text, "proxy-url")
    assert "secret" not in str(caught.value)


class Tunnels:
    """A proxy that connects through; what it was asked for, head by head."""

    def __init__(self) -> None:
        self.url = ""
        self.heads: list[str] = []
        self.refusal = b""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await read_request(reader)).decode()
        self.heads.append(head)
        method, target, _ = head.split(" ", 2)
        if self.refusal or method != "CONNECT":
            body = (
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
            )
            writer.write(self.refusal or body)
            await writer.drain()
            return
        host, _, port = target.rpartition(":")
        up, down = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_pipe(reader, down), _pipe(up, writer))


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@pytest.fixture
async def proxy():
    tunnels = Tunnels()
    async with serve_raw(tunnels.serve) as url:
        tunnels.url = url
        yield tunnels


@asynccontextmanager
async def served(pki: Path):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pki / "server.crt", pki / "server.key")
    async with serve(context) as server:
        server.fail_always("GET", "/", answer({}))
        yield server


def through(url: str, proxy: Proxy, ca: Path | None = None) -> Connection:
    configuration = Configuration(host=url)
    configuration.ssl_ca_cert = str(ca) if ca else None
    tls = Tls(configuration) if ca else None
    return Connection(configuration, tls, "default", "a test", proxy=proxy)


async def test_tls_goes_through_a_tunnel_and_is_checked_at_its_end(pki, proxy) -> None:
    login = read_proxy(proxy.url.replace("//", "//me:secret@"), "a test")
    async with served(pki) as server:
        opened = through(server.url, login, pki / "ca.crt")
        async with RestApi(opened, FakeClock()) as api:
            assert (await api.request(GET)).status == 200
            assert (await api.request(GET)).status == 200
        async with RestApi(through(server.url, login, pki / "other-ca.crt"), FakeClock()) as api:
            with pytest.raises(ConnectionLost, match="not trusted"):
                await api.request(GET)
        assert len(server.requests) == 2
        assert "Proxy-Authorization" not in server.requests[0].headers
    place = server.url.removeprefix("https://")
    assert [head.split("\r\n")[0] for head in proxy.heads] == [f"CONNECT {place} HTTP/1.1"] * 2
    secret = base64.b64encode(b"me:secret").decode()
    assert f"Proxy-Authorization: Basic {secret}" in proxy.heads[0]


async def test_plain_http_is_handed_to_the_proxy(proxy) -> None:
    login = Proxy(proxy.url, "me", "secret")
    async with RestApi(through("http://api.example:1", login), FakeClock()) as api:
        assert (await api.request(GET)).status == 200
    assert proxy.heads[0].startswith("GET http://api.example:1/x HTTP/1.1")
    assert "Proxy-Authorization: Basic " in proxy.heads[0]


async def test_a_proxy_that_refuses_or_is_not_there_is_named(pki, proxy) -> None:
    proxy.refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
    opened = through("https://api.example:1", Proxy(proxy.url, "me", "secret"), pki / "ca.crt")
    async with RestApi(opened, FakeClock()) as api:
        with pytest.raises(ConnectionLost, match="407 Proxy Authentication Required") as refused:
            await api.request(GET)
    assert f"through the proxy {proxy.url.replace('//', '//***@')}: " in str(refused.value)
    dead = Proxy(f"http://127.0.0.1:{free_port()}")
    async with RestApi(through("http://api.example:1", dead), FakeClock()) as api:
        with pytest.raises(ConnectionLost, match=f"through the proxy {dead}: Connection refused"):
            await api.request(GET)


async def test_a_kubeconfig_names_its_proxy_and_wins_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://env:1")

    def config(**cluster: str) -> str:
        path = tmp_path / "config"
        path.write_text(yaml.safe_dump(kubeconfig("http://10.0.0.1:1", **cluster)))
        return str(path)

    assert (await load(FakeClock(), config())).proxy == Proxy("http://env:1")
    named = await load(FakeClock(), config(**{"proxy-url": "http://named:2"}))
    assert named.proxy == Proxy("http://named:2")
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8")
    assert (await load(FakeClock(), config())).proxy is None
    with pytest.raises(ConfigError, match="proxy-url: only proxies with a URL such as"):
        await load(FakeClock(), config(**{"proxy-url": "socks5://p:1"}))
