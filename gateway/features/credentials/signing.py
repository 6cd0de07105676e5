# SPDX-License-Identifier: Apache-2.0
"""Remote signing: authorize and sign one client request to the object store of a table.

The location and the authorization come from the same table row, as for vended credentials. The audit record is
durable before the response, so no signature leaves unrecorded. No decision is cached: the next request after a
revocation is refused.
"""

from __future__ import annotations

from typing import Final

from gateway.access.door.permit import Permit
from gateway.access.nouns.resolved import ResolvedWarehouse
from gateway.access.operations.credentials import (
    SignCreation,
    SignRequest,
    SignWrite,
    VendCreationCredentials,
    VendCredentials,
)
from gateway.db.tables import tables
from gateway.features.credentials.credential_terms import creation_level, load_level
from gateway.features.kit import Kit, UseCases
from gateway.iceberg.errors import CatalogError, ForbiddenException
from gateway.iceberg.wire import RemoteSignRequest, RemoteSignResult
from gateway.obligations.application import vending_terms
from gateway.offloading import offload
from gateway.scope.credential import AccessLevel, ReadRequest, SignedAction, UnsignedRequest
from gateway.scope.location import Location
from gateway.storage.registry import parse_location
from gateway.vending.remote_signing import SigningKey
from gateway.vending.vendor import SessionIdentity

_Permit = Permit[SignRequest | SignWrite] | Permit[SignCreation]
_Vend = Permit[VendCredentials] | Permit[VendCreationCredentials]

_RANK: Final = {AccessLevel.READ: 0, AccessLevel.READ_WRITE: 1, AccessLevel.READ_WRITE_DELETE: 2}

#: Maximum number of keys in the audit record of a deletion of several objects. The record also has the number of all
#: keys.
_AUDITED_KEYS: Final = 5


class SigningForbidden(ForbiddenException):
    """A policy, an obligation or the caller's access level forbids the signature of this request."""


class Signing(UseCases):
    """Use case that signs one request, and the properties that make a client send its requests for signing."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._scope = kit.scope
        self._signer = kit.signer
        self._storage = kit.storage

    async def sign(
        self, permit: Permit[SignRequest | SignWrite], vend: Permit[VendCredentials] | None
    ) -> RemoteSignResult:
        """Return the signed request.

        `vend` is the permit for the caller's credentials, None if they are refused: signatures allow no more than
        credentials. For a dropped table, only the user that dropped it can have requests signed: reads and deletions,
        within the rights on the table that this user still has. Raises SigningForbidden, RemoteSigningDisabled,
        SignWithoutCredentials, and the errors of status 400 for requests that are not signed.
        """
        ref = permit.operation.table
        table = permit.table(ref)
        if table.purged_by not in (None, permit.actor.id):
            permit.pending_audit.add_details(signed="nothing", reason="dropped by another user, or too long ago")
            raise permit.operation.hidden(ref)
        return await self._recorded(permit, vend, table.warehouse, table.location, writable=table.purged_by is None)

    async def sign_staged(
        self, permit: Permit[SignCreation], vend: Permit[VendCreationCredentials] | None
    ) -> RemoteSignResult | None:
        """Return the signed request to a file of a staged table. Return None if the caller has not staged the table
        under this name in this namespace, or has created it since.

        Raises the errors of `sign`.
        """
        operation = permit.operation
        namespace = permit.namespace(operation.namespace)
        async with self._database.read() as connection:
            location = await tables.staged_location(
                connection,
                operation.table_id,
                namespace_id=namespace.id,
                # The name that was sent to the policies for the decision.
                name=operation.table,
                staged_by=permit.actor.id,
            )
        if location is None:
            permit.pending_audit.add_details(signed="nothing", reason="not staged")
            permit.pending_audit.keep_as_read()
            return None
        return await self._recorded(permit, vend, namespace.warehouse, location)

    async def _recorded(
        self, permit: _Permit, vend: _Vend | None, warehouse: ResolvedWarehouse, location: str, *, writable: bool = True
    ) -> RemoteSignResult:
        try:
            return await self._signed(permit, vend, warehouse, parse_location(location), writable=writable)
        except CatalogError as refused:
            permit.pending_audit.add_details(signed="nothing", reason=refused.type)
            raise

    async def _signed(
        self, permit: _Permit, vend: _Vend | None, warehouse: ResolvedWarehouse, location: Location, *, writable: bool
    ) -> RemoteSignResult:
        if vend is None:
            raise SigningForbidden("No request is signed: you are not allowed to get credentials for this table")
        level = _level(permit, vend)
        profile = warehouse.storage_profile
        request = unsigned(permit.operation.request)
        unproven = self._scope.signing_refusal(profile, warehouse.scope_verdict)
        if unproven is not None:
            raise SigningForbidden(f"No request is signed: {unproven}")
        read = await offload(lambda: self._signer.read(profile, location, request), size=len(request.body or ""))
        _require(level, read.action)
        if read.action is SignedAction.WRITE and not writable:
            raise SigningForbidden(
                "No request is signed: the table was dropped, so its files can only be read and deleted"
            )

        async def still_allowed() -> None:
            for each in (permit, vend):
                await self._database.revalidate(each)

        signed = await self._signer.sign(
            profile,
            location,
            read,
            SigningKey(
                credential=await self._storage.of(warehouse),
                profile_version=f"{warehouse.id}/{warehouse.profile_version}",
                level=level,
                session=SessionIdentity(
                    principal=permit.actor.id,
                    role=permit.actor.acting_as or None,
                    context=permit.actor.token_digest + vend.obligations.fingerprint.hex(),
                ),
                just_before=still_allowed,
            ),
        )
        permit.pending_audit.add_details(**_audited(read), level=level.value, session_name=signed.session_name)
        await permit.pending_audit.commit()
        return RemoteSignResult(uri=read.uri, headers={name: (value,) for name, value in signed.headers.items()})


def unsigned(wanted: RemoteSignRequest) -> UnsignedRequest:
    """Return the request to sign in the form that the storage provider parses."""
    return UnsignedRequest(
        provider=wanted.provider,
        region=wanted.region,
        method=wanted.method,
        uri=wanted.uri,
        headers=tuple((name, value) for name, values in wanted.headers.items() for value in values),
        body=wanted.body,
    )


def _level(permit: _Permit, vend: _Vend) -> AccessLevel:
    """Return the access level of the caller's credentials, limited by the obligations of both permits.

    Raises SigningForbidden if the caller may have none, or may not read the whole table.
    """
    own = vending_terms(permit.obligations)
    for terms in (own, vending_terms(vend.obligations)):
        if terms.refusal is not None:
            raise SigningForbidden(f"No request is signed: {terms.refusal}")
        if not terms.whole:
            raise SigningForbidden("No request is signed: not all of this table may be read")
    level = creation_level(vend) if isinstance(vend.operation, VendCreationCredentials) else load_level(vend)
    if level is AccessLevel.READ_WRITE_DELETE and not own.may_delete:
        return AccessLevel.READ_WRITE
    return level


def _require(level: AccessLevel, action: SignedAction) -> None:
    if _RANK[action.level] > _RANK[level]:
        raise SigningForbidden(
            f"The request to sign is a {action.value}, and your access to the files of this table is {level.value}"
        )


def _audited(read: ReadRequest) -> dict[str, str]:
    """Return the details for the audit record: the kind of the signed request, and the keys of its objects."""
    return {
        "signed": read.action.value,
        "method": read.method,
        "keys": " ".join(read.keys[:_AUDITED_KEYS]),
        "number_of_keys": str(len(read.keys)),
    }
