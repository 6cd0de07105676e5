# SPDX-License-Identifier: Apache-2.0
"""The properties of a load or create that make a client have its requests signed."""

from __future__ import annotations

from urllib.parse import quote
from uuid import UUID

from gateway.access.resolved import ResolvedTable, ResolvedWarehouse
from gateway.iceberg.identifiers import SEPARATOR, Namespace
from gateway.storage.registry import stored_profile
from gateway.vending.remote_signing import RemoteSigner


class SigningOffers:
    """Builds the properties. `base_uri` is the configured address of the gateway; None if it is not configured.

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
        return self._signer.client_properties(stored_profile(warehouse.profile), uri=self._uri, endpoint=endpoint)
