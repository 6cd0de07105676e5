# SPDX-License-Identifier: Apache-2.0
"""Describe why PostgreSQL refuses a connection: what is wrong, and which setting corrects it."""

from __future__ import annotations

import errno
from collections.abc import Iterator

import asyncpg

_SETTING = "LAKEGATE__PG_DATABASE_URL_WRITE"


def connection_fault(error: BaseException) -> str | None:
    """Return one line with the fault and its remedy; None if the error is another one. It contains no password."""
    for each in _causes(error):
        match each:
            case asyncpg.InvalidPasswordError() | asyncpg.InvalidAuthorizationSpecificationError():
                return f"PostgreSQL refused the user name or the password. Correct them in {_SETTING}."
            case asyncpg.InvalidCatalogNameError():
                return f"PostgreSQL has no database of this name. Create it, or correct the name in {_SETTING}."
            case asyncpg.InsufficientPrivilegeError():
                return f"PostgreSQL refused a statement: {each}. Give the user of {_SETTING} this right."
            case OSError() if each.errno == errno.ECONNREFUSED or isinstance(each, ConnectionRefusedError):
                return f"nothing listens at the address of the service: {each}. Start it, or correct its address."
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its causes, and the errors of groups, each once."""
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
