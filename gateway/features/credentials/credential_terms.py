# SPDX-License-Identifier: Apache-2.0
"""The access level of vended credentials, and the address from which a client refreshes them. Pure."""

from __future__ import annotations

from urllib.parse import quote
from uuid import UUID

from gateway.access.door.permit import Permit
from gateway.access.nouns.relations import Can
from gateway.access.operations.credentials import VendCreationCredentials, VendCredentials, VendStagedCredentials
from gateway.access.operations.generic_tables import VendGenericTableCreationCredentials
from gateway.iceberg.identifiers import SEPARATOR, TableIdentifier
from gateway.obligations.application import VendingTerms, vending_terms
from gateway.scope.credential import AccessLevel


def load_level(permit: Permit[VendCredentials]) -> AccessLevel:
    """Return the access level of a load's credentials."""
    table = permit.operation.table
    # A caller that may not read all of the table gets no write access: it could write back values that it cannot read,
    # or overwrite rows without them. If its data policies allow appends, it may add files and delete none.
    terms = vending_terms(permit.obligations)
    may_write = permit.holds(Can.WRITE_DATA, table) and (terms.whole or terms.appends)
    return level_of(may_write, terms)


def creation_level(
    permit: Permit[VendCreationCredentials]
    | Permit[VendStagedCredentials]
    | Permit[VendGenericTableCreationCredentials],
) -> AccessLevel:
    """Return the access level of the credentials of a table's creator."""
    return level_of(True, vending_terms(permit.obligations))


def level_of(may_write: bool, terms: VendingTerms) -> AccessLevel:
    """Return the access level. Without `may_write` it is read-only. Otherwise it is read, write and delete, unless an
    obligation forbids deletion.
    """
    if not may_write:
        return AccessLevel.READ
    return AccessLevel.READ_WRITE_DELETE if terms.may_delete and terms.whole else AccessLevel.READ_WRITE


def refresh_endpoint(
    warehouse_id: UUID, identifier: TableIdentifier, *, generic: bool = False, staged: UUID | None = None
) -> str:
    """Return the endpoint from which a client refreshes credentials.

    For a table it is relative to the catalog's URI, as Iceberg clients expect. For a generic table it is relative to
    the root of this server. If `staged` is the id of a staged table, the endpoint works before and after its commit.
    """
    namespace, name = quote(SEPARATOR.join(identifier.namespace.levels), safe=""), quote(identifier.name, safe="")
    top, kind = ("/lakekeeper/v1", "generic-tables") if generic else ("v1", "tables")
    place = f"{kind}/{name}" if staged is None else f"created/{name}/{staged}"
    return f"{top}/{warehouse_id}/namespaces/{namespace}/{place}/credentials"
