"""The address of the API server and our credentials, taken from ``kubernetes.aio``.

Files, contexts, certificates, in-cluster tokens and exec plugins are the client library's
business; this module orders them, refreshes what expires and explains what is wrong. It sends
nothing.
"""

import asyncio
import logging
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import aiohttp
import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config
from kubernetes.aio.config.exec_provider import ExecProvider
from kubernetes.aio.config.kube_config import ConfigNode, KubeConfigLoader, KubeConfigMerger
from msgspec import Struct

from mcad.kube.clock import Clock
from mcad.kube.errors import ConfigError
from mcad.kube.impersonation import Pairs, impersonation
from mcad.kube.kubeconfig import SERVICE_ACCOUNT, read_file
from mcad.kube.proxy import Proxy, environment_proxy, read_proxy
from mcad.kube.tls import Tls

REREAD_S = 60.0  # client-go's period for token files
RENEW_S_MIN = 10.0  # a server that refuses every token must not make us run a plugin per request
EXPIRY_SKEW_S = 30.0  # a token must outlive the request that carries it
LOGIN_S_MAX = 60.0  # a plugin may open a browser when a person runs the CLI

_log = logging.getLogger(__name__)

# What the library and its helpers raise for files that are missing, torn or not what they claim.
LOAD_ERRORS = (
    ConfigException,
    yaml.YAMLError,
    aiohttp.ClientError,
    OSError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    TimeoutError,
)


async def _nothing_to_renew() -> None:
    pass


class Credential(Struct, frozen=True):
    """The identity shown to the server, and the authorities trusted for it; compared to see whether
    it is new."""

    headers: Mapping[str, str]
    ssl_context: ssl.SSLContext | None


class Connection(Struct, frozen=True):
    """One API server and one identity. ``configuration`` is the library's, hooks included."""

    configuration: Configuration
    tls: Tls | None
    namespace: str
    origin: str  # for messages: where this came from
    renew: Callable[[], Awaitable[None]] = _nothing_to_renew
    """Get a new credential where there can be one; called after a 401."""
    proxy: Proxy | None = None
    impersonated: Pairs = ()
    """The headers of the user as which requests are made."""

    @property
    def base_url(self) -> str:
        """Scheme, host, port and path prefix, without a slash at the end."""
        return str(self.configuration.host).rstrip("/")

    @property
    def server_name(self) -> str | None:
        """The name to expect in the server's certificate, if it is not the host's."""
        name = self.configuration.tls_server_name
        return str(name) if name else None

    async def credential(self) -> Credential:
        """With what to make one request."""
        headers = await self.headers()  # which may bring a new certificate
        return Credential(headers, self.tls.context() if self.tls is not None else None)

    async def headers(self) -> Mapping[str, str]:
        """The authentication headers of one request; runs the library's refresh hook.

        A credential that cannot be refreshed now is used as long as the server accepts it.
        """
        try:
            key = await self.configuration.get_api_key_with_prefix(
                "BearerToken", alias="authorization"
            )
        except LOAD_ERRORS as error:
            _log.warning("credential not refreshed origin=%s error=%s", self.origin, error)
            api_key = self.configuration.api_key
            key = api_key.get("BearerToken", api_key.get("authorization"))
        # Files end with a line feed, which the library keeps and no header may contain.
        return {"Authorization": str(key).strip()} if key else {}


async def load(
    clock: Clock,
    kubeconfig: str | None = None,
    context: str | None = None,
    *,
    in_cluster_first: bool = False,
) -> Connection:
    """The connection that kubectl would use; raises ``ConfigError``.

    Order: the file named, else ``KUBECONFIG`` or ``~/.kube/config``, else the service account
    of this pod. ``in_cluster_first`` (a controller) tries the pod first unless a file or a
    context is named.
    """
    named = kubeconfig is not None or context is not None
    if in_cluster_first and not named and _in_cluster():
        return _load_in_cluster()
    paths = kubeconfig or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    files = [Path(path).expanduser() for path in paths.split(os.pathsep) if path]
    if any(file.is_file() for file in files):
        _check(files)
        return await _load_kubeconfig(clock, paths, context)
    if not named and _in_cluster():
        return _load_in_cluster()
    raise ConfigError(
        f"no kubeconfig at {paths} and this is not a pod with a service account: "
        "name a file with --kubeconfig or in KUBECONFIG"
    )


def _in_cluster() -> bool:
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (SERVICE_ACCOUNT / "token").exists()


def _load_in_cluster() -> Connection:
    configuration = Configuration()
    origin = f"service account in {SERVICE_ACCOUNT}"
    try:
        load_incluster_config(client_configuration=configuration)
        namespace_file = SERVICE_ACCOUNT / "namespace"
        namespace = namespace_file.read_text().strip() if namespace_file.exists() else "default"
        tls = _tls(configuration)
    except LOAD_ERRORS as error:
        raise ConfigError(
            f"{origin}: {error}: is automountServiceAccountToken on for this pod?"
        ) from error

    async def renew() -> None:
        """Read the token now; the library looks at its file once a minute."""
        try:
            load_incluster_config(client_configuration=configuration)
        except LOAD_ERRORS as error:
            _log.warning("credential not renewed error=%s", error)

    proxy = environment_proxy(configuration.host, os.environ)
    return Connection(configuration, tls, namespace, origin, renew, proxy)


def _check(files: list[Path]) -> None:
    """Refuse a file of another shape: the library's errors are about its own code."""
    for file in files:
        try:
            read_file(file)
        except OSError as error:
            raise ConfigError(f"kubeconfig {file} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise ConfigError(f"{error}; name another file with --kubeconfig") from error


async def _load_kubeconfig(clock: Clock, paths: str, context: str | None) -> Connection:
    configuration = Configuration()
    origin = f"kubeconfig {paths}, " + (f"context {context}" if context else "current context")
    try:
        files = KubeConfigMerger(paths)
        loader = KubeConfigLoader(files.config, active_context=context, config_base_path=None)
        selected = loader.current_context["context"]
        user = _user(files.config, selected.get("user"))
        await _login(loader, configuration, user)
        tls = _tls(configuration)
    except LOAD_ERRORS as error:
        names = "kubectl config get-contexts"
        raise ConfigError(f"{origin}: {error}: look at it with `{names}`") from error
    if configuration.proxy:
        proxy: Proxy | None = read_proxy(configuration.proxy, f"{origin}: proxy-url")
    else:
        proxy = environment_proxy(configuration.host, os.environ)
    namespace = str(selected.get("namespace") or "default")
    credential = _Credential(clock, loader, configuration, user)
    configuration.refresh_api_key_hook = credential.refresh
    return Connection(
        configuration, tls, namespace, origin, credential.renew, proxy, impersonation(user)
    )


def _user(config: ConfigNode, name: str | None) -> Mapping[str, object]:
    """The user entry of a context; a plain dict, empty where there is none."""
    entry = config["users"].get_with_name(name, safe=True) if name else None
    if entry is None or "user" not in entry:
        raise ConfigException(f"the context's user {name!r} is not among the users")
    return entry["user"].value or {}


async def _login(
    loader: KubeConfigLoader, configuration: Configuration, user: Mapping[str, object]
) -> None:
    async with asyncio.timeout(LOGIN_S_MAX):
        await loader.load_and_set(configuration)
    if "exec" in user and not (configuration.api_key or configuration.cert_file):
        # The library logs why a plugin failed and goes on anonymously. Ask again, for the words.
        plugin = ExecProvider(ConfigNode("exec", user["exec"]))
        async with asyncio.timeout(LOGIN_S_MAX):
            await plugin.run()
        raise ConfigException("the exec plugin gave neither a token nor a certificate")


class _Credential:
    """Keeps a kubeconfig's credential fresh by letting the library load it again when due.

    The library itself loads it once. Static tokens and certificates never change; a token file
    is read again every minute; a plugin runs when its token expires, or when the server refuses
    a token without a date. While that fails the old one stays: the server knows best.
    """

    def __init__(
        self,
        clock: Clock,
        loader: KubeConfigLoader,
        configuration: Configuration,
        user: Mapping[str, object],
    ) -> None:
        self._clock = clock
        self._loader = loader
        self._configuration = configuration
        self._on_refusal = "exec" in user or "tokenFile" in user or "auth-provider" in user
        self._periodic = "tokenFile" in user or "auth-provider" in user
        self._loaded_at = clock.monotonic()
        self._expires_us = self._expiry()
        self._flight: asyncio.Task[None] | None = None

    async def refresh(self, _configuration: Configuration) -> None:
        """The library's hook: called before every request."""
        if self._due():
            await self._load_once()

    async def renew(self) -> None:
        """Renew a credential that the server refused."""
        if self._on_refusal and self._age() >= RENEW_S_MIN:
            try:
                await self._load_once()
            except LOAD_ERRORS as error:
                _log.warning("credential not renewed error=%s", error)

    def _age(self) -> float:
        return self._clock.monotonic() - self._loaded_at

    def _due(self) -> bool:
        if self._flight is not None:
            return True
        if self._expires_us is not None:
            left_us = self._expires_us - self._clock.now_us()
            return left_us < EXPIRY_SKEW_S * 1e6 and self._age() >= RENEW_S_MIN
        return self._periodic and self._age() >= REREAD_S

    def _expiry(self) -> int | None:
        expiry = getattr(self._loader, "exec_plugin_expiry", None)
        return int(expiry.timestamp() * 1e6) if expiry is not None else None

    async def _load_once(self) -> None:
        # All requests wait for one load. The shield keeps it alive when one of them gives up.
        if self._flight is None:
            self._flight = asyncio.ensure_future(self._load())
            self._flight.add_done_callback(self._landed)
        await asyncio.shield(self._flight)

    def _landed(self, flight: "asyncio.Task[None]") -> None:
        self._flight = None
        if not flight.cancelled():
            flight.exception()  # seen by those that wait, if there still are any

    async def _load(self) -> None:
        self._loaded_at = self._clock.monotonic()
        if self._expires_us is not None:
            vars(self._loader).pop("exec_plugin_expiry", None)  # else the plugin is not run
        async with asyncio.timeout(LOGIN_S_MAX):
            await self._loader.load_and_set(self._configuration)
        self._expires_us = self._expiry() or self._expires_us


def _tls(configuration: Configuration) -> Tls | None:
    return Tls(configuration) if str(configuration.host).startswith("https:") else None
