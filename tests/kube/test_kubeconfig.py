"""The light reader of kubeconfigs: what it understands, and what it leaves to the library."""

import base64
import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcad.kube import kubeconfig
from mcad.kube.clock import RealClock
from mcad.kube.connection import load
from mcad.kube.errors import ConfigError
from mcad.kube.kubeconfig import namespace, plain, read_context
from tests.kube.support import kubeconfig as a_kubeconfig

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*kubeconfig._PROXIES, "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)


def write(path: Path, *, cluster: Json | None = None, user: Json | None = None, **more: Any) -> str:
    content = a_kubeconfig(user=user or {}, **{"server": "http://127.0.0.1:1/"} | (cluster or {}))
    path.write_text(yaml.safe_dump(content | more))
    return str(path)


def test_the_namespace_is_that_of_the_context(tmp_path: Path) -> None:
    path = write(tmp_path / "config")
    assert namespace(path, None) == "default"
    assert namespace(path, "two") == "batch"
    assert namespace(path, "three") == "default"


@pytest.mark.parametrize("text", ["", "{", "- 1", "contexts: 1", "contexts: [1]", "a: b"])
def test_what_cannot_be_read_is_no_context(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    assert read_context(str(path), None) is None
    assert namespace(str(path), None) == "default"
    assert read_context(str(tmp_path / "none"), None) is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"garbage", "it is not a map with clusters, users and contexts"),
        (b"[]", "it is not a map with clusters, users and contexts"),
        (b"a: [1\n", "it is not YAML in line 2"),
        (b"\xe4\x00", "it is not text"),
        (b"clusters: foo", "clusters is not a list"),
        (b"contexts: [1]", "contexts[0] is not a map with a name and a context"),
        (b"users: [{name: u, user: [x]}]", "users[0].user is not a map"),
    ],
)
async def test_a_file_that_is_no_kubeconfig_is_named_with_the_fault(
    content: bytes, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "config"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        await load(RealClock(), str(path))
    told = f"{path} is not a kubeconfig: {words}; name another file with --kubeconfig"
    assert str(caught.value) == told


def test_the_first_of_several_files_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write(tmp_path / "a", **{"current-context": "two", "users": []})
    second = write(tmp_path / "b", user={"token": "of-b"}, cluster={"server": "http://b"})
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path / 'none'}:{second}")
    context = read_context(None, None)
    found = plain(context)
    assert (context.namespace, found.url) == ("batch", "http://127.0.0.1:1")
    assert found.headers == {"Authorization": "Bearer of-b"}


def test_a_token_file_is_looked_for_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    found = plain(read_context(write(tmp_path / "config", user={"tokenFile": "token"}), None))
    assert found.headers == {"Authorization": "Bearer secret"}


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({}, {"exec": {"command": "login"}}),
        ({}, {"auth-provider": {"name": "oidc"}}),
        ({}, {"username": "u", "password": "p"}),
        ({"proxy-url": "http://proxy"}, {}),
        ({"tls-server-name": "other"}, {}),
        ({"server": ""}, {}),
    ],
)
def test_what_takes_more_is_left_to_the_library(cluster: Json, user: Json, tmp_path: Path) -> None:
    context = read_context(write(tmp_path / "config", cluster=cluster, user=user), None)
    assert plain(context) is None


def test_a_proxy_is_left_to_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = read_context(write(tmp_path / "config"), None)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    assert plain(context) is None


def test_a_server_is_trusted_by_its_own_authority_only(tmp_path: Path) -> None:
    secure = {"server": "https://127.0.0.1:1"}
    found = plain(read_context(write(tmp_path / "config", cluster=secure), None))
    assert found.ssl_context.verify_mode is ssl.CERT_REQUIRED
    garbage = base64.b64encode(b"no certificate").decode()
    secure["certificate-authority-data"] = garbage
    context = read_context(write(tmp_path / "config", cluster=secure), None)
    with pytest.raises((OSError, ValueError)):
        plain(context)
