# SPDX-License-Identifier: Apache-2.0
"""A private certificate authority, and servers with certificates that it signed."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_SSL_REQUEST = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True)
class Authority:
    """A certificate authority. `file` is its own certificate, for clients that trust it."""

    folder: Path
    file: Path
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def server(self, host: str) -> ssl.SSLContext:
        """Return the TLS context of a server with this host name or address."""
        try:
            name: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            name = x509.DNSName(host)
        key = ec.generate_private_key(ec.SECP256R1())
        signed = (
            _builder(host, self.certificate.subject, key)
            .add_extension(x509.SubjectAlternativeName([name]), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        path = self.folder / f"{host}.pem"
        path.write_bytes(_pem(key) + signed.public_bytes(serialization.Encoding.PEM))
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(path)
        return context

    def client(self, name: str) -> Path:
        """Create a client certificate with this name; return one file with the certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        signed = _builder(name, self.certificate.subject, key).sign(self.key, hashes.SHA256())
        path = self.folder / f"{name}.client.pem"
        path.write_bytes(_pem(key) + signed.public_bytes(serialization.Encoding.PEM))
        return path


def authority(folder: Path, name: str = "Authority of a test") -> Authority:
    """Create a certificate authority, with its certificate in `folder`."""
    folder.mkdir(exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        _builder(name, subject, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "authority.pem"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return Authority(folder, file, key, certificate)


def _builder(name: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


@dataclass
class Listener:
    """A server that records the clients that send data after the handshake: only a client that trusts it does."""

    port: int = 0
    trusted_by: list[bytes] = field(default_factory=list)


@asynccontextmanager
async def listening(context: ssl.SSLContext, *, postgres: bool = False) -> AsyncIterator[Listener]:
    """Listen for HTTP over TLS, or for PostgreSQL's TLS negotiation; the answers have no useful content."""
    listener = Listener()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ssl.SSLError, asyncio.IncompleteReadError):
            if postgres:
                assert await reader.readexactly(8) == _SSL_REQUEST
                writer.write(b"S")
                await writer.drain()
                await writer.start_tls(context)
            received = await reader.read(64)
            if received:
                listener.trusted_by.append(received)
                writer.write(_NOT_FOUND if not postgres else b"")
                await writer.drain()
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=None if postgres else context)
    listener.port = server.sockets[0].getsockname()[1]
    try:
        yield listener
    finally:
        server.close()
