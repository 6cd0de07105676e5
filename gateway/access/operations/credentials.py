# SPDX-License-Identifier: Apache-2.0
"""Operations that give credentials: vended ones for a table, signatures of requests to its store, exchanged tokens.

In remote signing, reads and changes are two operations of one endpoint. So policies can distinguish them, and read-only
maintenance refuses only changes. The handler decides `VendCredentials` together with each of them: a policy that
refuses a caller credentials refuses it signatures too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar
from uuid import UUID

import msgspec

from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import EventDeclaration, NoEvent
from gateway.access.nouns.refs import NamespaceRef, Ref, Table, TableRef, TabularRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import Audience, ChangeOperation, PublicAudience, VendingOperation
from gateway.access.request import InBody, InPath
from gateway.iceberg.errors import CatalogError, NoSuchTableLocationException
from gateway.iceberg.wire import RemoteSignRequest
from gateway.obligations.application import EnforcementPoint


@dataclass(frozen=True)
class VendCredentials(VendingOperation):
    """Vend temporary credentials for the table's prefix.

    They are for reads with `can_read_data`, also for writes with `can_write_data`. With `signing`, the client asks for
    signatures of its requests in place of credentials.
    """

    endpoint: ClassVar[str] = "GET /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"
    enforcement_point: ClassVar[EnforcementPoint | None] = EnforcementPoint.VEND
    table: InPath[TableRef]
    signing: bool = False

    def demands(self) -> tuple[Demand, ...]:
        return self._demands

    # Computed once: one decision reads the demands several times, and loads are the most frequent requests.
    @cached_property
    def _demands(self) -> tuple[Demand, ...]:
        return (
            Demand(Can.READ_DATA, self.table, restricted=Can.READ_COLUMNS),
            Demand(Can.WRITE_DATA, self.table, required=False, changes=True),
        )


@dataclass(frozen=True)
class VendCreationCredentials(ChangeOperation):
    """Vend credentials for a table to its creator. `CreateTable` is decided with it, at the same endpoint."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/tables"
    event: ClassVar[EventDeclaration] = NoEvent("it changes no object; the creation itself is announced")
    enforcement_point: ClassVar[EnforcementPoint | None] = EnforcementPoint.VEND
    namespace: NamespaceRef
    table: str
    signing: bool = False

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_TABLE, self.namespace),)

    def new_table(self) -> str | None:
        return self.table


@dataclass(frozen=True)
class VendStagedCredentials(VendingOperation):
    """Vend new credentials for a table that its creator has staged and not yet committed.

    `can_create_table` on the namespace is demanded, as for the commit. The path contains the id of the staged table. A
    client keeps the address after the commit: the request is then decided like any other (`of_table`).
    """

    endpoint: ClassVar[str] = "GET /catalog/v1/{prefix}/namespaces/{namespace}/created/{table}/{table_id}/credentials"
    enforcement_point: ClassVar[EnforcementPoint | None] = EnforcementPoint.VEND
    namespace: InPath[NamespaceRef]
    table: InPath[str]
    table_id: InPath[UUID]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_TABLE, self.namespace),)

    def of_table(self) -> VendCredentials:
        """Return the operation for the table after its creation was committed."""
        return VendCredentials(TabularRef(Table, self.namespace.warehouse_id, self.table_id))


@dataclass(frozen=True)
class _Signing(VendingOperation, abstract=True):
    """Common parts of the signing operations.

    The protocol has no 404 for these endpoints, so a hidden table results in 400.
    """

    @classmethod
    def is_catalog_mutation(cls) -> bool:
        """Return False. A signature changes nothing in the catalog, so the response to an outage is that of a read."""
        return False

    @classmethod
    def uses_idempotency_keys(cls) -> bool:
        return False

    def hidden(self, ref: Ref) -> CatalogError:
        """Return NoSuchTableLocationException, for absent and for invisible tables and warehouses alike."""
        return NoSuchTableLocationException(
            "No table at this location. It does not exist, or you do not have the privilege to see it."
        )


@dataclass(frozen=True)
class SignRequest(_Signing):
    """Sign a read of a table's files: GET, HEAD or a list.

    `can_read_data` is demanded. A caller that may read only some columns or rows gets no signature. POST requests,
    although they are about files to read, are changes.
    """

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}/sign"
    also_at: ClassVar[tuple[str, ...]] = ("/catalog/v1/signer/{warehouse_id}/tabular-id/{table_id}/v1/aws/s3/sign",)
    enforcement_point: ClassVar[EnforcementPoint | None] = EnforcementPoint.SIGN
    table: InPath[TableRef]
    request: InBody[RemoteSignRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_DATA, self.table, restricted=Can.READ_COLUMNS),)


@dataclass(frozen=True)
class SignWrite(_Signing):
    """Sign a change of a table's files: a write, an upload in parts or a deletion.

    `can_read_data` and `can_write_data` are demanded, as for credentials that can write.
    """

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}/sign"
    also_at: ClassVar[tuple[str, ...]] = SignRequest.also_at
    enforcement_point: ClassVar[EnforcementPoint | None] = EnforcementPoint.SIGN
    table: InPath[TableRef]
    request: InBody[RemoteSignRequest]

    @classmethod
    def pauses(cls) -> bool:
        return True

    def demands(self) -> tuple[Demand, ...]:
        return (
            Demand(Can.READ_DATA, self.table, restricted=Can.READ_COLUMNS),
            Demand(Can.WRITE_DATA, self.table),
        )


@dataclass(frozen=True)
class SignCreation(_Signing):
    """Sign a request to the files of a table that its creator has staged and not yet committed.

    `can_create_table` on the namespace is demanded, as for the commit. The path contains the id of the staged table; of
    a table that exists, the request is decided like any other (`of_table`).
    """

    endpoint: ClassVar[str] = (
        "POST /catalog/v1/signer/{prefix}/namespaces/{namespace}/created/{table}/{table_id}/v1/aws/s3/sign"
    )
    enforcement_point: ClassVar[EnforcementPoint | None] = EnforcementPoint.SIGN
    namespace: InPath[NamespaceRef]
    table: InPath[str]
    table_id: InPath[UUID]
    request: InBody[RemoteSignRequest]

    @classmethod
    def pauses(cls) -> bool:
        return True

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_TABLE, self.namespace),)

    def of_table(self) -> SignRequest | SignWrite:
        """Return the operation for the table after its creation was committed."""
        return sign_operation(TabularRef(Table, self.namespace.warehouse_id, self.table_id), self.request)


def sign_operation(table: TableRef, request: RemoteSignRequest) -> SignRequest | SignWrite:
    """Return the operation that signs the request. The request's method determines whether it changes anything.

    By its id, a dropped table is found too: engines drop a table before they delete its files, and keep the address.
    """
    table = table if table.named else replace(table, dropped=True)
    return SignRequest(table, request) if request.reads else SignWrite(table, request)


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """The user that a token is issued for.

    `groups` and `policy_claims` are those of the token that proves the user; a user that the engine only asserted has
    none. `groups_known` is False if that token does not contain the groups. `project_id` is the only project that the
    token is valid for, None if it is valid for all. `not_after` (seconds since 1970) is the expiry of the token that
    proves the user.
    """

    user_id: str
    project_id: str | None = None
    groups: tuple[str, ...] = ()
    groups_known: bool = True
    policy_claims: tuple[tuple[str, tuple[str, ...]], ...] = ()
    not_after: float | None = None


@dataclass(frozen=True)
class ExchangeToken(VendingOperation):
    """Issue a token for a user to the calling engine (RFC 8693).

    The user is `proven` by a token of their own, or only named by the engine. The token names no warehouse: each use
    checks that the engine holds `delegate` on the warehouse of the object. An engine that holds `delegate` nowhere gets
    no token.
    """

    endpoint: ClassVar[str] = "POST /catalog/v1/oauth/tokens"
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.AUTHENTICATED, "the issued token is checked at each use: its engine needs can_delegate there"
    )
    authenticates_itself: ClassVar[str] = "the engine's token may be in the form, as RFC 8693 has it"
    subject: Subject
    proven: bool

    def facts(self) -> Facts:
        return {"subject": self.subject.user_id, "proven": self.proven}

    @classmethod
    def is_catalog_mutation(cls) -> bool:
        """Return False: no commit depends on the outcome, so clients may retry the request after an outage."""
        return False
