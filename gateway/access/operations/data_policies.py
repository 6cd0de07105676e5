# SPDX-License-Identifier: Apache-2.0
"""Operations on data policies (row filters and masks), on their versions, and on their bindings to objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, assert_never
from uuid import UUID

from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration
from gateway.access.nouns.data_policy import DataPolicyRef
from gateway.access.nouns.families import TABLE
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.refs import (
    GenericTable,
    NamespaceIdRef,
    NamespaceRef,
    Ref,
    Table,
    TableRef,
    TabularRef,
    WarehouseRef,
)
from gateway.access.nouns.relations import Can
from gateway.access.nouns.tag import TagRef
from gateway.access.operation import ChangeOperation, QuestionOperation, ReadOperation
from gateway.access.operations.data_policy_bodies import (
    BindingTarget,
    BoundName,
    ChangeBindingsRequest,
    CreateDataPolicyRequest,
    ReleaseColumnRequest,
    UpdateDataPolicyRequest,
)
from gateway.access.request import About, Body, InBody, InPath, OfRequest, PageSize, PageToken, Query, RequestProject


@dataclass(frozen=True)
class CreateDataPolicy(ChangeOperation):
    """Create a data policy in a project. The creator owns it. It restricts no principal before it is bound."""

    endpoint: ClassVar[str] = "POST /management/v1/data-policy"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="project", new="data_policy_id", named="request.name")
    returns: ClassVar[int] = 201
    project: Annotated[ProjectRef, RequestProject(in_body=True)]
    request: InBody[CreateDataPolicyRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_DATA_POLICY, self.project),)

    def facts(self) -> Facts:
        return {"policy_name": self.request.name, "applies_to": self.request.applies_to.value}


@dataclass(frozen=True)
class ListDataPolicies(ReadOperation):
    """List the data policies of a project."""

    endpoint: ClassVar[str] = "GET /management/v1/data-policy"
    project: OfRequest
    page_token: PageToken = None
    page_size: PageSize = None

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.LIST_DATA_POLICIES, self.project),)


@dataclass(frozen=True)
class _OfDataPolicy:
    """Mixin of operations on one data policy that demand one relation to it."""

    needs: ClassVar[Can]
    policy: InPath[DataPolicyRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(self.needs, self.policy),)


@dataclass(frozen=True)
class GetDataPolicy(_OfDataPolicy, ReadOperation):
    """Return a data policy."""

    endpoint: ClassVar[str] = "GET /management/v1/data-policy/{policy_id}"
    needs: ClassVar[Can] = Can.READ


@dataclass(frozen=True)
class ListDataPolicyVersions(_OfDataPolicy, ReadOperation):
    """List the versions of a data policy, the newest first."""

    endpoint: ClassVar[str] = "GET /management/v1/data-policy/{policy_id}/version"
    needs: ClassVar[Can] = Can.READ
    page_token: PageToken = None
    page_size: PageSize = None


@dataclass(frozen=True)
class UpdateDataPolicy(_OfDataPolicy, ChangeOperation):
    """Write a new version of a data policy. It applies at once to all bound objects."""

    endpoint: ClassVar[str] = "PUT /management/v1/data-policy/{policy_id}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="policy")
    needs: ClassVar[Can] = Can.UPDATE
    request: InBody[UpdateDataPolicyRequest]

    def facts(self) -> Facts:
        return {"policy_name": self.request.name, "applies_to": self.request.applies_to.value}


@dataclass(frozen=True)
class DeleteDataPolicy(_OfDataPolicy, ChangeOperation):
    """Delete a data policy. A bound policy is deleted only with `force`; it then restricts no principal any more."""

    endpoint: ClassVar[str] = "DELETE /management/v1/data-policy/{policy_id}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="policy")
    needs: ClassVar[Can] = Can.DELETE
    returns: ClassVar[int] = 204
    force: Annotated[bool, Query("force")] = False

    def facts(self) -> Facts:
        return {"force": self.force}


@dataclass(frozen=True)
class ListDataPolicyBindings(_OfDataPolicy, ReadOperation):
    """List the objects that a data policy is bound to."""

    endpoint: ClassVar[str] = "GET /management/v1/data-policy/{policy_id}/bindings"
    needs: ClassVar[Can] = Can.READ
    page_token: PageToken = None
    page_size: PageSize = None


@dataclass(frozen=True)
class _OfBindings:
    """Mixin of operations that change a policy's bindings.

    They need a right on the policy and on each object. For a name it is the right on the deepest existing namespace
    that contains every name of the pattern, or on the warehouse if there is none.
    """

    policy: InPath[DataPolicyRef]
    request: InBody[ChangeBindingsRequest]

    def demands(self) -> tuple[Demand, ...]:
        targets = dict.fromkeys((*self.request.add, *self.request.remove))
        names = (*self.request.add_names, *self.request.remove_names)
        warehouses = dict.fromkeys(Demand(Can.USE, WarehouseRef(each.warehouse_id)) for each in names)
        within = dict.fromkeys(
            Demand(Can.BIND_DATA_POLICY, place, required=False) for each in names for place in places_of(each)
        )
        return (Demand(Can.BIND, self.policy), *(_demand(each) for each in targets), *warehouses, *within)

    def facts(self) -> Facts:
        return {
            "adds": tuple(f"{each.type}:{each.id}" for each in self.request.add),
            "removes": tuple(f"{each.type}:{each.id}" for each in self.request.remove),
            "adds_names": tuple(_name_text(each) for each in self.request.add_names),
            "removes_names": tuple(_name_text(each) for each in self.request.remove_names),
        }


@dataclass(frozen=True)
class BindDataPolicy(_OfBindings, ChangeOperation):
    """Bind a data policy to objects and names, and unbind it from others."""

    endpoint: ClassVar[str] = "POST /management/v1/data-policy/{policy_id}/bindings"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="policy")
    returns: ClassVar[int] = 204


@dataclass(frozen=True)
class TryDataPolicyBindings(_OfBindings, QuestionOperation):
    """Return the tables on which a data policy would have an effect after a change of its bindings. Change nothing."""

    endpoint: ClassVar[str] = "POST /management/v1/data-policy/{policy_id}/bindings/dry-run"
    page_token: PageToken = None
    page_size: PageSize = None

    def demands(self) -> tuple[Demand, ...]:
        return (*super().demands(), Demand(Can.READ_AFFECTED, self.policy))


@dataclass(frozen=True)
class ListDataPolicyAffected(_OfDataPolicy, ReadOperation):
    """List the tables on which a data policy has an effect, each with the effect and the principals that it restricts.

    With `without_effect`, all tables that the policy covers are listed.
    """

    endpoint: ClassVar[str] = "GET /management/v1/data-policy/{policy_id}/affected"
    needs: ClassVar[Can] = Can.READ_AFFECTED
    page_token: PageToken = None
    page_size: PageSize = None
    without_effect: Annotated[bool, Query("withoutEffect")] = False


@dataclass(frozen=True)
class ListDataPolicyAlerts(_OfDataPolicy, ReadOperation):
    """List the tables to which a data policy could not be applied as written."""

    endpoint: ClassVar[str] = "GET /management/v1/data-policy/{policy_id}/alerts"
    needs: ClassVar[Can] = Can.READ_AFFECTED


@dataclass(frozen=True)
class ListTableDataPolicies(ReadOperation):
    """List the data policies that are bound to a table, its containers and its tags, with their effect on a principal
    (the caller if None).
    """

    endpoint: ClassVar[str] = f"GET /management/v1/{TABLE.path}/data-policies"
    on: InPath[TableRef]
    principal: About = None

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_ASSIGNMENTS, self.on),)

    def facts(self) -> Facts:
        return {"about": "" if self.principal is None else f"{self.principal.type}:{self.principal.id}"}


@dataclass(frozen=True)
class PreviewDataPolicies(ListTableDataPolicies):
    """Return what a principal (the caller if None) would get of a table: nothing, all of it, or a part by restrictions.

    The restrictions contain literals and values of the principal, so the caller must be able to read all policies that
    apply. They give no access to data: a caller that may read the table applies them to what it reads itself.
    """

    endpoint: ClassVar[str] = f"GET /management/v1/{TABLE.path}/data-policies/preview"

    def demands(self) -> tuple[Demand, ...]:
        # The response names columns and the metadata file. Auditors read assignments and no metadata.
        return (*super().demands(), Demand(Can.GET_METADATA, self.on))


@dataclass(frozen=True)
class ReleaseDataPolicyColumn(_OfDataPolicy, ChangeOperation):
    """Remove one column of a table from a data policy, for example a new column with the name of a dropped one."""

    endpoint: ClassVar[str] = "POST /management/v1/data-policy/{policy_id}/release"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="policy")
    needs: ClassVar[Can] = Can.RELEASE
    returns: ClassVar[int] = 204
    table_id: Annotated[UUID, Body(ReleaseColumnRequest, "table_id")]
    field_id: Annotated[int, Body(ReleaseColumnRequest, "field_id")]

    def facts(self) -> Facts:
        return {"table_id": str(self.table_id), "field_id": self.field_id}


def target_ref(target: BindingTarget) -> Ref:
    """Return the reference to an object that a policy is bound to."""
    match target.type:
        case "table":
            return TabularRef(Table, target.in_warehouse(), target.id)
        case "generic-table":
            return TabularRef(GenericTable, target.in_warehouse(), target.id)
        case "namespace":
            return NamespaceIdRef(target.id, target.warehouse_id)
        case "warehouse":
            return WarehouseRef(target.id)
        case "tag":
            return TagRef(target.id)
        case _:
            assert_never(target.type)


def places_of(name: BoundName) -> tuple[NamespaceRef | WarehouseRef, ...]:
    """Return the references of the containers in which the request may bind the name, the deepest first."""
    namespaces = (NamespaceRef(name.warehouse_id, each) for each in name.pattern.fixed_namespaces)
    return (*namespaces, WarehouseRef(name.warehouse_id))


def _name_text(name: BoundName) -> str:
    return f"{name.warehouse_id}:{'.'.join(name.pattern.levels)}"


def _demand(target: BindingTarget) -> Demand:
    # The model has no relation for bindings to generic tables. The right to change the owner is used, which the same
    # principals have.
    needs = {"tag": Can.APPLY, "generic-table": Can.CHANGE_OWNERSHIP}.get(target.type, Can.BIND_DATA_POLICY)
    return Demand(needs, target_ref(target))
