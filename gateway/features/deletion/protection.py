# SPDX-License-Identifier: Apache-2.0
"""Use cases of drop protection."""

from __future__ import annotations

from gateway.access.door.permit import Permit
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.refs import ObjectKey, Ref
from gateway.access.nouns.resolved import Resolution
from gateway.access.operations.deletion import GetProtection, ProtectionAnswer, SetProtection
from gateway.db.pools.rows import AnyRow
from gateway.db.tables import protection
from gateway.features.kit import UseCases


class Protection(UseCases):
    """The protection flag of namespaces, tables and views: dropping requires `force`. It affects no right."""

    async def get(self, permit: Permit[GetProtection]) -> ProtectionAnswer:
        """Return the current flag."""
        on = permit.operation.on
        async with self._database.read() as connection:
            return _answer(on, await protection.of(connection, _key(permit.resolution, on)))

    async def set(self, permit: Permit[SetProtection]) -> ProtectionAnswer:
        """Set or clear the flag. Idempotent."""
        operation = permit.operation
        async with self._database.change(permit) as connection:
            key = _key(permit.resolution, operation.on)
            return _answer(operation.on, await protection.protect(connection, key, operation.protected))


def _key(resolution: Resolution, on: Ref) -> ObjectKey:
    row = resolution.get(on)
    if row is None:
        raise LookupError(f"nothing was admitted on {on!r}")
    return row.key


def _answer(on: Ref, row: AnyRow | None) -> ProtectionAnswer:
    if row is None:
        raise not_found(on)
    return ProtectionAnswer(protected=row.protected, updated_at=row.updated_at)
