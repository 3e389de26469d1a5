"""Which proxy leads to an API server: the rules of Go, and so of kubectl (x/net/http/httpproxy).

aiohttp knows the environment, too, but not networks in NO_PROXY, with which clusters exclude their
own addresses. What is read here is not looked at again: the environment of a process is fixed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from mcad.kube.errors import ConfigError

PORTS = {"http": 80, "https": 443}


class Proxy(Struct, frozen=True):
    """A proxy to talk to. ``url`` is without user and password, which no log may show."""

    url: str
    user: str = ""
    password: str = ""

    def __str__(self) -> str:
        """Fit for people and logs."""
        return self.url.replace("://", "://***@", 1) if self.user else self.url


def read_proxy(text: str, origin: str) -> Proxy:
    """A proxy's URL; a bare ``host:port`` is http. Raises ``ConfigError`` naming ``origin``."""
    whole = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(whole)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"{origin}: it is no URL of a proxy") from error
    if parts.scheme not in PORTS or not host:
        raise ConfigError(
            f"{origin}: only proxies with a URL such as http://proxy.example:3128 are supported"
        )
    place = f"[{host}]" if ":" in host else host
    url = f"{parts.scheme}://{place}:{port or PORTS[parts.scheme]}"
    return Proxy(url, unquote(parts.username or ""), unquote(parts.password or ""))


def environment_proxy(url: str, environ: Mapping[str, str]) -> Proxy | None:
    """The proxy that the environment wants for a URL; raises ``ConfigError``."""
    parts = urlsplit(url)
    name = f"{parts.scheme.upper()}_PROXY"
    text = environ.get(name) or environ.get(name.lower()) or ""
    excluded = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    port = parts.port or PORTS.get(parts.scheme, 0)
    if not text or _is_excluded((parts.hostname or "").lower().rstrip("."), port, excluded):
        return None
    return read_proxy(text, name)


def _is_excluded(host: str, port: int, excluded: str) -> bool:
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(entry, host, address, port) for entry in _entries(excluded))


def _entries(excluded: str) -> Iterator[str]:
    return filter(None, (entry.strip().lower() for entry in excluded.split(",")))


def _matches(entry: str, host: str, address: IPv4Address | IPv6Address | None, port: int) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return address is not None and address in ip_network(entry, strict=False)
        except ValueError:
            return False
    name, wanted_port = _split(entry)
    if wanted_port and wanted_port != str(port):
        return False
    if (same := _address(name)) is not None:
        return same == address
    suffix = name.removeprefix("*")
    return host == suffix or host.endswith(suffix if suffix.startswith(".") else f".{suffix}")


def _split(entry: str) -> tuple[str, str]:
    """Name and port of ``name:port``, ``[::1]:port``, ``name`` or ``::1``."""
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, rest.removeprefix(":")
    name, colon, port = entry.rpartition(":")
    return (name, port) if colon and ":" not in name else (entry, "")


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
