# SPDX-License-Identifier: Apache-2.0
"""Load the certificates that outgoing connections of the gateway trust.

As in OpenSSL's programs, the certificates in `SSL_CERT_FILE` and `SSL_CERT_DIR` replace those of the system. Libraries
that do not read the two variables (clients of object stores) receive the same certificates as text or as a file.
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from dataclasses import dataclass
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Final

_PEM: Final = "-----BEGIN CERTIFICATE-----"
_BLOCK: Final = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_MOST_BYTES: Final = 16_777_216


class CertificatesUnusable(Exception):
    """A file or directory of certificates is unusable. The message names the variable and the path."""


@dataclass(frozen=True, slots=True)
class Trust:
    """Trusted certificates. `context` is for connections of the standard library. `pem` (text) and `bundle` (path of a
    file) are the same certificates for other libraries; None means the defaults of the library.
    """

    context: ssl.SSLContext
    pem: str | None = None
    bundle: str | None = None


def trusted(file: str | None, directory: str | None) -> Trust:
    """Return the certificates in `file` (SSL_CERT_FILE) and `directory` (SSL_CERT_DIR). If neither is set, return the
    system's.

    All certificate files of the directory are read, because mounted secrets lack the hashed names that OpenSSL expects.
    Raises CertificatesUnusable.
    """
    if not file and not directory:
        return Trust(ssl.create_default_context())
    texts = [] if not file else [_certificates(Path(file), "SSL_CERT_FILE")]
    if directory:
        texts += _of_directory(Path(directory))
    pem = "\n".join(dict.fromkeys(texts)) + "\n"
    return Trust(ssl.create_default_context(cadata=pem), pem, file if file and not directory else _kept(pem))


def for_postgres(mode: str, trust: Trust, root_certificate: str | None) -> ssl.SSLContext | str:
    """Return the argument `ssl` of asyncpg that corresponds to an `sslmode` of libpq.

    It is an SSL context for `verify-ca` and `verify-full`, and the mode itself for all others. `root_certificate` is
    the path of a certificate file that replaces `trust` for PostgreSQL. Raises CertificatesUnusable.
    """
    if mode not in ("verify-ca", "verify-full"):
        return mode
    if root_certificate:
        pem = _certificates(Path(root_certificate), "PG_SSL_ROOT_CERT")
        context = ssl.create_default_context(cadata=pem)
    else:
        context = ssl.create_default_context(cadata=trust.pem) if trust.pem else ssl.create_default_context()
    context.check_hostname = mode == "verify-full"
    return context


def _of_directory(directory: Path) -> list[str]:
    if not directory.is_dir():
        raise CertificatesUnusable(f"SSL_CERT_DIR must be a directory, and {directory} is not one")
    # The directory of an operating system has two names for each certificate. Each text is read once, since OpenSSL
    # needs a millisecond to read it.
    found: dict[str, str] = {}
    for path in sorted(directory.iterdir()):
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            continue
        text = path.read_text(errors="replace")
        if _PEM in text and text not in found:
            found[text] = _certificates(path, "SSL_CERT_DIR")
    if not found:
        raise CertificatesUnusable(
            f"no file in the directory of SSL_CERT_DIR, {directory}, contains a certificate in PEM form"
        )
    return list(found.values())


def _certificates(path: Path, variable: str) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise CertificatesUnusable(f"the file of {variable}, {path}, is larger than {_MOST_BYTES:,} bytes")
        text = path.read_text(errors="replace")
    except OSError as error:
        raise CertificatesUnusable(f"the file of {variable}, {path}, cannot be read: {error.strerror}") from None
    try:
        # The context is not used. Libraries report unreadable certificates in different ways, and some not at all.
        ssl.create_default_context(cadata=text)
    except (ssl.SSLError, ValueError):
        raise CertificatesUnusable(f"the file of {variable}, {path}, contains no certificate in PEM form") from None
    # Only certificates: the file may also contain a private key, which must not be copied.
    return "\n".join(_BLOCK.findall(text))


def _kept(pem: str) -> str:
    """Return the path of a temporary file with these certificates, for libraries that accept only a path.

    On Linux it is an anonymous file in memory, so a killed process leaves nothing behind. Elsewhere the process deletes
    a named file when it exits. Certificates are public, so the file needs no protection.
    """
    if hasattr(os, "memfd_create"):
        # The descriptor is never closed: the path is valid only while it is open, here and in forked processes.
        unnamed = os.memfd_create("lakegate-trust")
        with open(unnamed, "w", closefd=False) as file:
            file.write(pem)
        return f"/proc/self/fd/{unnamed}"
    with tempfile.NamedTemporaryFile("w", prefix="lakegate-trust-", suffix=".pem", delete=False) as named:
        named.write(pem)
    # Unlike `atexit`, `Finalize` also runs in worker processes, and a worker does not run the finalizers of its parent.
    Finalize(None, Path(named.name).unlink, kwargs={"missing_ok": True}, exitpriority=0)
    return named.name
