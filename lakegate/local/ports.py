# SPDX-License-Identifier: Apache-2.0
"""Select loopback ports: fixed first choices, and free ports instead of those that are in use.

All ports are below 32768, outside of the range that common systems use for outgoing connections. A port from "bind to
0" is inside that range, where an outgoing connection can take it before the child binds it. Two stacks can still select
the same port at the same moment; the stack then starts again with other ports.
"""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
from pathlib import Path

import msgspec

from lakegate.local.errors import StackError

LOOPBACK = "127.0.0.1"
GRPC_OFFSET = 10_000
"""Difference between the gRPC port and the HTTP port of a SeaweedFS part."""

_LOWEST, _HIGHEST = 11_000, 32_000
_TRIES = 500


def without_tls() -> ssl.SSLContext:
    """Return a TLS context that trusts no certificate, for HTTP clients of the stack's own parts.

    The parts serve plain HTTP on loopback. By default each client would load the certificates of the system first,
    which takes tens of milliseconds of CPU, and a start of the stack makes dozens of clients.
    """
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Ports(msgspec.Struct, frozen=True, kw_only=True):
    """All ports of one stack. They are stored with its data, because a warehouse contains the address of its object
    store.
    """

    postgres: int
    openfga_http: int
    openfga_grpc: int
    opa: int
    s3: int
    store_master: int
    store_volume: int
    store_filer: int
    store_admin: int
    identity_provider: int
    gateway: int
    metrics: int


FIRST_CHOICES = Ports(
    gateway=8181,
    metrics=8182,
    identity_provider=8183,
    opa=8184,
    openfga_http=8185,
    openfga_grpc=8186,
    postgres=8187,
    s3=8188,
    store_master=8189,
    store_volume=8190,
    store_filer=8191,
    store_admin=8192,
)
"""Ports that do not change between two starts, so that the configuration of clients stays valid."""

BINDING = ("s3",)
"""Ports that existing warehouses contain. They stay, whatever the first choices are."""

_WITH_GRPC = ("s3", "store_master", "store_volume", "store_filer", "store_admin")


def is_free(port: int) -> bool:
    """Return True if ``port`` can be bound on the loopback address now."""
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def _fits(name: str, port: int) -> bool:
    return is_free(port) and (name not in _WITH_GRPC or is_free(port + GRPC_OFFSET))


def pick(kept: Ports | None = None, *, first: Ports | None = None) -> Ports:
    """Return ports that are free now.

    ``kept``: ports of the previous start. ``first``: ports to prefer to them, except the ports in ``BINDING``. Other
    free ports replace preferred ports that are taken.

    Raises:
        StackError: no free port was found in the range.
    """
    taken: set[int] = set()
    chosen: dict[str, int] = {}

    def claim(name: str, port: int) -> bool:
        needed = {port, port + GRPC_OFFSET} if name in _WITH_GRPC else {port}
        if name in chosen or needed & taken or not _fits(name, port):
            return False
        taken.update(needed)
        chosen[name] = port
        return True

    names = Ports.__struct_fields__
    for preferred, of in ((kept, BINDING), (first, names), (kept, names)):
        if preferred is not None:
            for name in of:
                claim(name, getattr(preferred, name))
    for name in names:
        highest = _HIGHEST - GRPC_OFFSET if name in _WITH_GRPC else _HIGHEST
        tries = iter(range(_TRIES))
        while name not in chosen:
            if next(tries, None) is None:
                raise StackError(f"no free loopback port found between {_LOWEST} and {highest} for {name}")
            claim(name, random.randint(_LOWEST, highest))  # noqa: S311 - a port number is no secret
    return Ports(**chosen)


def replaced(chosen: Ports) -> dict[str, tuple[int, int]]:
    """Return {name: (first choice, chosen port)} of the parts that did not get their first choice."""
    pairs = {name: (getattr(FIRST_CHOICES, name), getattr(chosen, name)) for name in Ports.__struct_fields__}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def load(path: Path) -> Ports | None:
    """Return the ports of the previous start with the same data; None if there is no readable file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Ports)
    except (OSError, msgspec.DecodeError):
        return None


def save(path: Path, ports: Ports) -> None:
    """Write the ports to the file ``path``."""
    path.write_bytes(msgspec.json.encode(ports))
