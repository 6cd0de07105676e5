# SPDX-License-Identifier: Apache-2.0
"""Operations on views in the catalog protocol.

No operation vends credentials for a view: the protocol's `LoadViewResult` has no member for them (August 2026), and a
view has no data of its own. Credentials are vended for the tables that it reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventData, EventDeclaration
from gateway.access.nouns.refs import NamespaceRef, ViewRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.operations.tables import commit_facts
from gateway.access.request import InBody, InPath, PageSize, PageToken, Query
from gateway.iceberg.wire import CommitViewRequest, CreateViewRequest
from gateway.obligations.application import EnforcementPoint


@dataclass(frozen=True)
class ListViews(ReadOperation):
    """List the views of a namespace that the caller sees."""

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
    """Create a view. The creator owns it."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/views"
    event: ClassVar[EventDeclaration] = ChangeEvent(
        on="namespace", new="view_id", named="request.name", data=EventData.BODY
    )
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
    """Load a view's metadata, its SQL included."""

    endpoint: ClassVar[str] = "GET /catalog/v1/{prefix}/namespaces/{namespace}/views/{view}"
    # An engine that gets the definition of the view reads the objects in the definition, so it would not apply a filter
    # on the view.
    enforcement_point: ClassVar[EnforcementPoint | None] = EnforcementPoint.LOAD
    view: InPath[ViewRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.view),)


@dataclass(frozen=True)
class ViewExists(ReadOperation):
    """Check that a view exists and the caller sees it."""

    endpoint: ClassVar[str] = "HEAD /catalog/v1/{prefix}/namespaces/{namespace}/views/{view}"
    returns: ClassVar[int] = 204
    view: InPath[ViewRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.view),)


@dataclass(frozen=True)
class CommitView(ChangeOperation):
    """Commit a change of a view: its definition, properties or location."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/views/{view}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="view", type="updateView", data=EventData.BODY)
    view: InPath[ViewRef]
    request: InBody[CommitViewRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.COMMIT, self.view),)

    def facts(self) -> Facts:
        return commit_facts(self.request)


@dataclass(frozen=True)
class DropView(ChangeOperation):
    """Drop a view; `force` overrides its protection.

    `purge` deletes its metadata files at once (true), keeps them (false), or deletes them after the clean-up window
    (None, the protocol's own drop). While the files exist, the view can be registered again.
    """

    endpoint: ClassVar[str] = "DELETE /catalog/v1/{prefix}/namespaces/{namespace}/views/{view}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="view", data=EventData.NOTHING)
    returns: ClassVar[int] = 204
    view: InPath[ViewRef]
    purge: Annotated[bool | None, Query("purgeRequested")] = None
    force: Annotated[bool, Query("force")] = False

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.DROP, self.view),)

    def facts(self) -> Facts:
        return {"purge": self.purge is not False, "force": self.force}
