"""The server and the credentials: files, contexts, pods, tokens that change, plugins."""

import asyncio
import base64
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from kubernetes.aio.config import incluster_config

from mcad.kube import connection as connection_module
from mcad.kube.connection import load
from mcad.kube.errors import ConfigError
from mcad.kube.port import Request
from mcad.kube.rest import RestApi
from tests.fakeapi import answer, refuse
from tests.kube.support import FakeClock, kubeconfig

PLUGIN = """
import json, pathlib, sys
runs = pathlib.Path(sys.argv[1])
number = int(runs.read_text()) + 1 if runs.exists() else 1
runs.write_text(str(number))
if str(number) in sys.argv[3:]:
    sys.exit("the login has expired, run `cloud login`")
status = {"token": f"t{number}"} | json.loads(sys.argv[2])
api = "client.authentication.k8s.io/v1"
print(json.dumps({"apiVersion": api, "kind": "ExecCredential", "status": status}))
"""


@pytest.fixture(autouse=True)
def outside(monkeypatch, tmp_path):
    """Neither a cluster nor a home directory, on any machine."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(connection_module, "SERVICE_ACCOUNT", tmp_path / "none")


@pytest.fixture
def write(tmp_path):
    def write(body: dict | str, name: str = "config") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body if isinstance(body, str) else yaml.safe_dump(body))
        return str(path)

    return write


@pytest.fixture
def in_pod(monkeypatch, tmp_path, pem):
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("pod-token\n")
    (folder / "ca.crt").write_text(pem)
    (folder / "namespace").write_text("mcad-system")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr(connection_module, "SERVICE_ACCOUNT", folder)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(folder / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(folder / "ca.crt"))
    return folder


@pytest.fixture(scope="session")
def pem() -> str:
    """Any CA certificate at all."""
    import certifi

    head, end, _ = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----\n")
    return head[head.rindex("-----BEGIN") :] + end


async def authorization(opened) -> str | None:
    return (await opened.headers()).get("Authorization")


class TestOrder:
    async def test_a_named_file_comes_first(self, write, monkeypatch, in_pod):
        monkeypatch.setenv("KUBECONFIG", write(kubeconfig("http://env:1"), "env"))
        opened = await load(FakeClock(), write(kubeconfig("http://named:1/prefix/")))
        assert opened.base_url == "http://named:1/prefix"
        assert opened.namespace == "default"
        assert await authorization(opened) == "Bearer t"

    async def test_then_the_environment_then_home_then_the_pod(self, write, monkeypatch, in_pod):
        clock = FakeClock()
        assert (await load(clock)).base_url == "https://10.0.0.1:443"
        write(kubeconfig("http://home:1"), "home/.kube/config")
        assert (await load(clock)).base_url == "http://home:1"
        monkeypatch.setenv("KUBECONFIG", write(kubeconfig("http://env:1"), "env"))
        assert (await load(clock)).base_url == "http://env:1"

    async def test_a_controller_prefers_its_pod_unless_a_context_is_named(
        self, write, monkeypatch, in_pod
    ):
        monkeypatch.setenv("KUBECONFIG", write(kubeconfig("http://env:1")))
        opened = await load(FakeClock(), in_cluster_first=True)
        assert (opened.base_url, opened.namespace) == ("https://10.0.0.1:443", "mcad-system")
        opened = await load(FakeClock(), context="two", in_cluster_first=True)
        assert (opened.base_url, opened.namespace) == ("http://env:1", "batch")

    async def test_several_files_are_merged(self, write, monkeypatch):
        first = {**kubeconfig("http://first:1"), "current-context": "one"}
        second = kubeconfig("http://second:1")
        del second["current-context"]
        second["clusters"].append({"name": "d", "cluster": {"server": "http://d:1"}})
        second["contexts"].append({"name": "three", "context": {"cluster": "d", "user": "u"}})
        paths = [write(first, "1"), "/does/not/exist", write(second, "2")]
        monkeypatch.setenv("KUBECONFIG", ":".join(paths))
        assert (await load(FakeClock())).base_url == "http://first:1"
        assert (await load(FakeClock(), context="three")).base_url == "http://d:1"


class TestMistakes:
    async def message(self, *args, **kwargs) -> str:
        with pytest.raises(ConfigError) as caught:
            await load(FakeClock(), *args, **kwargs)
        return str(caught.value)

    async def test_nothing_at_all(self):
        message = await self.message()
        assert ".kube/config" in message
        assert "--kubeconfig" in message

    async def test_a_file_that_does_not_exist(self, in_pod):
        assert "/no/such/file" in await self.message("/no/such/file")

    @pytest.mark.parametrize("context", ["unknown", "userless", "nowhere"])
    async def test_contexts_that_lead_nowhere(self, write, context):
        message = await self.message(write(kubeconfig()), context)
        assert f"context {context}" in message
        assert "get-contexts" in message

    async def test_files_that_are_named_but_missing(self, write):
        body = kubeconfig("https://127.0.0.1:1", **{"certificate-authority": "missing.crt"})
        assert "missing.crt" in await self.message(write(body))

    async def test_certificates_that_are_none(self, write):
        data = base64.b64encode(b"nonsense").decode()
        body = kubeconfig("https://127.0.0.1:1", **{"certificate-authority-data": data})
        assert "context" in await self.message(write(body))

    async def test_a_pod_without_a_usable_service_account(self, in_pod):
        (in_pod / "ca.crt").write_text("")
        assert "automountServiceAccountToken" in await self.message(in_cluster_first=True)


class TestCredentials:
    async def test_basic_auth(self, write):
        user = {"username": "u", "password": "p"}
        opened = await load(FakeClock(), write(kubeconfig(user=user)))
        assert await authorization(opened) == "Basic " + base64.b64encode(b"u:p").decode()

    async def test_no_credential_at_all(self, write):
        opened = await load(FakeClock(), write(kubeconfig(user={})))
        assert await opened.headers() == {}

    async def test_ca_data_and_names_of_servers(self, write, pem):
        data = base64.b64encode(pem.encode()).decode()
        settings = {"certificate-authority-data": data, "tls-server-name": "api.example"}
        opened = await load(FakeClock(), write(kubeconfig("https://127.0.0.1:1", **settings)))
        assert opened.tls.context().check_hostname
        assert opened.server_name == "api.example"
        assert len(opened.tls.context().get_ca_certs()) == 1

    async def test_a7_a_token_file_is_read_again(self, write, tmp_path):
        """The library reads it once; and it keeps the line feed, which no header may contain."""
        token = tmp_path / "token"
        token.write_text("first\n")
        clock = FakeClock()
        opened = await load(clock, write(kubeconfig(user={"tokenFile": "token"})))
        assert await authorization(opened) == "Bearer first"
        token.write_text("second\n")
        assert await authorization(opened) == "Bearer first"
        clock.now += 60
        assert await authorization(opened) == "Bearer second"
        for broken in (lambda: token.write_text(""), token.unlink):
            broken()
            clock.now += 60
            assert await authorization(opened) == "Bearer second"

    async def test_a7_the_pods_token_is_read_again(self, in_pod, monkeypatch):
        opened = await load(FakeClock(), in_cluster_first=True)
        assert await authorization(opened) == "bearer pod-token"
        (in_pod / "token").write_text("rotated")
        hook = opened.configuration.refresh_api_key_hook
        loader = hook.__closure__[0].cell_contents
        loader.token_expires_at -= timedelta(minutes=2)
        assert await authorization(opened) == "bearer rotated"
        (in_pod / "token").unlink()
        loader.token_expires_at -= timedelta(minutes=2)
        assert await authorization(opened) == "bearer rotated"

    async def test_the_pods_token_is_read_at_once_when_the_server_refuses_the_old_one(self, in_pod):
        opened = await load(FakeClock(), in_cluster_first=True)
        (in_pod / "token").write_text("rotated")
        assert await authorization(opened) == "bearer pod-token"
        await opened.renew()
        assert await authorization(opened) == "bearer rotated"
        (in_pod / "token").unlink()
        await opened.renew()
        assert await authorization(opened) == "bearer rotated"

    async def test_any_refresh_hook_runs_for_every_request(self, server, write):
        server.fail_always("GET", "/", answer({}))
        opened = await load(FakeClock(), write(kubeconfig(server.url)))
        calls = []

        async def hook(configuration):
            calls.append(1)
            configuration.api_key["BearerToken"] = f"Bearer {len(calls)}"

        opened.configuration.refresh_api_key_hook = hook
        async with RestApi(opened, FakeClock()) as api:
            await api.request(Request("GET", "/"))
            await api.request(Request("GET", "/"))
        assert [r.headers["Authorization"] for r in server.requests] == ["Bearer 1", "Bearer 2"]


class TestExecPlugins:
    @pytest.fixture
    def plugin(self, tmp_path, write):
        script = tmp_path / "plugin.py"
        script.write_text(PLUGIN)

        def make(
            server: str = "http://127.0.0.1:1", failing: tuple[int, ...] = (), **status
        ) -> str:
            arguments = [str(script), str(tmp_path / "runs"), json.dumps(status)]
            user = {
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "command": sys.executable,
                    "args": [*arguments, *map(str, failing)],
                    "interactiveMode": "Never",
                }
            }
            return write(kubeconfig(server, user))

        return make

    @staticmethod
    def expiring(clock: FakeClock, seconds: float) -> str:
        at = datetime.fromtimestamp(clock.now_us() / 1e6, UTC) + timedelta(seconds=seconds)
        return at.isoformat().replace("+00:00", "Z")

    async def test_a_token_without_a_date_is_asked_for_once(self, plugin):
        clock = FakeClock()
        opened = await load(clock, plugin())
        for _ in range(3):
            assert await authorization(opened) == "Bearer t1"
            clock.now += 3600

    async def test_an_expired_token_is_renewed_once_for_all(self, plugin):
        clock = FakeClock()
        opened = await load(clock, plugin(expirationTimestamp=self.expiring(clock, 900)))
        assert await authorization(opened) == "Bearer t1"
        clock.now += 880
        tokens = await asyncio.gather(*(authorization(opened) for _ in range(20)))
        assert set(tokens) == {"Bearer t2"}

    async def test_a_plugin_that_fails_later_leaves_the_old_token_and_is_asked_again(self, plugin):
        clock = FakeClock()
        expiring = self.expiring(clock, 900)
        opened = await load(clock, plugin(failing=(2,), expirationTimestamp=expiring))
        clock.now += 1000
        assert await authorization(opened) == "Bearer t1"
        clock.now += 10
        assert await authorization(opened) == "Bearer t3"

    async def test_a_plugin_that_fails_is_an_error_in_its_own_words(self, plugin):
        """The library logs it and goes on without a credential."""
        with pytest.raises(ConfigError, match="run `cloud login`"):
            await load(FakeClock(), plugin(failing=(1, 2)))

    async def test_a_plugin_that_does_not_exist(self, write):
        user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/no/such"}}
        with pytest.raises(ConfigError, match="/no/such"):
            await load(FakeClock(), write(kubeconfig(user=user)))

    async def test_a_refused_token_is_renewed_and_the_request_repeated(self, server, plugin):
        server.fail("POST", "/", refuse(401, "Unauthorized"))
        server.fail_always("POST", "/", answer({}))
        clock = FakeClock()
        opened = await load(clock, plugin(server.url))
        clock.now += 10
        async with RestApi(opened, clock) as api:
            assert (await api.request(Request("POST", "/", body={}))).status == 200
        sent = [request.headers["Authorization"] for request in server.requests]
        assert sent == ["Bearer t1", "Bearer t2"]

    async def test_a_server_that_refuses_every_token_does_not_run_the_plugin_per_request(
        self, server, plugin, tmp_path
    ):
        server.fail_always("GET", "/", refuse(401, "Unauthorized"))
        clock = FakeClock()
        opened = await load(clock, plugin(server.url))
        async with RestApi(opened, clock) as api:
            for _ in range(20):
                clock.now += 1
                assert (await api.request(Request("GET", "/"))).status == 401
        assert (tmp_path / "runs").read_text() == "3"

    async def test_a_401_with_a_static_token_is_an_answer(self, server, write):
        server.fail_always("GET", "/", refuse(401, "Unauthorized"))
        clock = FakeClock()
        opened = await load(clock, write(kubeconfig(server.url)))
        clock.now += 100
        async with RestApi(opened, clock) as api:
            assert (await api.request(Request("GET", "/"))).status == 401
        assert len(server.requests) == 1


@pytest.mark.parametrize("steps", range(4))
async def test_a_login_can_be_interrupted_in_each_of_its_steps(steps, write, monkeypatch):
    """Also in the last one, in which ``asyncio.wait_for`` of Python 3.11 loses a cancellation."""
    path, real = write(kubeconfig()), connection_module.KubeConfigLoader.load_and_set

    async def slowly(self, configuration):
        for _ in range(steps):
            await asyncio.sleep(0)
        await real(self, configuration)

    monkeypatch.setattr(connection_module.KubeConfigLoader, "load_and_set", slowly)
    for step in range(50):
        opening = asyncio.ensure_future(load(FakeClock(), path))
        for _ in range(step):
            await asyncio.sleep(0)
        if opening.done():
            break
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
    assert opening.done()
    assert step == steps + 1, "each step was interrupted"
