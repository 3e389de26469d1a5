"""What a kubeconfig says, read without the client library, which takes most of a second to import.

That is enough to know the namespace of a context, and for one quick request with a credential in
the file. What needs more (an exec plugin, a proxy) is left to ``connection.load``.
"""

from __future__ import annotations

import base64
import os
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from mcad.kube.impersonation import KEYS, Pairs, impersonation
from mcad.kube.trust import trust
from mcad.kube.types import Json

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_PLAIN = {*_FILES, *(f"{name}-data" for name in _FILES), "token", *KEYS}
_NOT_PLAIN = {"proxy-url", "tls-server-name"}
_PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


class Context(Struct, frozen=True):
    """One context: its cluster and its user as they stand there, file names made absolute."""

    cluster: Json
    user: Json
    namespace: str


class Plain(Struct, frozen=True):
    """An API server that can be asked without anything but the kubeconfig."""

    url: str
    headers: Mapping[str, str]
    ssl_context: ssl.SSLContext | None
    impersonated: Pairs = ()


def read_context(kubeconfig: str | None, context: str | None) -> Context | None:
    """The context that kubectl would use; None where there is none, or it cannot be read."""
    paths = kubeconfig or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    try:
        files = [_load(Path(path).expanduser()) for path in paths.split(os.pathsep) if path]
        name = context or next(filter(None, (one.get("current-context") for one in files)), "")
        found = _named(files, "contexts", "context", name)
        if found is None:
            return None
        cluster = _named(files, "clusters", "cluster", found.get("cluster"))
        user = _named(files, "users", "user", found.get("user"))
        return Context(cluster or {}, user or {}, str(found.get("namespace") or "default"))
    except (OSError, ValueError, AttributeError, TypeError):
        return None


def namespace(kubeconfig: str | None, context: str | None) -> str:
    """The namespace of the context, else that of this pod, else ``default``."""
    found = read_context(kubeconfig, context)
    if found is not None:
        return found.namespace
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text().strip() or "default"
    except OSError:
        return "default"


def plain(context: Context) -> Plain | None:
    """How to ask its server at once; None if that needs a plugin, a proxy or an unknown key.

    Raises OSError or ValueError for files that cannot be used.
    """
    cluster, user = context.cluster, context.user
    url = str(cluster.get("server") or "").rstrip("/")
    if not url or not user.keys() <= _PLAIN or cluster.keys() & _NOT_PLAIN:
        return None
    if any(os.environ.get(name) for name in _PROXIES):
        return None
    token = _text(user, "tokenFile") or user.get("token") or ""
    headers = {"Authorization": f"Bearer {token.strip()}"} if token else {}
    secure = urlsplit(url).scheme == "https"
    context_of_tls = _ssl_context(cluster, user) if secure else None
    return Plain(url, headers, context_of_tls, impersonation(user))


def read_file(path: Path) -> Json:
    """A file's content; empty where there is no such file.

    Raises OSError, or ValueError with what keeps it from being a kubeconfig.
    """
    if not path.is_file():
        return {}
    import yaml  # noqa: PLC0415 - where no file is, it is not needed

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), loader)  # noqa: S506 - a safe one
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a kubeconfig: it is not text") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise ValueError(f"{path} is not a kubeconfig: it is not YAML{where}") from None
    if fault := _fault({} if content is None else content):
        raise ValueError(f"{path} is not a kubeconfig: {fault}")
    return dict(content or {})


_LISTS = (("clusters", "cluster"), ("users", "user"), ("contexts", "context"))


def _fault(content: Any) -> str:
    """The part whose shape is not a kubeconfig's, "" if nothing is."""
    if not isinstance(content, dict):
        return "it is not a map with clusters, users and contexts"
    for kind, key in _LISTS:
        entries = content.get(kind)
        if entries is not None and not isinstance(entries, list):
            return f"{kind} is not a list"
        for number, one in enumerate(entries or ()):
            if not isinstance(one, dict) or not isinstance(one.get("name"), str):
                return f"{kind}[{number}] is not a map with a name and a {key}"
            if not isinstance(one.get(key) or {}, dict):
                return f"{kind}[{number}].{key} is not a map"
    return ""


def _load(path: Path) -> Json:
    """A file's content, with absolute paths in it."""
    content = read_file(path)
    for inner in _inner(content):
        for key in _FILES:
            if inner.get(key):
                inner[key] = str(path.parent.absolute() / inner[key])
    return content


def _inner(content: Json) -> Iterator[Json]:
    for kind, key in (("clusters", "cluster"), ("users", "user")):
        yield from (one[key] for one in content.get(kind) or () if one.get(key))


def _named(files: list[Json], kind: str, key: str, name: object) -> Json | None:
    """The first entry of that name in any file, as kubectl merges them."""
    for content in files:
        for one in content.get(kind) or ():
            if one.get("name") == name:
                return dict(one.get(key) or {})
    return None


def _text(entry: Json, key: str) -> str:
    """The content of a file or, encoded, of the entry itself; the entry wins, as for kubectl."""
    if data := entry.get(f"{key}-data"):
        return base64.b64decode(data).decode()
    return Path(entry[key]).read_text(encoding="utf-8") if entry.get(key) else ""


def _ssl_context(cluster: Json, user: Json) -> ssl.SSLContext:
    made = trust(
        cadata=_text(cluster, "certificate-authority") or None,
        verify=not cluster.get("insecure-skip-tls-verify"),
    )
    certificate, key = _text(user, "client-certificate"), _text(user, "client-key")
    if certificate:
        from tempfile import NamedTemporaryFile  # noqa: PLC0415 - for certificates only

        with NamedTemporaryFile("w") as file:  # private to us, and gone at once
            file.write(f"{certificate}\n{key}\n")
            file.flush()
            made.load_cert_chain(file.name)
    return made
