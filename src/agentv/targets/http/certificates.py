"""TLS contexts that the clients of all targets share."""

from __future__ import annotations

import os
import ssl
from functools import lru_cache


def tls_context(*addresses: str | None) -> ssl.SSLContext:
    """A context for connections to these addresses, each a server or a proxy; None is no address.

    It trusts the authorities of `certifi`, or those that SSL_CERT_FILE and SSL_CERT_DIR name. Reading them takes 17 ms,
    so each set is read once in a process, and not at all where no address begins with `https`. In that case, an
    encrypted connection would fail.

    Raises:
        OSError: the file of SSL_CERT_FILE cannot be read, or has no certificate. OpenSSL ignores a missing directory.
    """
    if any(address is not None and address.lower().startswith("https:") for address in addresses):
        return _trusting(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    return _trusting_nobody()


@lru_cache(maxsize=8)
def _trusting(file: str | None, directory: str | None) -> ssl.SSLContext:
    import certifi

    if file or directory:
        try:
            return ssl.create_default_context(cafile=file or None, capath=directory or None)
        except OSError as error:
            message = f"cannot read the certificates of SSL_CERT_FILE: {file}: {error.strerror}"
            raise OSError(message) from error
    return ssl.create_default_context(cafile=certifi.where())


@lru_cache(maxsize=1)
def _trusting_nobody() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
