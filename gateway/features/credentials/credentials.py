# SPDX-License-Identifier: Apache-2.0
"""Credential vending for tables, by the location in the row on which the permission was decided.

No credential is minted before location and authorization are settled, and both come from the same row. This is
invariant 3 of `ARCHITECTURE.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import structlog

from gateway.access.audit.audit_record import IssuedCredential
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.door.permit import Permit
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Resolution, ResolvedWarehouse
from gateway.access.operations.credentials import VendCreationCredentials, VendCredentials, VendStagedCredentials
from gateway.access.operations.generic_tables import (
    AdoptGenericTable,
    CreateGenericTable,
    VendGenericTableCreationCredentials,
    VendGenericTableCredentials,
)
from gateway.access.operations.tables import CreateTable
from gateway.db.tables import tables
from gateway.features.credentials.credential_terms import creation_level, level_of, load_level, refresh_endpoint
from gateway.features.kit import Kit, UseCases
from gateway.iceberg.errors import ForbiddenException
from gateway.iceberg.identifiers import TableIdentifier
from gateway.iceberg.wire import LoadCredentialsResponse, RemoteSigningConfig, StorageCredential
from gateway.obligations.application import vending_terms
from gateway.scope.credential import AccessLevel
from gateway.scope.location import Location
from gateway.scope.profile import Downscoping, StorageProfile, longest_life
from gateway.storage.registry import parse_location
from gateway.vending.register import register_entry
from gateway.vending.remote_signing import SigningOffers
from gateway.vending.vendor import BelowCredentialFloor, NoCredentials, SessionIdentity

Vending = (
    Permit[VendCredentials]
    | Permit[VendCreationCredentials]
    | Permit[VendStagedCredentials]
    | Permit[VendGenericTableCredentials]
    | Permit[VendGenericTableCreationCredentials]
)
"""The permits that allow vending. By their types, no other permit can."""

_log = structlog.get_logger("catalog.credentials")

_SHARED_SECONDS = 900

_MINTING_SECONDS = 10
"""The longest time between computing a credential's lifetime and minting the credential."""

_LOAD_AGAIN = "not all of this table may be read, and credentials alone cannot enforce that. Load the table again."


class NoCredentialsVended(ForbiddenException):
    """The warehouse or a policy allows no credentials."""


@dataclass(frozen=True, slots=True)
class VendResult:
    """The configuration and credentials in the response of a load or create. Both are empty if nothing may be vended.

    `signing` is set if the gateway signs the client's requests instead of giving it credentials.
    """

    config: dict[str, str]
    credentials: tuple[StorageCredential, ...] = ()
    reason: str = ""
    audit_details: tuple[tuple[str, str], ...] = ()
    """Facts for the audit record, without secrets."""
    expires_at: datetime | None = None
    issued: IssuedCredential | None = None
    """The entry in the register of live credentials. It is committed before the answer."""
    signing: RemoteSigningConfig | None = None


@dataclass(frozen=True, slots=True)
class _Target:
    """The location that the credentials reach. `refresh` is the endpoint at which the client refreshes them, if any."""

    warehouse: ResolvedWarehouse
    location: Location
    level: AccessLevel
    refresh: str | None
    object_id: UUID


class Credentials(UseCases):
    """Vends storage credentials, and commits the audit record of each vending before the response is sent."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._scope = kit.scope
        self._vendor = kit.vendor
        self._storage = kit.storage
        self._signing = SigningOffers(kit.signer, base_uri=kit.base_uri)

    async def vend(self, permit: Permit[VendCredentials]) -> LoadCredentialsResponse:
        """Return new credentials for a table that the client has already loaded.

        Raises NoCredentialsVended (403) if the warehouse or a policy allows none, and for a caller that may read the
        table only in part. In Iceberg REST this response has no member for restrictions. An engine would use the new
        credentials under the restrictions of an earlier load, which may be weaker.
        """
        if permit.restricted(permit.operation.table):
            refused = _no_credentials(_LOAD_AGAIN)
            permit.pending_audit.add_details(**dict(refused.audit_details))
            await permit.pending_audit.commit()
            return _require_credentials(refused)
        return _require_credentials(await self.for_load(permit))

    async def vend_staged(self, permit: Permit[VendStagedCredentials]) -> LoadCredentialsResponse | None:
        """Return new credentials for a table that the caller has staged. Return None if the caller has not staged it
        under this name in this namespace, or has created it since.

        Raises NoCredentialsVended (403) if the warehouse or a policy allows none.
        """
        operation = permit.operation
        namespace = permit.namespace(operation.namespace)
        async with self._database.read() as connection:
            found = await tables.staged_location(
                connection,
                operation.table_id,
                namespace_id=namespace.id,
                # The name that was sent to the policies for the decision.
                name=operation.table,
                staged_by=permit.actor.id,
            )
        if found is None:
            permit.pending_audit.add_details(vended="nothing", reason="not staged")
            permit.pending_audit.keep_as_read()
            return None
        identifier = TableIdentifier(namespace.namespace, operation.table)
        refresh = refresh_endpoint(namespace.warehouse.id, identifier, staged=operation.table_id)
        target = _Target(
            namespace.warehouse, parse_location(found), creation_level(permit), refresh, operation.table_id
        )
        vended_result = await self._vend(permit, target)
        permit.pending_audit.add_details(**dict(vended_result.audit_details))
        await permit.pending_audit.commit(vended_result.issued)
        return _require_credentials(vended_result)

    async def for_load(self, permit: Permit[VendCredentials]) -> VendResult:
        """Return the credentials for a load. If none may be vended, the result has none and no error is raised."""
        ref = permit.operation.table
        table = permit.table(ref)
        unrestricted = not permit.restricted(ref)
        refresh = refresh_endpoint(table.warehouse.id, table.identifier) if unrestricted else None
        offer = self._signing.for_table(table) if unrestricted else None
        # The profile is read before the location, because reading it loads the package of the store. Without the
        # package, the scheme of the location is unknown.
        profile = table.warehouse.storage_profile
        target = _Target(table.warehouse, parse_location(table.location), load_level(permit), refresh, table.id)
        vended_result = await self._vend_or_sign(permit, target, offer, preferred=permit.operation.signing)
        # The audit record is committed before the response. If the commit fails, no credentials are sent.
        permit.pending_audit.add_details(**dict(vended_result.audit_details))
        await permit.pending_audit.commit(vended_result.issued)
        return vended_result if vended_result.config else _location_only(profile, vended_result.reason)

    @staticmethod
    def without_credentials(warehouse: ResolvedWarehouse) -> VendResult:
        """Return the region and endpoint of the store, for a client that has its own keys."""
        return _location_only(warehouse.storage_profile, "the client manages its own credentials")

    async def for_creation(
        self,
        permit: Permit[CreateTable] | Permit[CreateGenericTable | AdoptGenericTable],
        vend: Permit[VendCreationCredentials] | Permit[VendGenericTableCreationCredentials] | None,
        table_location: str,
        table_id: UUID,
    ) -> VendResult:
        """Return the creator's credentials for a table that was just created or staged. They have an audit record of
        their own. Only requests to Iceberg tables can be signed.

        The table exists already, so a failure must not cause an error: clients would conclude that nothing was created.
        The response then has no credentials; the next load returns them, or the reason for the failure.
        """
        warehouse = permit.namespace(permit.operation.namespace).warehouse
        profile = warehouse.storage_profile
        if vend is None:
            return _location_only(profile, "the caller has no right to credentials for the new table")
        level = creation_level(vend)
        location = parse_location(table_location)
        operation = vend.operation
        generic = _is_generic(vend)
        name = (
            operation.generic_table if isinstance(operation, VendGenericTableCreationCredentials) else operation.table
        )
        identifier = TableIdentifier(operation.namespace.namespace, name)
        try:
            stages = isinstance(permit.operation, CreateTable) and permit.operation.request.stage_create
            staged = table_id if stages else None
            refresh = refresh_endpoint(warehouse.id, identifier, generic=generic, staged=staged)
            offer, preferred = None, False
            if isinstance(operation, VendCreationCredentials):
                offer = self._signing.for_created(warehouse, identifier.namespace, identifier.name, table_id)
                preferred = operation.signing
            target = _Target(warehouse, location, level, refresh, table_id)
            vended_result = await self._vend_or_sign(vend, target, offer, preferred=preferred)
            await vend.pending_audit.also(vended_result.issued, **dict(vended_result.audit_details))
        except Exception as failed:
            # Any exception: the object is created, and an error would make the client believe the opposite.
            _log.warning("credentials.not_handed_out", table=identifier.dotted, exc_info=failed)
            return _location_only(
                profile, "the credentials could not be created or recorded in the audit log; load the table to get them"
            )
        return vended_result if vended_result.config else _location_only(profile, vended_result.reason)

    async def for_generic_table(self, permit: Permit[VendGenericTableCredentials]) -> VendResult:
        """Return the credentials for a load of a generic table, as `for_load` does."""
        ref = permit.operation.table
        row = permit.generic_table(ref)
        level = level_of(permit.holds(Can.WRITE_DATA, ref), vending_terms(permit.obligations))
        refresh = refresh_endpoint(row.warehouse.id, row.identifier, generic=True)
        target = _Target(row.warehouse, parse_location(row.location), level, refresh, row.id)
        vended_result = await self._vend(permit, target)
        permit.pending_audit.add_details(**dict(vended_result.audit_details))
        await permit.pending_audit.commit(vended_result.issued)
        return (
            vended_result
            if vended_result.credentials
            else _location_only(row.warehouse.storage_profile, vended_result.reason)
        )

    async def vend_generic_table(self, permit: Permit[VendGenericTableCredentials]) -> LoadCredentialsResponse:
        """Return new credentials of a generic table, as `vend` does."""
        return _require_credentials(await self.for_generic_table(permit))

    async def _vend_or_sign(
        self, permit: Vending, target: _Target, offer: dict[str, str] | None, *, preferred: bool
    ) -> VendResult:
        """Return credentials. Return `offer` (remote signing) instead if the client prefers it or no credentials are
        possible.

        A policy that forbids credentials forbids signatures too, and so does the canary's verdict.
        """
        profile = target.warehouse.storage_profile
        unproven = self._scope.signing_refusal(profile, target.warehouse.scope_verdict) is not None
        if offer is None or unproven or vending_terms(permit.obligations).refusal is not None:
            return await self._vend(permit, target)
        reason = "the client asks for signatures of its requests"
        if not preferred:
            vended_result = await self._vend(permit, target)
            if vended_result.credentials:
                return vended_result
            reason = vended_result.reason
        return VendResult(
            {**profile.client_properties(None, refresh_endpoint=None), **offer},
            (),
            reason,
            (("vended", "signatures"), ("reason", reason)),
            signing=RemoteSigningConfig(),
        )

    async def _vend(self, permit: Vending, target: _Target) -> VendResult:
        warehouse, terms = target.warehouse, vending_terms(permit.obligations)
        if terms.refusal is not None:
            return _no_credentials(terms.refusal)
        unproven = self._scope.refusal(warehouse.scope_verdict)
        if unproven is not None:
            return _no_credentials(unproven)
        profile = warehouse.storage_profile
        seconds, expiry = await self._lifetime(permit, profile, permit.resolution)

        async def still_allowed() -> None:
            resolution = await self._database.revalidate(permit)
            if resolution is not permit.resolution and (await self._lifetime(permit, profile, resolution))[0] < seconds:
                raise DecisionEngineUnavailable(
                    "the caller's grants were shortened during the request, so the requested lifetime is too long"
                )

        try:
            vended = await self._vendor.vend(
                profile=profile,
                profile_version=f"{warehouse.id}/{warehouse.profile_version}",
                credential=await self._storage.of(warehouse),
                location=target.location,
                level=target.level,
                seconds=seconds,
                session=SessionIdentity(
                    principal=permit.actor.id,
                    role=permit.actor.acting_as or None,
                    context=f"{permit.actor.token_digest}{permit.obligations.fingerprint.hex()}/{target.object_id}",
                ),
                just_before=still_allowed,
            )
        except BelowCredentialFloor as below_floor:
            return _no_credentials(below_floor.message)
        if isinstance(vended, NoCredentials):
            return _no_credentials(vended.reason)
        if expiry is not None and vended.expires_at > expiry:
            return _no_credentials("the store answered too late: the credential would expire after the caller's grant")
        properties = profile.client_properties(vended.temporary, refresh_endpoint=target.refresh)
        audit_details = (
            ("vended", vended.level.value),
            ("credential_id", str(vended.id)),
            ("prefix", vended.prefix),
            ("session_name", vended.session_name),
            ("expires_at", vended.expires_at.astimezone(UTC).isoformat()),
        )
        credential = StorageCredential(prefix=vended.prefix, config=properties)
        issued = register_entry(
            permit.actor,
            permit.request_id,
            warehouse,
            target.object_id,
            profile.provider,
            vended,
            generic=_is_generic(permit),
        )
        return VendResult(
            properties, (credential,), audit_details=audit_details, expires_at=vended.expires_at, issued=issued
        )

    async def _lifetime(
        self,
        permit: Vending,
        profile: StorageProfile,
        resolution: Resolution,
    ) -> tuple[int, datetime | None]:
        """Return (lifetime of a credential in seconds, first expiry of the caller's grants, None if none expires within
        the lifetime).

        The lifetime is the minimum of the limits of warehouse, policies and grants.
        """
        bounds = [longest_life(profile)]
        limit = vending_terms(permit.obligations).seconds
        if limit is not None:
            bounds.append(limit)
        now = resolution.now
        latest = now + timedelta(seconds=min(bounds) + _MINTING_SECONDS)
        expiry = await self._door.first_expiry(permit, latest, last_resolution=resolution)
        if expiry is not None:
            # The lifetime is rounded down to quarters of an hour, so that requests of the next minutes can share a
            # credential. Below the store's minimum lifetime nothing can be shared.
            remaining = int((expiry - now).total_seconds()) - _MINTING_SECONDS
            bounds.append(remaining - remaining % _SHARED_SECONDS if remaining > _SHARED_SECONDS else remaining)
        return min(bounds), expiry


def require_vendable(profile: StorageProfile, location: Location) -> None:
    """Raise PolicyTooLarge or InvalidLocation if no credential can be minted for the location.

    The check precedes every write for a new table, even if the caller requests no credentials. Otherwise a table would
    exist that no client can read. The check uses the highest access level, whose policy is the longest.
    """
    downscoping = profile.downscoping
    if isinstance(downscoping, Downscoping):
        downscoping.policy(location, AccessLevel.READ_WRITE_DELETE)


def _is_generic(permit: Vending) -> bool:
    return isinstance(permit.operation, VendGenericTableCredentials | VendGenericTableCreationCredentials)


def _require_credentials(vended_result: VendResult) -> LoadCredentialsResponse:
    if not vended_result.credentials:
        raise NoCredentialsVended(f"No credentials were issued: {vended_result.reason}")
    return LoadCredentialsResponse(storage_credentials=vended_result.credentials)


def _no_credentials(reason: str) -> VendResult:
    return VendResult({}, (), reason, (("vended", "nothing"), ("reason", reason)))


def _location_only(profile: StorageProfile, reason: str) -> VendResult:
    """Return the region and endpoint of the store, without keys."""
    return VendResult(profile.client_properties(None, refresh_endpoint=None), (), reason)
