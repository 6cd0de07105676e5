# SPDX-License-Identifier: Apache-2.0
"""What can be asked about views through the catalog protocol.

No operation vends credentials for a view: the protocol's `LoadViewResult` has no member for them (August 2026), and a
view has no data of its own. What it reads is vended table by table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.operations.tables import commit_facts
from gateway.access.refs import NamespaceRef, ViewRef
from gateway.access.relations import Can
from gateway.access.request import InBody, InPath, PageSize, PageToken, Query
from gateway.iceberg.wire import CommitViewRequest, CreateViewRequest


@dataclass(frozen=True)
class ListViews(ReadOperation):
    """The views of a namespace that the caller sees."""

    endpoint: ClassVar[str] = "GET /catalog/v1/{prefix}/namespaces/{namespace}/views"
    namespace: InPath[NamespaceRef]
    page_token: PageToken = None
    page_size: PageSize = None
    return_uuids: Annotated[bool, Query("returnUuids")] = False
    return_protection_status: Annotated[bool, Query("returnProtectionStatus")] = False

    def demands(self) -> tuple[Demand, ...]:
        return (
            Demand(Can.LIST_VIEWS, self.namespace),
            Demand(Can.LIST_EVERYTHING, self.namespace, required=False),
        )


@dataclass(frozen=True)
class CreateView(ChangeOperation):
    """A new view; the creator owns it."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/views"
    namespace: InPath[NamespaceRef]
    request: InBody[CreateViewRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_VIEW, self.namespace),)

    def facts(self) -> Facts:
        return {
            "view": self.request.name,
            "explicit_location": self.request.location is not None,
            "property_names": tuple(sorted(self.request.properties)),
        }


@dataclass(frozen=True)
class LoadView(ReadOperation):
    """A view's metadata, its SQL included."""

    endpoint: ClassVar[str] = "GET /catalog/v1/{prefix}/namespaces/{namespace}/views/{view}"
    view: InPath[ViewRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.view),)


@dataclass(frozen=True)
class ViewExists(ReadOperation):
    """Whether the caller sees a view."""

    endpoint: ClassVar[str] = "HEAD /catalog/v1/{prefix}/namespaces/{namespace}/views/{view}"
    returns: ClassVar[int] = 204
    view: InPath[ViewRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.view),)


@dataclass(frozen=True)
class CommitView(ChangeOperation):
    """A change of an existing view: another definition, other properties, another place."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/views/{view}"
    view: InPath[ViewRef]
    request: InBody[CommitViewRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.COMMIT, self.view),)

    def facts(self) -> Facts:
        return commit_facts(self.request)


@dataclass(frozen=True)
class DropView(ChangeOperation):
    """A view goes. `purge` says whether its metadata files go at once (true), stay (false), or go when the clean-up
    window is over (None, the protocol's own drop): until then it can be registered again, as with files that stay.
    `force` as of a table.
    """

    endpoint: ClassVar[str] = "DELETE /catalog/v1/{prefix}/namespaces/{namespace}/views/{view}"
    returns: ClassVar[int] = 204
    view: InPath[ViewRef]
    purge: Annotated[bool | None, Query("purgeRequested")] = None
    force: Annotated[bool, Query("force")] = False

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.DROP, self.view),)

    def facts(self) -> Facts:
        return {"purge": self.purge is not False, "force": self.force}
