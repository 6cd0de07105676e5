# SPDX-License-Identifier: Apache-2.0
"""Sign requests of clients to the store of a table, with the available key that has the fewest rights.

If the store has sessions, a session of the table signs: the one that would be vended to the caller, from the same
cache. It is not sent to the client, so its lifetime is only limited by the profile. Otherwise the warehouse's own key
signs. Properties in the responses to loads and creations tell clients that they can request signatures
(`SigningOffers`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote
from uuid import UUID

from gateway.access.nouns.resolved import ResolvedTable, ResolvedWarehouse
from gateway.iceberg.identifiers import SEPARATOR, Namespace
from gateway.scope.credential import (
    AccessLevel,
    Credential,
    ReadRequest,
    RemoteSigningDisabled,
    SignWithoutCredentials,
    UnsignedRequest,
)
from gateway.scope.location import Location
from gateway.scope.profile import NoVending, StorageProfile, longest_life
from gateway.storage.provider import Signer, StorageClients
from gateway.vending.vendor import LocationOutsideWarehouse, NoCredentials, SessionIdentity, Vendor

__all__ = ["RemoteSigner", "SignedRequest", "SigningKey", "SigningOffers"]


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A signed request: all its headers by name, and the name of the signing session (empty for the warehouse's own
    key).
    """

    headers: Mapping[str, str]
    session_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """The inputs that determine the signing key: the warehouse's credential, and the caller's session."""

    credential: Credential | None
    profile_version: str
    level: AccessLevel
    session: SessionIdentity
    just_before: Callable[[], Awaitable[None]]


class RemoteSigner:
    """Signs requests by the rules of the warehouse's provider."""

    def __init__(self, clients: StorageClients, vendor: Vendor) -> None:
        self._clients = clients
        self._vendor = vendor

    def client_properties(self, profile: StorageProfile, *, uri: str | None, endpoint: str) -> dict[str, str] | None:
        """Return the properties that make a client send its requests for signing; None if the warehouse does not
        sign.
        """
        signer = self._clients.of(profile).signer
        if signer is None or not signer.offered(profile):
            return None
        return signer.client_properties(uri=uri, endpoint=endpoint)

    def read(self, profile: StorageProfile, location: Location, request: UnsignedRequest) -> ReadRequest:
        """Parse a request completely. Raises LocationOutsideWarehouse, and the errors of `Signer.read`."""
        # The base location of a warehouse can be narrowed. A table outside of it gets no signatures, as it gets no
        # credentials.
        if not profile.base_location().contains(location, strict=True):
            raise LocationOutsideWarehouse(
                "The table's location is not below the base location of its warehouse, so no requests are signed. "
                "Create or register the table below the base location."
            )
        return self._signer(profile).read(profile, location, request)

    async def sign(
        self, profile: StorageProfile, location: Location, request: ReadRequest, key: SigningKey
    ) -> SignedRequest:
        """Return the signed request. Raises SignWithoutCredentials, UnsupportedSignRequest, and the errors of
        `Vendor.vend`.
        """
        signer = self._signer(profile)
        if key.credential is None:
            raise SignWithoutCredentials("The warehouse has no storage credential, so no requests are signed")
        if isinstance(profile.downscoping, NoVending):
            return SignedRequest(signer.sign(profile, request, key.credential), "")
        vended = await self._vendor.vend(
            profile=profile,
            profile_version=key.profile_version,
            credential=key.credential,
            location=location,
            level=key.level,
            seconds=longest_life(profile),
            session=key.session,
            just_before=key.just_before,
        )
        if isinstance(vended, NoCredentials):
            # If the session failed, the request is not signed with the warehouse's own key instead.
            raise SignWithoutCredentials(f"No request is signed: {vended.reason}")
        return SignedRequest(signer.sign(profile, request, vended.temporary), vended.session_name)

    def _signer(self, profile: StorageProfile) -> Signer:
        signer = self._clients.of(profile).signer
        if signer is None:
            raise RemoteSigningDisabled("Requests to the storage of this warehouse are not signed")
        return signer


class SigningOffers:
    """Builds the properties that offer signatures. `base_uri` is the gateway's address in the settings, None if it is
    not set.

    Without it, clients use the catalog's address, to which they sent the load. An address taken from the request could
    send a caller's token to another server, as in `Configurations.get`.
    """

    def __init__(self, signer: RemoteSigner, *, base_uri: str | None) -> None:
        self._signer = signer
        self._uri = None if base_uri is None else f"{base_uri}/catalog/"

    def for_table(self, table: ResolvedTable) -> dict[str, str] | None:
        """Return the properties for a table; None if its warehouse signs no requests.

        The endpoint contains the table's id, because a rename must not break a client that has the table open.
        """
        return self._offer(table.warehouse, f"v1/signer/{table.warehouse.id}/tabular-id/{table.id}/v1/aws/s3/sign")

    def for_created(
        self, warehouse: ResolvedWarehouse, namespace: Namespace, name: str, id: UUID
    ) -> dict[str, str] | None:
        """Return the properties for a table that its creator has just created or staged."""
        path = f"{quote(SEPARATOR.join(namespace.levels), safe='')}/created/{quote(name, safe='')}/{id}"
        return self._offer(warehouse, f"v1/signer/{warehouse.id}/namespaces/{path}/v1/aws/s3/sign")

    def _offer(self, warehouse: ResolvedWarehouse, endpoint: str) -> dict[str, str] | None:
        if warehouse.credential_id is None:
            return None
        return self._signer.client_properties(warehouse.storage_profile, uri=self._uri, endpoint=endpoint)
