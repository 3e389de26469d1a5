"""What a TLS connection to an API server trusts; made without the client library."""

import ssl


def trust(
    *, cafile: str | None = None, cadata: str | None = None, verify: bool = True
) -> ssl.SSLContext:
    """The system's CAs, or these in their place; raises OSError or ValueError (also SSLError).

    ``cafile`` is a path and ``cadata`` the PEM itself. Without ``verify`` all are trusted.
    """
    context = ssl.create_default_context(cafile=cafile, cadata=cadata)
    # Python 3.13 became stricter than Go: CAs that kubeadm and others made would be refused.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
