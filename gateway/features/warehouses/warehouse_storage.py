# SPDX-License-Identifier: Apache-2.0
"""Use cases of a warehouse's storage: replace the profile or the credential, and validate them.

The fields that determine the location cannot change, because tables are stored there. So an update cannot make two
warehouses overlap, and only their creation checks for overlaps (`db/warehouses.claim_base`).

An update applies to every later request in every worker process. Each request reads the warehouse's row, and the
profile version and the credential id in it are part of the cache keys of credentials.
"""

from __future__ import annotations

from uuid import UUID

import msgspec

from gateway.access.actor import Actor
from gateway.access.door.permit import Permit
from gateway.access.management_errors import StorageProfileImmutable
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.refs import WarehouseRef
from gateway.access.operations.warehouse_bodies import ValidationAnswer, Warehouse
from gateway.access.operations.warehouses import (
    UpdateWarehouseStorage,
    UpdateWarehouseStorageCredential,
    ValidateWarehouseStorageAccess,
    ValidateWarehouseStorageCredential,
    ValidateWarehouseStorageProfile,
)
from gateway.db.credentials import secrets
from gateway.db.credentials.credentials import WrittenCredential
from gateway.db.engine.database import Connection
from gateway.db.warehouses import warehouses
from gateway.db.warehouses.warehouses import WarehouseRow
from gateway.features.credentials.credential_scope import record_scope
from gateway.features.credentials.storage_reports import ONLY_CREATION, Rule, StorageValidator, require_valid
from gateway.features.kit import Kit, UseCases
from gateway.features.warehouses.warehouses import require_manager, warehouse_answer
from gateway.scope.credential import Credential
from gateway.scope.profile import StorageProfile, key_seconds
from gateway.storage.registry import credential_kind, stored_profile

_AS_IT_IS = "The storage is tested with the stored profile and credential."


class WarehouseStorage(UseCases):
    """Change and validate warehouse storage. Changes raise WarehouseManaged if only instance admins may change the
    warehouse.
    """

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._storage = kit.storage
        self._trials = StorageValidator(kit)

    async def update(self, permit: Permit[UpdateWarehouseStorage]) -> Warehouse:
        """Replace profile and credential.

        Raises StorageProfileImmutable, StorageValidationFailed, or 400 for an invalid profile or credential; nothing
        was changed then.
        """
        ref, request = permit.operation.warehouse, permit.operation.request
        await self._require_manager(permit.actor, ref)
        profile = self._trials.profile(request.storage_profile)
        credential = self._trials.credential(bytes(request.storage_credential), profile)
        _require_compatible(permit.warehouse(ref).storage_profile, profile)
        tried = await self._trials.tried(profile, credential)
        require_valid(tried)
        async with self._storage.written(credential) as written, self._database.change(permit) as connection:
            row = await self._locked(connection, permit.actor, ref)
            before = stored_profile(row.profile)
            permit.pending_audit.add_details(
                **_endpoints(profile), **_endpoints(before, suffix="_before"), credential="replaced"
            )
            # Another update may have replaced the profile since this request read it. No update changes the location.
            changed = await self._replace(connection, row, profile, credential, written)
            await record_scope(connection, changed.id, tried, profile_version=changed.profile_version)
        return warehouse_answer(changed)

    async def update_credential(self, permit: Permit[UpdateWarehouseStorageCredential]) -> Warehouse:
        """Replace the credential.

        Raises StorageValidationFailed, or 400 for an invalid credential; nothing was changed then.
        """
        ref = permit.operation.warehouse
        await self._require_manager(permit.actor, ref)
        resolved = permit.warehouse(ref)
        profile = resolved.storage_profile
        credential = self._trials.credential(bytes(permit.operation.request.new_storage_credential), profile)
        tried = await self._trials.tried(profile, credential)
        require_valid(tried)
        async with self._storage.written(credential) as written, self._database.change(permit) as connection:
            row = await self._locked(connection, permit.actor, ref)
            permit.pending_audit.add_details(**_endpoints(stored_profile(row.profile)), credential="replaced")
            changed = await self._replace(connection, row, None, credential, written)
            if row.profile_version == resolved.profile_version:
                await record_scope(connection, changed.id, tried, profile_version=changed.profile_version)
        return warehouse_answer(changed)

    async def validate_profile(self, permit: Permit[ValidateWarehouseStorageProfile]) -> ValidationAnswer:
        """Run every check of `update` and return the results. Nothing is changed."""
        ref, request = permit.operation.warehouse, permit.operation.request
        now = permit.warehouse(ref).storage_profile

        def decode_profile_and_credential() -> tuple[StorageProfile, Credential | None]:
            profile = self._trials.profile(request.storage_profile)
            return profile, self._trials.credential(bytes(request.storage_credential), profile)

        async def well_formed() -> None:
            decode_profile_and_credential()

        async def compatible() -> None:
            _require_compatible(now, self._trials.profile(request.storage_profile))

        return await self._trials.report(
            self._rules(permit.actor, ref, {"profile-well-formed": well_formed, "profile-compatible": compatible}),
            decode_profile_and_credential,
        )

    async def validate_credential(self, permit: Permit[ValidateWarehouseStorageCredential]) -> ValidationAnswer:
        """Run every check of `update_credential` and return the results. Nothing is changed."""
        ref = permit.operation.warehouse
        now = permit.warehouse(ref).storage_profile
        given = bytes(permit.operation.request.new_storage_credential)

        async def well_formed() -> None:
            self._trials.credential(given, now)

        rules: dict[str, Rule] = {"profile-well-formed": well_formed, "profile-compatible": _AS_IT_IS}
        return await self._trials.report(
            self._rules(permit.actor, ref, rules), lambda: (now, self._trials.credential(given, now))
        )

    async def validate_access(self, permit: Permit[ValidateWarehouseStorageAccess]) -> ValidationAnswer:
        """Validate the current storage of the warehouse and return the results."""
        resolved = permit.warehouse(permit.operation.warehouse)
        credential = await self._storage.of(resolved)
        rules: dict[str, Rule] = {
            "profile-well-formed": _AS_IT_IS,
            "profile-compatible": _AS_IT_IS,
            "spec-mutable": _AS_IT_IS,
            "location-exclusive": lambda: self._require_alone(resolved.id, resolved.storage_profile),
        }
        return await self._trials.report(rules, lambda: (resolved.storage_profile, credential))

    def _rules(self, actor: Actor, ref: WarehouseRef, rules: dict[str, Rule]) -> dict[str, Rule]:
        """Return `rules` with those general rules that apply to an update. Rules that apply only to creation are
        skipped.
        """
        return {
            "warehouse-name-valid": ONLY_CREATION,
            "location-exclusive": "An update cannot change the location of the warehouse.",
            "spec-mutable": lambda: self._require_manager(actor, ref),
            **rules,
        }

    async def _require_alone(self, id: UUID, profile: StorageProfile) -> None:
        async with self._database.read() as connection:
            if not await warehouses.base_is_free(connection, profile.base_location().overlap_key, except_id=id):
                raise StorageProfileImmutable(
                    "The base location of this warehouse overlaps the base location of another warehouse, and cannot "
                    "be changed. Create another warehouse with a base location of its own."
                )

    async def _require_manager(self, actor: Actor, ref: WarehouseRef) -> None:
        async with self._database.read() as connection:
            row = await warehouses.get(connection, ref.warehouse_id)
        if row is None:
            raise not_found(ref)
        require_manager(actor, row)

    async def _locked(self, connection: Connection, actor: Actor, ref: WarehouseRef) -> WarehouseRow:
        row = await warehouses.locked(connection, ref.warehouse_id)
        if row is None:
            raise not_found(ref)
        require_manager(actor, row)
        return row

    async def _replace(
        self,
        connection: Connection,
        row: WarehouseRow,
        profile: StorageProfile | None,
        credential: Credential | None,
        written: WrittenCredential,
    ) -> WarehouseRow:
        """Update the row. Requests in flight can still use the old credential, which is removed later."""
        values: dict[str, object] = {
            "secret_id": await written.use(connection),
            "credential_kind": credential_kind(credential),
            "profile_version": row.profile_version + 1,
        }
        if profile is not None:
            values |= {"profile": msgspec.json.encode(profile), "key_seconds": key_seconds(profile)}
        changed = await warehouses.update(connection, row.id, values)
        if row.secret_id is not None:
            await secrets.retire(connection, row.secret_id)
        return changed


def _endpoints(profile: StorageProfile, *, suffix: str = "") -> dict[str, str]:
    """Return the endpoints in a profile as audit details. Default endpoints of the provider are left out."""
    return {f"{name}{suffix}": value for name, value in profile.endpoints().items()}


def _require_compatible(now: StorageProfile, new: StorageProfile) -> None:
    """Raise StorageProfileImmutable if `new` has another location than `now`.

    The location of existing tables and of vended credentials depends on the profile.
    """
    changed = now.moved(new)
    if changed:
        raise StorageProfileImmutable(
            f"These fields of a storage profile cannot be changed: {', '.join(changed)}. Send their present values, "
            "or create another warehouse."
        )
