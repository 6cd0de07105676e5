# SPDX-License-Identifier: Apache-2.0
"""Describe why PostgreSQL or a decision engine failed during a command, and which setting corrects it."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

import asyncpg

from gateway.access.dependency_errors import DatabaseUnavailable, DecisionEngineUnavailable

_SETTING = "LAKEGATE__PG_DATABASE_URL_WRITE"


def connection_fault(error: BaseException) -> str | None:
    """Return one line with the fault and its remedy, without passwords. Return None for other errors.

    The errors of decision engines already name the engine, its address and its setting.
    """
    outage: str | None = None
    for each in _causes(error):
        match each:
            case DecisionEngineUnavailable():
                return str(each)
            case asyncpg.InvalidAuthorizationSpecificationError():
                return f"PostgreSQL refused the user name or the password. Correct them in {_SETTING}."
            case asyncpg.InvalidCatalogNameError():
                return f"PostgreSQL has no database of this name. Create it, or correct the name in {_SETTING}."
            case asyncpg.InsufficientPrivilegeError():
                return f"PostgreSQL refused a statement: {each}. Give the user of {_SETTING} this right."
            case asyncpg.CannotConnectNowError() | asyncpg.TooManyConnectionsError():
                return f"PostgreSQL accepts no connection now: {each}. Try again, or check the server of {_SETTING}."
            case ConnectionRefusedError():
                return f"nothing listens at the address of PostgreSQL: {each}. Start it, or correct {_SETTING}."
            case socket.gaierror():
                return f"the host of PostgreSQL is unknown: {each.strerror}. Correct {_SETTING}."
            case ssl.SSLError():
                return f"the TLS connection to PostgreSQL failed: {each}. Correct LAKEGATE__PG_SSL_MODE."
            case DatabaseUnavailable():
                outage = f"PostgreSQL failed: {each}. Check the server of {_SETTING}, and the network to it."
    return outage


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its causes, and the errors in exception groups, each once."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop(0)
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [each.__cause__, each.__context__, getattr(each, "orig", None)]
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
