# SPDX-License-Identifier: Apache-2.0
"""Bodies of the requests and responses for data policies."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from gateway.access.bodies import Answer, Name, ProjectId, StrictRequest
from gateway.access.operations.roles import Description
from gateway.iceberg.identifiers import MAX_PATTERN_LENGTH, MAX_PATTERN_LEVELS, NamePattern
from gateway.obligations.data_policies import AppliesTo, Definition

Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=1024, pattern=r"^[^\x00]*(?![\s\S])$")]


class CreateDataPolicyRequest(StrictRequest, frozen=True):
    """Request of `POST /data-policy`."""

    name: Name
    definition: Definition
    description: Description | None = None
    applies_to: AppliesTo = AppliesTo.EVERYONE
    allow_append: bool = False
    project_id: ProjectId | None = None


class UpdateDataPolicyRequest(StrictRequest, frozen=True):
    """Request of `PUT /data-policy/{id}`: all fields of the new version.

    With `if-version`, the request fails if the policy has another version. `reason` is kept in the history.
    """

    name: Name
    definition: Definition
    description: Description | None = None
    applies_to: AppliesTo = AppliesTo.EVERYONE
    allow_append: bool = False
    reason: Reason | None = None
    if_version: Annotated[int, msgspec.Meta(ge=1)] | None = None


class DataPolicyAnswer(Answer, frozen=True, omit_defaults=True):
    """A data policy."""

    id: UUID
    project_id: str
    name: str
    version: int
    definition: Definition
    applies_to: AppliesTo = msgspec.field()
    allow_append: bool = msgspec.field()
    created_at: datetime
    description: str | None = None
    updated_at: datetime | None = None


class DataPolicyList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /data-policy`."""

    data_policies: list[DataPolicyAnswer]
    next_page_token: str | None = None


class DataPolicyDocument(Answer, frozen=True):
    """The fields of one version of a data policy."""

    name: str
    description: str | None
    definition: Definition
    applies_to: AppliesTo
    allow_append: bool


class DataPolicyVersionAnswer(Answer, frozen=True, omit_defaults=True):
    """A version of a data policy, with its author and the reason."""

    version: int
    document: DataPolicyDocument
    changed_by: str
    changed_at: datetime
    reason: str | None = None


class DataPolicyVersionList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /data-policy/{id}/version`, the newest version first."""

    versions: list[DataPolicyVersionAnswer]
    next_page_token: str | None = None


class BindingTarget(StrictRequest, frozen=True):
    """An object that a policy is bound to. A table or generic table needs the id of its warehouse too."""

    # The generated example contains no warehouse, so its type must be one that needs no warehouse.
    type: Annotated[
        Literal["table", "generic-table", "namespace", "warehouse", "tag"], msgspec.Meta(extra={"example": "namespace"})
    ]
    id: UUID
    warehouse_id: UUID | None = None

    def __post_init__(self) -> None:
        if self.type in ("table", "generic-table") and self.warehouse_id is None:
            raise ValueError(f"a {self.type} needs `warehouse-id`")

    def in_warehouse(self) -> UUID:
        """Return the warehouse of a table. Raises ValueError if the target has no warehouse."""
        if self.warehouse_id is None:
            raise ValueError("a table needs `warehouse-id`")
        return self.warehouse_id


Targets = Annotated[tuple[BindingTarget, ...], msgspec.Meta(max_length=100)]


_Level = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_PATTERN_LENGTH)]


class BoundName(StrictRequest, frozen=True):
    """Full names of tables that a policy is bound to, also of tables that do not exist yet.

    Each level of `namespace` and the `name` may contain the wildcards `*` (any characters) and `?` (one character). A
    backslash before one of them, or before a backslash, makes it an ordinary character.
    """

    warehouse_id: UUID
    namespace: Annotated[
        tuple[_Level, ...], msgspec.Meta(min_length=1, max_length=MAX_PATTERN_LEVELS - 1, extra={"example": ["sales"]})
    ]
    name: Annotated[_Level, msgspec.Meta(extra={"example": "customers"})]

    def __post_init__(self) -> None:
        self.pattern  # noqa: B018 - it raises ValueError for an invalid pattern

    @property
    def pattern(self) -> NamePattern:
        """Return the pattern of the names. Raises ValueError if it is invalid."""
        return NamePattern(self.namespace, self.name)


Names = Annotated[tuple[BoundName, ...], msgspec.Meta(max_length=20)]


class ChangeBindingsRequest(StrictRequest, frozen=True):
    """Request of `POST /data-policy/{id}/bindings`. Existing bindings stay as they are."""

    add: Targets = ()
    remove: Targets = ()
    add_names: Names = ()
    remove_names: Names = ()


class BindingAnswer(Answer, frozen=True, omit_defaults=True):
    """A binding. `recorded-fields` are the ids that the policy's columns had when a table was bound.

    A binding to a name has the type `name`, with the levels of its `namespace` and its `name`.
    """

    type: str
    id: UUID
    bound_by: str
    bound_at: datetime
    warehouse_id: UUID | None = None
    recorded_fields: tuple[int, ...] = ()
    namespace: tuple[str, ...] = ()
    name: str | None = None


class BindingList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /data-policy/{id}/bindings`."""

    bindings: list[BindingAnswer]
    next_page_token: str | None = None


class AffectedPrincipal(Answer, frozen=True):
    """A user or a role. The members of a role are not listed."""

    type: str
    id: str


class MaskedColumn(Answer, frozen=True):
    """A column that a policy masks, with the mask that its type allows."""

    name: str
    field_id: int
    action: str


class AffectedTable(Answer, frozen=True, omit_defaults=True):
    """A table on which a policy has an effect, with the principals whose grants read it and that are not exempt.

    `masked-columns` are the columns that a mask covers, and `filtered-columns` the names of those that a row filter
    tests. `hides-all-rows` is true for a row filter that cannot be applied to the table, and `refused` if no engine
    could apply the policy: the restricted principals get no data.

    No engine can apply policies to a `generic-table`, so these principals get no data of it. `lost` is true for an
    object with a name that an earlier object had, which the policy restricted more. Only such an object can be a `view`
    or a `namespace`; the `name` of a namespace is empty.
    """

    type: Literal["table", "generic-table", "view", "namespace"]
    table_id: UUID
    warehouse_id: UUID
    namespace: list[str]
    name: str
    principals: list[AffectedPrincipal]
    lost: bool = False
    masked_columns: list[MaskedColumn] = []
    filtered_columns: list[str] = []
    hides_all_rows: bool = False
    refused: bool = False


class AffectedList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /data-policy/{id}/affected`, and of the dry run of a change of bindings.

    In a dry run, `restricts-caller` is true if the policy restricts the caller where it is bound.
    """

    tables: list[AffectedTable]
    next_page_token: str | None = None
    restricts_caller: bool = False


class PolicyPlace(Answer, frozen=True):
    """An object that a policy is bound to: the table, its name, a namespace, the warehouse or a tag of the table."""

    type: str
    id: UUID


class TableDataPolicy(Answer, frozen=True, omit_defaults=True):
    """A data policy of a table. `restricts` and `exempt` are about one principal.

    `name` is absent if the caller may not read the policy.
    """

    id: UUID
    kind: str
    applies_to: str
    bound_to: list[PolicyPlace]
    restricts: bool
    exempt: bool
    name: str | None = None


class TableDataPolicyList(Answer, frozen=True):
    """Response of `GET …/table/{id}/data-policies`, in order of the ids."""

    data_policies: list[TableDataPolicy]


class AlertAnswer(Answer, frozen=True):
    """A table to which a policy could not be applied as written. A stricter restriction applies there."""

    table_id: UUID
    problem: str
    first_seen_at: datetime
    last_seen_at: datetime


class AlertList(Answer, frozen=True):
    """Response of `GET /data-policy/{id}/alerts`."""

    alerts: list[AlertAnswer]


class ReleaseColumnRequest(StrictRequest, frozen=True):
    """Request of `POST /data-policy/{id}/release`."""

    table_id: UUID
    field_id: Annotated[int, msgspec.Meta(ge=1, le=2_147_483_647)]


class DataPolicyPreview(Answer, frozen=True, omit_defaults=True):
    """Response of `GET …/data-policies/preview`: what the principal would get of the table.

    `allowed` is false if the principal may not read the table. `read-restrictions` are those of a load through an
    engine that applies them, absent without restrictions. They belong to the schemas of `metadata-location`.
    """

    allowed: bool
    metadata_location: str | None = None
    read_restrictions: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
