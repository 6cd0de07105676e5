# SPDX-License-Identifier: Apache-2.0
"""Whom the gateway's own connections trust: one place makes it, and everything that connects is given it.

`SSL_CERT_FILE` and `SSL_CERT_DIR` are heeded as OpenSSL's own programs do: when one is set, its certificates stand in
the place of the system's. Libraries that would not look there by themselves (those that speak to object stores) are
given the same certificates in the form they take.
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
    """What `SSL_CERT_FILE` or `SSL_CERT_DIR` names holds no certificate that can be used; the message says which."""


@dataclass(frozen=True, slots=True)
class Trust:
    """`context` is for connections of Python's own; `pem` and `bundle` are the same certificates as text and as a file,
    None where the libraries' own are meant.
    """

    context: ssl.SSLContext
    pem: str | None = None
    bundle: str | None = None


def trusted(file: str | None, directory: str | None) -> Trust:
    """What the two variables say; the system's certificates when neither is set. Raises CertificatesUnusable.

    All certificates of a directory count, also those without OpenSSL's hashed names: a mounted secret has none.
    """
    if not file and not directory:
        return Trust(ssl.create_default_context())
    texts = [] if not file else [_certificates(Path(file), "SSL_CERT_FILE")]
    if directory:
        texts += _of_directory(Path(directory))
    pem = "\n".join(texts) + "\n"
    return Trust(ssl.create_default_context(cadata=pem), pem, file if file and not directory else _kept(pem))


def for_postgres(mode: str, trust: Trust, root_certificate: str | None) -> ssl.SSLContext | str:
    """What asyncpg is given for libpq's `sslmode`: a context where the server has to prove who it is, else the mode.

    `root_certificate` is a file of certificates to trust for PostgreSQL alone. Raises CertificatesUnusable.
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
        raise CertificatesUnusable(f"SSL_CERT_DIR names {directory}, which is no directory")
    found = []
    for path in sorted(directory.iterdir()):
        if path.is_file() and path.stat().st_size <= _MOST_BYTES and _PEM in path.read_text(errors="replace"):
            found.append(_certificates(path, "SSL_CERT_DIR"))
    if not found:
        raise CertificatesUnusable(f"SSL_CERT_DIR names {directory}, where no file holds a certificate")
    return found


def _certificates(path: Path, variable: str) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise CertificatesUnusable(f"{variable} names {path}, which is too large to be certificates")
        text = path.read_text(errors="replace")
    except OSError as error:
        raise CertificatesUnusable(f"{variable} names {path}, which cannot be read: {error.strerror}") from None
    try:
        # Only to see that it can be read: every library says it in its own way, and some not at all.
        ssl.create_default_context(cadata=text)
    except (ssl.SSLError, ValueError):
        raise CertificatesUnusable(f"{variable} names {path}, which holds no certificate in PEM form") from None
    # A file may hold the key as well: that is nobody's to be copied.
    return "\n".join(_BLOCK.findall(text))


def _kept(pem: str) -> str:
    """A file with these certificates, for libraries that take nothing else; it is as public as they are, and goes with
    the process.

    Where the system has files without a name it is one of those: nothing is left when the process is killed.
    """
    if hasattr(os, "memfd_create"):
        # Never closed: it is good for this process and those it forks, for as long as they live.
        unnamed = os.memfd_create("lakegate-trust")
        with open(unnamed, "w", closefd=False) as file:
            file.write(pem)
        return f"/proc/self/fd/{unnamed}"
    with tempfile.NamedTemporaryFile("w", prefix="lakegate-trust-", suffix=".pem", delete=False) as named:
        named.write(pem)
    # Unlike atexit's, this is also heeded by worker processes, and never run by one for its parent.
    Finalize(None, Path(named.name).unlink, kwargs={"missing_ok": True}, exitpriority=0)
    return named.name
