"""The TLS material of a connection, read anew whenever it is another.

Certificates end and are replaced: a plugin gives new ones, kubelet and cert-manager write new files
where the old ones were, the CA in a service account is rotated. What was read at the start would be
refused some day.
"""

import logging
import os
import ssl

from kubernetes.aio.client import Configuration

from mcad.kube.trust import trust

_log = logging.getLogger(__name__)

Mark = tuple[object, ...]
"""Which files there are, and what tells one content of them from another."""


class Tls:
    """The context for new connections; those that are open go on with what they began with."""

    def __init__(self, configuration: Configuration) -> None:
        """Raises OSError or ValueError for files that cannot be used."""
        self._configuration = configuration
        self._mark = _mark(configuration)
        self._context = _read(configuration)

    def context(self) -> ssl.SSLContext:
        """What to use now; files that cannot be read at present leave it as it was."""
        mark = _mark(self._configuration)
        if mark != self._mark:
            self._mark = mark  # what is torn now is whole, and another, in a moment
            try:
                self._context = _read(self._configuration)
            except (OSError, ValueError) as error:
                _log.warning("new certificates cannot be used error=%s", error)
            else:
                _log.info("new certificates are used")
        return self._context


def _mark(configuration: Configuration) -> Mark:
    paths = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    return tuple((path, _state(path)) for path in paths)


def _state(path: str | None) -> tuple[int, ...]:
    if not path:
        return ()
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def _read(configuration: Configuration) -> ssl.SSLContext:
    context = trust(cafile=configuration.ssl_ca_cert, verify=configuration.verify_ssl)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context
