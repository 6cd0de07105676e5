# SPDX-License-Identifier: Apache-2.0
"""Parse the variables of `make bench-peer`: the catalog to compare with, and the process ids of its groups."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.bench.catalogs import Catalog, CatalogError

_PIDS_FORM = "write TARGET_PIDS as 'name=pid,pid;name=pid', for example 'server=4711;PostgreSQL=4712,4713'"


@dataclass(frozen=True, slots=True)
class Target:
    """The other catalog, and the process ids of its groups by name."""

    catalog: Catalog
    groups: Mapping[str, list[int]]


def read(environment: Mapping[str, str], known_groups: Iterable[str]) -> Target:
    """Read TARGET, TARGET_TOKEN, TARGET_WAREHOUSE and TARGET_PIDS. An empty variable counts as missing.

    `known_groups`: names of our own groups. A group of the same name gets the same column.

    Raises:
        CatalogError: a variable is missing or has another form, or the target is not on this machine.
    """
    url = environment.get("TARGET", "").strip()
    if not url:
        raise CatalogError(
            "TARGET is missing: make bench-peer TARGET=http://127.0.0.1:8181/catalog "
            "[TARGET_TOKEN=...] [TARGET_WAREHOUSE=...] [TARGET_PIDS='name=pid,pid;name=pid']"
        )
    require_loopback(url)
    catalog = Catalog(
        name="peer",
        url=url.rstrip("/").removesuffix("/v1"),
        token=environment.get("TARGET_TOKEN") or None,
        warehouse=environment.get("TARGET_WAREHOUSE") or None,
    )
    return Target(catalog, pids_by_group(environment.get("TARGET_PIDS", ""), known_groups))


def require_loopback(url: str) -> None:
    """Raise unless the URL names a loopback address: the load goes to this machine only.

    A name other than `localhost` is refused, because it can resolve to another address later.

    Raises:
        CatalogError: the URL names another machine, or is no HTTP URL.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise CatalogError(f"TARGET={url} is no URL; write http://127.0.0.1:PORT/PATH") from None
    # Parsers of URLs disagree about the host if there is a user or a backslash.
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc or "\\" in url:
        raise CatalogError(f"TARGET={url} is no URL of a catalog; write http://127.0.0.1:PORT/PATH")
    if host != "localhost" and not _is_loopback(host):
        raise CatalogError(
            f"TARGET={url} is not on this machine. The load is sent to loopback addresses only "
            "(127.0.0.1, ::1, localhost): run the other catalog here."
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def pids_by_group(
    text: str, known_groups: Iterable[str] = (), runs: Callable[[int], bool] = _runs
) -> dict[str, list[int]]:
    """Parse `name=pid,pid;name=pid`. A name that differs from a known one only by case is that name.

    Raises:
        CatalogError: it has another form, names a group twice, or a process does not run.
    """
    names = {name.lower(): name for name in known_groups}
    found: dict[str, list[int]] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, _, listed = (piece.strip() for piece in part.partition("="))
        pids = [pid.strip() for pid in listed.split(",")]
        if not name or not all(pid.isascii() and pid.isdigit() for pid in pids):
            raise CatalogError(f"{part!r} is no group of processes: {_PIDS_FORM}")
        name = names.get(name.lower(), name)
        if name in found:
            raise CatalogError(f"the group {name} is listed twice: {_PIDS_FORM}")
        found[name] = [int(pid) for pid in pids]
        if gone := [pid for pid in found[name] if not runs(pid)]:
            raise CatalogError(f"no process {', '.join(map(str, gone))} of the group {name} runs on this machine")
    return found
