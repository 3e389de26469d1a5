"""Options of ``mcad run``: ports and journal."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from mcad.cli.arguments.options import record
from mcad.client.errors import McadError
from mcad.controller.metrics_listener import MetricsListening
from mcad.controller.visibility.endpoint import Endpoint
from mcad.controller.visibility.listener import Listening
from mcad.journal.writer import Limits


class Address(Struct, frozen=True):
    """An address to listen at; port 0 is a free port."""

    host: str
    port: int


class AddressType(click.ParamType[Address]):
    """``HOST:PORT``, ``[IPV6]:PORT`` or ``:PORT`` for all interfaces."""

    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the address."""
        if isinstance(value, Address):
            return value
        host, colon, port = str(value).rpartition(":")
        if not colon or not port.isdecimal() or int(port) > 65535:
            self.fail(f"{value!r} is not HOST:PORT, such as 127.0.0.1:8080", param, ctx)
        return Address(host.strip("[]") or "0.0.0.0", int(port))  # noqa: S104 - asked for


class JournalOptions(Struct, frozen=True):
    """--journal and --journal-files."""

    journal: Path | None
    journal_files: int


class MetricsOptions(Struct, frozen=True):
    """--metrics and --metrics-certs."""

    metrics: Address | None
    metrics_certs: Path

    def listening(self) -> MetricsListening | None:
        """Where metrics are served over TLS; None if they are not."""
        if self.metrics is None:
            return None
        return MetricsListening(self.metrics.host, self.metrics.port, self.metrics_certs)


class VisibilityOptions(Struct, frozen=True):
    """--visibility and related options."""

    visibility: Address | None
    visibility_certs: Path
    visibility_service: str
    visibility_ip: str

    def listening(self) -> Listening | None:
        """Where the visibility API listens, None if it is off; raises ``McadError``."""
        if self.visibility is None:
            return None
        endpoint = None
        if self.visibility_service:
            namespace, slash, name = self.visibility_service.partition("/")
            if not (namespace and slash and name):
                raise McadError(
                    f"--visibility-service {self.visibility_service}: give NAMESPACE/NAME"
                )
            endpoint = Endpoint(namespace, name, _ip(self.visibility_ip))
        where = self.visibility
        return Listening(where.host, where.port, self.visibility_certs, endpoint)


def _ip(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError as error:
        raise McadError(f"--visibility-ip {text!r}: give the address of the pod") from error


journal_options = record(
    "keep",
    JournalOptions,
    click.option(
        "--journal",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help="Write a journal of every decision to this folder, for `mcad replay`.",
    ),
    click.option(
        "--journal-files",
        type=click.IntRange(min=2),
        default=Limits().files,
        show_default=True,
        help=f"The number of files of {Limits().file_bytes >> 20} MiB to keep.",
    ),
)

metrics_options = record(
    "scraped",
    MetricsOptions,
    click.option(
        "--metrics",
        type=AddressType(),
        help="Address of metrics over TLS, for callers that may get the path /metrics; then --http"
        " serves them on loopback only.",
    ),
    click.option(
        "--metrics-certs",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        default=Path("/etc/mcad-metrics"),
        show_default=True,
        help="Folder with tls.crt and tls.key of --metrics.",
    ),
)

visibility_options = record(
    "visible",
    VisibilityOptions,
    click.option(
        "--visibility",
        type=AddressType(),
        help="Address of the visibility API, which is served while this process leads.",
    ),
    click.option(
        "--visibility-certs",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        default=Path("/etc/mcad-visibility"),
        show_default=True,
        help="Folder with tls.crt and tls.key of the visibility API.",
    ),
    click.option(
        "--visibility-service",
        metavar="NAMESPACE/NAME",
        default="",
        help="Service of the visibility API, to write its EndpointSlice; none by default.",
    ),
    click.option(
        "--visibility-ip",
        metavar="IP",
        envvar="POD_IP",
        default="",
        help="Address of this process for the EndpointSlice; default: POD_IP.",
    ),
)
