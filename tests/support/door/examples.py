# SPDX-License-Identifier: Apache-2.0
"""One or more examples of every operation: the value at the door, and the HTTP request for it.

Every test that visits all operations uses these. `test_lock_6_all_operations.py` fails for an operation without an
example.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import gateway.features.all_routes  # noqa: F401 - the import declares every operation
from gateway.access.authzen_mapping import own_type
from gateway.access.decisions.policy import Asserted
from gateway.access.nouns.cards import GRANTABLE
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import GenericTable, NamespaceIdRef, ObjectType, Ref, Table, TabularRef, View
from gateway.access.nouns.relations import Can
from gateway.access.nouns.server import UserRef
from gateway.access.operation import OPERATIONS, HttpOperation
from gateway.access.operations import (
    access_requests,
    access_reviews,
    actions,
    answer_lists,
    answers,
    audit,
    authzen,
    break_glass,
    change_tickets,
    checks,
    credentials,
    data_policies,
    deletion,
    engine_probes,
    events,
    generic_tables,
    grant_lists,
    live_credentials,
    mapping_tables,
    namespaces,
    policies,
    projects,
    registrations,
    roles,
    scim,
    search,
    server,
    statistics,
    tables,
    tag_attachments,
    tags,
    task_control,
    users,
    views,
    warehouses,
)
from gateway.access.operations import grant_lists as column_grants
from gateway.access.operations import namespaces as namespace_moves
from gateway.access.operations import server as config
from gateway.access.operations import server as docs
from gateway.access.operations import server as policy_bundles
from gateway.access.operations import server as system
from gateway.access.operations import server as ui
from gateway.access.operations import tables as renames
from gateway.access.operations import tables as transactions
from gateway.access.operations import task_control as task_queues
from gateway.access.operations.access_request_bodies import CreateAccessRequestRequest
from gateway.access.operations.authzen import AccessQuestion
from gateway.access.operations.break_glass_bodies import ActivateBreakGlassRequest
from gateway.access.operations.change_tickets import DecideChangeRequest
from gateway.access.operations.checks import Check
from gateway.access.operations.data_policy_bodies import (
    ChangeBindingsRequest,
    CreateDataPolicyRequest,
    UpdateDataPolicyRequest,
)
from gateway.access.operations.engine_probes import CreateEngineProbeRequest, EngineProbeResultRequest
from gateway.access.operations.events import ReplayEventsRequest, RetryDeadLettersRequest
from gateway.access.operations.grants import Assignment
from gateway.access.operations.mapping_tables import ChangeEntriesRequest, CreateMappingTableRequest
from gateway.access.operations.roles import CreateRoleRequest, RoleSourceRequest, UpdateRoleRequest
from gateway.access.operations.server import BootstrapRequest
from gateway.access.operations.tags import CreateTagRequest, UpdateTagRequest
from gateway.access.operations.task_bodies import (
    ControlTasksRequest,
    ListProjectTasksRequest,
    ListTasksRequest,
    SetQueueConfigRequest,
)
from gateway.access.operations.warehouse_bodies import (
    CreateWarehouseRequest,
    FormatVersionPolicyRequest,
    HardDelete,
    UpdateCredentialRequest,
    UpdateStorageRequest,
)
from gateway.access.tuples import Principal, PrincipalType
from gateway.iceberg.codec import decode
from gateway.iceberg.generic_tables import CreateGenericTableRequest
from gateway.iceberg.identifiers import Namespace, TableIdentifier
from gateway.iceberg.wire import (
    CommitReport,
    CommitTableRequest,
    CommitTransactionRequest,
    CommitViewRequest,
    CreateNamespaceRequest,
    CreateTableRequest,
    CreateViewRequest,
    RegisterTableRequest,
    RegisterViewRequest,
    RemoteSignRequest,
    ScanReport,
    UpdateNamespacePropertiesRequest,
)
from gateway.scim.patch import patched_group
from gateway.scim.reading import group_of, read, user_of
from gateway.scim.wire import USER as CORE_USER
from gateway.scim.wire import GroupRequest, PatchRequest, UserRequest
from tests.support.door import access_requests as access_examples
from tests.support.door import break_glass as break_glass_examples
from tests.support.door import world


@dataclass(frozen=True)
class Example:
    """An operation and its request. `label` is its column title in the matrix; `path` fills the template of the
    endpoint.
    """

    label: str
    operation: HttpOperation
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    form: Mapping[str, str] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def method(self) -> str:
        """Return the HTTP method."""
        return self.operation.endpoint.split(" ", 1)[0]

    @property
    def url(self) -> str:
        """Return the path with its parameters filled in."""
        template = self.operation.endpoint.split(" ", 1)[1]
        return template.format_map(self.path)

    @property
    def about(self) -> ObjectType | None:
        """Return the type of the first target; None for an operation without a target."""
        demands = self.operation.demands()
        return demands[0].on.type if demands else None


_ADOPT = {"x-lakegate-adopt": "true"}
_W = {"prefix": str(world.WAREHOUSE_ID)}
_N = {**_W, "namespace": "sales%1Feu"}
_T = {**_N, "table": "orders"}
_V = {**_N, "view": "recent"}
_IN_WAREHOUSE = {"warehouse_id": str(world.WAREHOUSE_ID)}
_BOB = Principal(PrincipalType.USER, world.BOB_ID)

_SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": True}]}
_NEW_TABLE = {"name": "returns", "schema": _SCHEMA}
_NEW_VIEW = {
    "name": "latest",
    "schema": _SCHEMA,
    "view-version": {
        "version-id": 1,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 0,
        "summary": {},
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
        "default-namespace": ["sales"],
    },
    "properties": {},
}
_COMMIT = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
_GET: Mapping[str, Any] = {"region": "local-1", "method": "GET", "uri": "http://s3/lake/a", "headers": {}}
_PUT: Mapping[str, Any] = {**_GET, "method": "PUT"}
_CREATION = {**_COMMIT, "requirements": [{"type": "assert-create"}]}
_SCANNED = {
    "report-type": "scan-report",
    "table-name": "sales.eu.orders",
    "snapshot-id": 1,
    "filter": True,
    "schema-id": 0,
    "projected-field-ids": [1],
    "projected-field-names": ["id"],
    "metrics": {},
}
_COMMITTED = {
    "report-type": "commit-report",
    "table-name": "sales.eu.orders",
    "snapshot-id": 1,
    "sequence-number": 1,
    "operation": "append",
    "metrics": {},
}
_PROPERTIES = {"updates": {"owner": "bob"}, "removals": ["old"]}
_WAREHOUSE = {"warehouse-name": "new", "storage-profile": {"type": "s3", "bucket": "b"}}


def _body(value: Any) -> bytes:
    return json.dumps(value).encode()


def _tables() -> list[Example]:
    creation = tables.CommitTableCreation(world.NAMESPACE, "returns", decode(_body(_CREATION), CommitTableRequest))
    return [
        Example("list tables", tables.ListTables(world.NAMESPACE), _N),
        Example(
            "create table",
            tables.CreateTable(world.NAMESPACE, decode(_body(_NEW_TABLE), CreateTableRequest)),
            _N,
            body=_NEW_TABLE,
        ),
        Example("keys for it", credentials.VendCreationCredentials(world.NAMESPACE, "returns"), _N, body=_NEW_TABLE),
        Example("commit creation", creation, {**_N, "table": "returns"}, body=_CREATION),
        Example("load", tables.LoadTable(world.TABLE), _T),
        Example("exists", tables.TableExists(world.TABLE), _T),
        Example("vend", credentials.VendCredentials(world.TABLE), _T),
        Example(
            "commit", tables.CommitTable(world.TABLE, decode(_body(_COMMIT), CommitTableRequest)), _T, body=_COMMIT
        ),
        Example("drop", tables.DropTable(world.TABLE), _T),
        Example("sign", credentials.SignRequest(world.TABLE, decode(_body(_GET), RemoteSignRequest)), _T, body=_GET),
        Example(
            "sign a write", credentials.SignWrite(world.TABLE, decode(_body(_PUT), RemoteSignRequest)), _T, body=_PUT
        ),
        Example(
            "sign a creation",
            credentials.SignCreation(
                world.NAMESPACE, "returns", world.TABLE_ID, decode(_body(_PUT), RemoteSignRequest)
            ),
            {**_N, "table": "returns", "table_id": str(world.TABLE_ID)},
            body=_PUT,
        ),
        Example(
            "refresh the credentials of a creation",
            credentials.VendStagedCredentials(world.NAMESPACE, "returns", world.TABLE_ID),
            {**_N, "table": "returns", "table_id": str(world.TABLE_ID)},
        ),
        Example(
            "report scan",
            tables.ReportMetrics(world.TABLE, decode(_body(_SCANNED), ScanReport)),
            _T,
            body=_SCANNED,
        ),
        Example(
            "report commit",
            tables.ReportMetrics(world.TABLE, decode(_body(_COMMITTED), CommitReport)),
            _T,
            body=_COMMITTED,
        ),
    ]


def _generic_tables() -> list[Example]:
    new = {"name": "images", "format": "lance"}
    creating = generic_tables.CreateGenericTable(world.NAMESPACE, decode(_body(new), CreateGenericTableRequest))
    adopting = generic_tables.AdoptGenericTable(world.NAMESPACE, decode(_body(new), CreateGenericTableRequest))
    keys = generic_tables.VendGenericTableCreationCredentials(world.NAMESPACE, "images")

    def renaming(to: Namespace) -> tuple[HttpOperation, dict[str, Any]]:
        body = {
            "source": {"namespace": list(world.INNER.levels), "name": "vectors"},
            "destination": {"namespace": list(to.levels), "name": "renamed"},
        }
        return generic_tables.RenameGenericTable(world.GENERIC_TABLE, TableIdentifier(to, "renamed")), body

    (within, body_within), (away, body_away) = renaming(world.INNER), renaming(world.OUTER)
    path = {**_N, "table": "vectors"}
    return [
        Example("list generic tables", generic_tables.ListGenericTables(world.NAMESPACE), _N),
        Example("create generic table", creating, _N, body=new),
        Example("adopt generic table", adopting, _N, headers=_ADOPT, body=new),
        Example("keys for that", keys, _N, body=new),
        Example("load", generic_tables.LoadGenericTable(world.GENERIC_TABLE), path),
        Example("exists", generic_tables.GenericTableExists(world.GENERIC_TABLE), path),
        Example("vend", generic_tables.VendGenericTableCredentials(world.GENERIC_TABLE), path),
        Example("drop", generic_tables.DropGenericTable(world.GENERIC_TABLE), path),
        Example("rename", within, _W, body=body_within),
        Example("move", away, _W, body=body_away),
    ]


def _registrations() -> list[Example]:
    file = "s3://lake/somewhere/metadata/00001.metadata.json"
    new = {"name": "returns", "metadata-location": file}
    over = {"name": "orders", "metadata-location": file, "overwrite": True}
    return [
        Example(
            "register",
            registrations.RegisterTable(world.NAMESPACE, decode(_body(new), RegisterTableRequest)),
            _N,
            body=new,
        ),
        Example(
            "register over",
            registrations.RegisterTable(world.NAMESPACE, decode(_body(over), RegisterTableRequest)),
            _N,
            body=over,
        ),
        Example("unregister", registrations.UnregisterTable(world.TABLE), _T),
        Example(
            "register view",
            registrations.RegisterView(world.NAMESPACE, decode(_body(new), RegisterViewRequest)),
            _N,
            body=new,
        ),
        Example(
            "adopt",
            registrations.AdoptTable(world.NAMESPACE, decode(_body(new), RegisterTableRequest)),
            _N,
            headers=_ADOPT,
            body=new,
        ),
        Example(
            "adopt view",
            registrations.AdoptView(world.NAMESPACE, decode(_body(new), RegisterViewRequest)),
            _N,
            headers=_ADOPT,
            body=new,
        ),
    ]


def _renames() -> list[Example]:
    within = TableIdentifier(world.INNER, "renamed")
    away = TableIdentifier(world.OUTER, "renamed")

    def body(source: str, to: TableIdentifier) -> dict[str, Any]:
        return {
            "source": {"namespace": list(world.INNER.levels), "name": source},
            "destination": {"namespace": list(to.namespace.levels), "name": to.name},
        }

    return [
        Example("rename", renames.RenameTable(world.TABLE, within), _W, body=body("orders", within)),
        Example("move", renames.RenameTable(world.TABLE, away), _W, body=body("orders", away)),
        Example("rename", renames.RenameView(world.VIEW, within), _W, body=body("recent", within)),
        Example("move", renames.RenameView(world.VIEW, away), _W, body=body("recent", away)),
    ]


def _transactions() -> list[Example]:
    orders = {**_COMMIT, "identifier": {"namespace": list(world.INNER.levels), "name": "orders"}}
    returns = {**_CREATION, "identifier": {"namespace": list(world.INNER.levels), "name": "returns"}}
    made = []
    for label, changes in (("transaction", [orders]), ("with creation", [orders, returns])):
        body = {"table-changes": changes}
        request = decode(_body(body), CommitTransactionRequest)
        made.append(Example(label, transactions.CommitTransaction(world.WAREHOUSE_ID, request), _W, body=body))
    return made


def _views() -> list[Example]:
    return [
        Example("list views", views.ListViews(world.NAMESPACE), _N),
        Example(
            "create view",
            views.CreateView(world.NAMESPACE, decode(_body(_NEW_VIEW), CreateViewRequest)),
            _N,
            body=_NEW_VIEW,
        ),
        Example("load", views.LoadView(world.VIEW), _V),
        Example("exists", views.ViewExists(world.VIEW), _V),
        Example("commit", views.CommitView(world.VIEW, decode(_body(_COMMIT), CommitViewRequest)), _V, body=_COMMIT),
        Example("drop", views.DropView(world.VIEW), _V),
    ]


def _namespaces() -> list[Example]:
    top = {"namespace": ["new"]}
    below = {"namespace": ["sales", "eu", "new"]}
    return [
        Example("config", config.GetConfig(world.WAREHOUSE_BY_NAME), query={"warehouse": "lake"}),
        Example(
            "exchange token",
            credentials.ExchangeToken(credentials.Subject(user_id="oidc~bob"), proven=True),
            form={
                "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
                "subject_token": "bob",
                "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
            },
        ),
        Example("list top", namespaces.ListNamespaces(world.WAREHOUSE), _W),
        Example(
            "list namespaces",
            namespaces.ListNamespaces(world.NAMESPACE),
            _W,
            {"parent": "sales\x1feu"},
        ),
        Example(
            "create top",
            namespaces.CreateNamespace(world.WAREHOUSE, decode(_body(top), CreateNamespaceRequest)),
            _W,
            body=top,
        ),
        Example(
            "create below",
            namespaces.CreateNamespace(world.WAREHOUSE, decode(_body(below), CreateNamespaceRequest)),
            _W,
            body=below,
        ),
        Example("load", namespaces.LoadNamespace(world.NAMESPACE), _N),
        Example("exists", namespaces.NamespaceExists(world.NAMESPACE), _N),
        Example(
            "properties",
            namespaces.UpdateNamespaceProperties(
                world.NAMESPACE, decode(_body(_PROPERTIES), UpdateNamespacePropertiesRequest)
            ),
            _N,
            body=_PROPERTIES,
        ),
        Example("drop", namespaces.DropNamespace(world.NAMESPACE), _N),
    ]


def _management() -> list[Example]:
    new = decode(_body(_WAREHOUSE), CreateWarehouseRequest)
    bootstrap = {"accept-terms-of-use": True}
    return [
        Example("health", system.GetHealth()),
        Example("page", docs.ShowApi()),
        Example("script", docs.GetApiAsset(), path={"asset": "start.js"}),
        Example("document", docs.GetApiDocument(), path={"api": "catalog"}),
        Example("console", ui.ShowUi()),
        Example("console module", ui.GetUiAsset(), path={"digest": "0", "file_path": "core/api.js"}),
        Example("info", server.GetServerInfo()),
        Example("bootstrap", server.Bootstrap(decode(_body(bootstrap), BootstrapRequest)), body=bootstrap),
        Example("whoami", users.WhoAmI()),
        Example("own delegates", users.ListOwnDelegates()),
        Example("register", users.RegisterSelf(), body={}),
        Example("provision user", users.ProvisionUser(world.BOB_ID), body={"id": world.BOB_ID}),
        Example("list users", users.ListUsers()),
        Example("user", users.GetUser(world.BOB), {"user_id": world.BOB_ID}),
        Example("search users", users.SearchUser("bob"), body={"search": "bob"}),
        *_users(),
        Example("create project", projects.CreateProject("new"), body={"project-name": "new"}),
        Example("list projects", projects.ListProjects()),
        Example("get", projects.GetProject(world.PROJECT)),
        Example("rename", projects.RenameProject(world.PROJECT, "other"), body={"new-name": "other"}),
        Example("delete", projects.DeleteProject(world.PROJECT)),
        Example("create warehouse", warehouses.CreateWarehouse(world.PROJECT, new), body=_WAREHOUSE),
        Example("validate warehouse", warehouses.ValidateWarehouseCreation(world.PROJECT, new), body=_WAREHOUSE),
        Example("list warehouses", warehouses.ListWarehouses(world.PROJECT)),
        Example("get", warehouses.GetWarehouse(world.WAREHOUSE), {"warehouse_id": str(world.WAREHOUSE_ID)}),
        *_warehouses(),
        *_checks(),
        *_authzen(),
    ]


def _warehouses() -> list[Example]:
    path, on = {"warehouse_id": str(world.WAREHOUSE_ID)}, world.WAREHOUSE
    hard, versions = {"delete-profile": {"type": "hard"}}, {"allowed-format-versions": [2, 3]}
    storage = {"storage-profile": _WAREHOUSE["storage-profile"]}
    profile = decode(_body(storage), UpdateStorageRequest)
    key = {"new-storage-credential": {"type": "s3"}}
    credential = decode(_body(key), UpdateCredentialRequest)
    policy = decode(_body(versions), FormatVersionPolicyRequest)
    return [
        Example("rename", warehouses.RenameWarehouse(on, "other"), path, body={"new-name": "other"}),
        Example("activate", warehouses.ActivateWarehouse(on), path),
        Example("deactivate", warehouses.DeactivateWarehouse(on), path),
        Example("delete", warehouses.DeleteWarehouse(on), path),
        Example("protect", warehouses.SetWarehouseProtection(on, True), path, body={"protected": True}),
        Example(
            "managed by",
            warehouses.SetWarehouseManagedBy(on, "self-managed"),
            path,
            body={"managed-by": "self-managed"},
        ),
        Example("delete profile", warehouses.SetWarehouseDeleteProfile(on, HardDelete()), path, body=hard),
        Example("format versions", warehouses.SetWarehouseFormatVersionPolicy(on, policy), path, body=versions),
        Example(
            "policy loss", warehouses.SetWarehousePolicyLoss(on, "announce"), path, body={"policy-loss": "announce"}
        ),
        Example("storage", warehouses.UpdateWarehouseStorage(on, profile), path, body=storage),
        Example("credential", warehouses.UpdateWarehouseStorageCredential(on, credential), path, body=key),
        Example("validate storage", warehouses.ValidateWarehouseStorageProfile(on, profile), path, body=storage),
        Example("validate credential", warehouses.ValidateWarehouseStorageCredential(on, credential), path, body=key),
        Example("validate access", warehouses.ValidateWarehouseStorageAccess(on), path),
        Example("read the canary's verdict", warehouses.GetScopeReport(on), path),
        Example("run the canary", warehouses.RunScopeCanary(on), path),
        *_engine_probes(),
    ]


def _engine_probes() -> list[Example]:
    path, on = {"warehouse_id": str(world.WAREHOUSE_ID)}, world.WAREHOUSE
    asked, shown = {"engine": "oidc~trino"}, {"output": "rows"}
    id = UUID(int=19)
    created = engine_probes.CreateEngineProbe(on, decode(_body(asked), CreateEngineProbeRequest))
    recorded = engine_probes.RecordEngineProbe(on, id, decode(_body(shown), EngineProbeResultRequest))
    return [
        Example("list probes", engine_probes.ListEngineProbes(on), path),
        Example(
            "run probe",
            engine_probes.RunEngineProbe(on, id),
            {**path, "probe_id": str(id)},
        ),
        Example("open probe", created, path, body=asked),
        Example("finish probe", recorded, {**path, "probe_id": str(id)}, body=shown),
    ]


#: Legacy paths of operations, each with its parameters: (operation of the example, path).
_SIGNER = f"/catalog/v1/signer/{world.WAREHOUSE_ID}/tabular-id/{world.TABLE_ID}/v1/aws/s3/sign"

OLDER_PATHS: Sequence[tuple[str, str]] = (
    ("SignRequest", _SIGNER),
    ("SignWrite", _SIGNER),
    ("GetProject", f"/management/v1/project/{world.PROJECT_ID}"),
    ("GetProject", "/management/v1/default-project"),
    ("RenameProject", f"/management/v1/project/{world.PROJECT_ID}/rename"),
    ("RenameProject", "/management/v1/default-project/rename"),
    ("DeleteProject", f"/management/v1/project/{world.PROJECT_ID}"),
    ("DeleteProject", "/management/v1/default-project"),
)


def _users() -> list[Example]:
    bob, alice = {"user_id": world.BOB_ID}, {"user_id": world.ALICE.id}
    self, body = UserRef(world.ALICE.id), {"name": "Al", "user-type": "human"}
    return [
        Example("update self", users.UpdateSelf(self, "Al", "human"), alice, body=body),
        Example("update user", users.UpdateUser(world.BOB, "Al", "human"), bob, body=body),
        Example("delete self", users.DeleteSelf(self), alice),
        Example("delete user", users.DeleteUser(world.BOB), bob),
        Example("own roles", users.ListOwnRoles(self), alice),
        Example("user roles", users.ListUserRoles(world.BOB), bob),
        Example("all own roles", users.ListAllOwnRoles(self), alice),
        Example("all user roles", users.ListAllUserRoles(world.BOB), bob),
        Example("own actions", actions.GetUserActions(world.BOB), bob),
        Example("actions of other", actions.GetUserActions(self, _BOB), alice, {"principalUser": world.BOB_ID}),
    ]


def _roles() -> list[Example]:
    path = {"role_id": str(world.ROLE_ID)}
    named = {"name": "stewards"}
    source = {"provider-id": "ldap", "source-id": "cn=stewards"}
    members = {"members": [{"type": "user", "id": world.BOB_ID}]}
    bob = (Assignment(Privilege.ASSIGNEE, _BOB),)
    without = {**path, "member_type": "user", "member_id": world.BOB_ID}
    return [
        Example("create role", roles.CreateRole(world.PROJECT, decode(_body(named), CreateRoleRequest)), body=named),
        Example("list roles", roles.ListRoles(world.PROJECT)),
        Example("search roles", roles.SearchRole(world.PROJECT, "stew"), body={"search": "stew"}),
        Example("get", roles.GetRole(world.ROLE), path),
        Example("metadata", roles.GetRoleMetadata(world.ROLE), path),
        Example("update", roles.UpdateRole(world.ROLE, decode(_body(named), UpdateRoleRequest)), path, body=named),
        Example(
            "update source",
            roles.UpdateRoleSourceSystem(world.ROLE, decode(_body(source), RoleSourceRequest)),
            path,
            body=source,
        ),
        Example("delete", roles.DeleteRole(world.ROLE), path),
        Example("members", roles.ListRoleMembers(world.ROLE), path),
        Example("add members", roles.AddRoleMembers(world.ROLE, bob, ()), path, body=members),
        Example("remove member", roles.RemoveRoleMember(world.ROLE, (), bob), without),
        Example("member of", roles.ListRoleMemberOf(world.ROLE), path),
        Example("all members", roles.ListAllRoleMembers(world.ROLE), path),
        Example("member of all", roles.ListAllRoleMemberOf(world.ROLE), path),
    ]


def _data_policies() -> list[Example]:
    path = {"policy_id": str(world.DATA_POLICY_ID)}
    policy = world.DATA_POLICY
    mask = {"kind": "mask", "action": "mask-alphanum", "columns": [{"name": "email"}]}
    written = {"name": "mask e-mail", "definition": mask}
    bound = {"type": "table", "id": str(world.TABLE_ID), "warehouse-id": str(world.WAREHOUSE_ID)}
    add, remove = {"add": [bound]}, {"remove": [{"type": "namespace", "id": str(world.INNER_ID)}]}
    above = {"add": [{"type": "warehouse", "id": str(world.WAREHOUSE_ID)}]}
    named = {"warehouse-id": str(world.WAREHOUSE_ID), "namespace": ["*"], "name": "customers"}
    column = {"table-id": str(world.TABLE_ID), "field-id": world.FIELD_ID}
    table = TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID)
    in_table = {**_IN_WAREHOUSE, "table_id": str(world.TABLE_ID)}

    def bind(label: str, body: Any) -> Example:
        return Example(
            label, data_policies.BindDataPolicy(policy, decode(_body(body), ChangeBindingsRequest)), path, body=body
        )

    create = data_policies.CreateDataPolicy(world.PROJECT, decode(_body(written), CreateDataPolicyRequest))
    update = data_policies.UpdateDataPolicy(policy, decode(_body(written), UpdateDataPolicyRequest))
    return [
        Example("create data policy", create, body=written),
        Example("list data policies", data_policies.ListDataPolicies(world.PROJECT)),
        Example("get", data_policies.GetDataPolicy(policy), path),
        Example("update", update, path, body=written),
        Example("delete", data_policies.DeleteDataPolicy(policy), path),
        Example("versions", data_policies.ListDataPolicyVersions(policy), path),
        Example("bindings", data_policies.ListDataPolicyBindings(policy), path),
        bind("bind table", add),
        bind("unbind namespace", remove),
        bind("bind warehouse", above),
        bind("bind name", {"add-names": [named]}),
        bind("bind tag", {"add": [{"type": "tag", "id": str(world.TAG_ID)}]}),
        Example(
            "dry run",
            data_policies.TryDataPolicyBindings(policy, decode(_body(add), ChangeBindingsRequest)),
            path,
            body=add,
        ),
        Example("affected", data_policies.ListDataPolicyAffected(policy), path),
        Example("alerts", data_policies.ListDataPolicyAlerts(policy), path),
        Example("of table", data_policies.ListTableDataPolicies(table), in_table),
        Example("preview", data_policies.PreviewDataPolicies(table), in_table),
        Example(
            "preview, other",
            data_policies.PreviewDataPolicies(table, _BOB),
            in_table,
            {"principalUser": world.BOB_ID},
        ),
        Example(
            "of table, other",
            data_policies.ListTableDataPolicies(table, _BOB),
            in_table,
            {"principalUser": world.BOB_ID},
        ),
        Example(
            "release", data_policies.ReleaseDataPolicyColumn(policy, world.TABLE_ID, world.FIELD_ID), path, body=column
        ),
    ]


def _mapping_tables() -> list[Example]:
    id, project = UUID("0199d0c4-0000-7000-8000-00000000d001"), world.PROJECT
    path = {"mapping_table_id": str(id)}
    named = {"name": "regions"}
    entries = {"set": [{"principal": {"user": world.BOB_ID}, "values": ["eu"]}], "remove": []}
    create = mapping_tables.CreateMappingTable(project, decode(_body(named), CreateMappingTableRequest))
    change = mapping_tables.ChangeMappingEntries(project, id, decode(_body(entries), ChangeEntriesRequest))
    return [
        Example("create mapping table", create, body=named),
        Example("list mapping tables", mapping_tables.ListMappingTables(project)),
        Example("get mapping table", mapping_tables.GetMappingTable(project, id), path),
        Example("delete mapping table", mapping_tables.DeleteMappingTable(project, id), path),
        Example("entries of mapping table", mapping_tables.ListMappingEntries(project, id), path),
        Example("set entries", change, path, body=entries),
    ]


def _scim() -> list[Example]:
    id = UUID("0199d0c4-0000-7000-8000-00000000c001")
    one = {"scim_id": str(id)}
    user = {"userName": "ann@example.com", "externalId": "a1", "active": True}
    group = {"displayName": "Engineers", "externalId": "g1", "members": []}
    patch = {"Operations": [{"op": "Replace", "path": "active", "value": "False"}]}
    rename = {"Operations": [{"op": "replace", "value": {"displayName": "Builders"}}]}
    ann = user_of(read(_body(user), UserRequest))
    engineers = group_of(read(_body(group), GroupRequest))
    deactivated, renamed = read(_body(patch), PatchRequest), patched_group(read(_body(rename), PatchRequest))
    project = world.PROJECT
    return [
        Example("SCIM config", scim.GetScimConfig()),
        Example("SCIM resource types", scim.ListScimResourceTypes()),
        Example("SCIM resource type", scim.GetScimResourceType(), {"resource_type": "User"}),
        Example("SCIM schemas", scim.ListScimSchemas()),
        Example("SCIM schema", scim.GetScimSchema(), {"schema_urn": CORE_USER}),
        Example("list SCIM users", scim.ListScimUsers()),
        Example("get SCIM user", scim.GetScimUser(id), one),
        Example("create SCIM user", scim.CreateScimUser(ann), body=user),
        Example("replace SCIM user", scim.ReplaceScimUser(id, ann), one, body=user),
        Example("patch SCIM user", scim.PatchScimUser(id, deactivated), one, body=patch),
        Example("delete SCIM user", scim.DeleteScimUser(id), one),
        Example("list SCIM groups", scim.ListScimGroups(project=project)),
        Example("get SCIM group", scim.GetScimGroup(project, id), one),
        Example("create SCIM group", scim.CreateScimGroup(project, engineers), body=group),
        Example("replace SCIM group", scim.ReplaceScimGroup(project, id, engineers), one, body=group),
        Example("patch SCIM group", scim.PatchScimGroup(project, id, renamed), one, body=rename),
        Example("delete SCIM group", scim.DeleteScimGroup(project, id), one),
    ]


def _checks() -> list[Example]:
    about = {"table": {"warehouse-id": str(world.WAREHOUSE_ID), "table-id": str(world.TABLE_ID), "action": "read_data"}}
    on = TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID)
    own, other = Check(on, Can.READ_DATA), Check(on, Can.READ_DATA, _BOB)
    denial = UUID(int=9)
    refused = answers.RefusedRequest(denial, datetime(2026, 3, 4, tzinfo=UTC), "load_table")
    of_other = {"operation": about, "identity": {"user": world.BOB_ID}}
    return [
        Example("check own", checks.CheckPermission(own), body={"operation": about}),
        Example("check other", checks.CheckPermission(other), body=of_other),
        Example("explain own", answers.ExplainAccess(own), body={"operation": about}),
        Example(
            "explain own on the server",
            answers.ExplainAccess(Check(world.SERVER, Can.CREATE_PROJECT)),
            body={"operation": {"server": {"action": "create_project"}}},
        ),
        Example("find a denial", answers.ReadDenial(denial), {"denial_id": str(denial)}),
        Example("explain own denial", answers.ExplainDenial(own, refused), {"denial_id": str(denial)}),
        Example(
            "explain own denial on the server",
            answers.ExplainDenial(Check(world.SERVER, Can.CREATE_PROJECT), refused),
            {"denial_id": str(denial)},
        ),
        Example("explain other", answers.ExplainAccess(other), body=of_other),
        Example("check many", checks.BatchCheck((own, other)), body={"checks": [{"operation": about}, of_other]}),
        Example(
            "check as a delegate",
            checks.BatchCheck((other, Check(world.PROJECT, Can.GET_METADATA, _BOB)), delegated=True),
            body={
                "checks": [
                    of_other,
                    {
                        "operation": {"project": {"project-id": world.PROJECT_ID, "action": "get_metadata"}},
                        "identity": {"user": world.BOB_ID},
                    },
                ],
                "delegated": True,
            },
        ),
        *_answers(),
        *_audit(),
    ]


def _audit() -> list[Example]:
    range = {"since": "2026-03-04T00:00:00Z", "until": "2026-03-05T00:00:00Z"}
    selection = audit.AuditSelection(
        since=datetime(2026, 3, 4, tzinfo=UTC), until=datetime(2026, 3, 5, tzinfo=UTC), operations=("load_table",)
    )
    body = {**range, "operations": ["load_table"]}
    places: list[tuple[Ref, dict[str, str]]] = [
        (world.SERVER, {}),
        (world.PROJECT, {"project-id": world.PROJECT_ID}),
        (world.WAREHOUSE, {"warehouse-id": str(world.WAREHOUSE_ID)}),
    ]
    return [
        *(
            Example(f"search the audit log of a {on.type}", audit.SearchAudit(on, selection), body={**body, **place})
            for on, place in places
        ),
        *(
            Example(f"count the audit log: {on.type}", audit.CountAudit(on, selection, "day"), body={**body, **place})
            for on, place in places
        ),
        Example("integrity of the audit log", audit.GetAuditIntegrity()),
        Example("model of the policies", policies.GetPolicyModel()),
        Example("guardrails", policies.GetGuardrails()),
    ]


def _answers() -> list[Example]:
    about = {"table": {"warehouse-id": str(world.WAREHOUSE_ID), "namespace": ["sales", "eu"], "table": "orders"}}
    body = {"action": "read_data", "object": about}
    return [
        Example("who can", answer_lists.WhoCan(world.TABLE, Can.READ_DATA), body=body),
        Example(
            "who can, in a role",
            answer_lists.WhoCan(world.TABLE, Can.READ_DATA, expand=world.ROLE_ID),
            body={**body, "expand": str(world.ROLE_ID)},
        ),
        Example("what can, own", answer_lists.WhatCan(), body={}),
        Example(
            "what can other",
            answer_lists.WhatCan(principal=_BOB, on=world.TABLE),
            body={"principal": {"user": world.BOB_ID}, "object": about},
        ),
    ]


def _authzen() -> list[Example]:
    on, relation = TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID), Can.READ_DATA
    own, other = AccessQuestion(on, relation), AccessQuestion(on, relation, _BOB)
    bob, table = {"type": "user", "id": world.BOB_ID}, {"type": "table", "id": f"{world.WAREHOUSE_ID}/{world.TABLE_ID}"}
    alice, named = {"type": "user", "id": world.ALICE.id}, {"name": "read_data"}
    of_bob, of_alice = ({"subject": each, "action": named, "resource": table} for each in (bob, alice))
    page, none = authzen.PageRequest(), Asserted()
    names = tuple(sorted(own_type(ObjectType.TABLE).actions.items()))
    searched = {"type": "table"}
    return [
        Example("evaluate own access", authzen.EvaluateAccess((own,)), body=of_alice),
        Example("evaluate other access", authzen.EvaluateAccess((other,)), body=of_bob),
        Example("evaluate many", authzen.EvaluateAccesses((own, other)), body={"evaluations": [of_alice, of_bob]}),
        Example(
            "search subjects",
            authzen.SearchSubjects(page, none, on, relation, "user", PrincipalType.USER),
            body={**of_bob, "subject": {"type": "user"}},
        ),
        Example(
            "search resources",
            authzen.SearchResources(page, none, "table", ObjectType.TABLE, relation, _BOB),
            body={**of_bob, "resource": searched},
        ),
        Example(
            "search actions",
            authzen.SearchActions(page, none, on, names, _BOB),
            body={"subject": bob, "resource": table},
        ),
        Example("AuthZEN addresses", authzen.GetAuthZenConfiguration()),
    ]


#: The objects that rights are held on: the word in operation names, the reference, and the path parameters.
_HELD_ON: Sequence[tuple[str, Ref, Mapping[str, str]]] = (
    ("Server", world.SERVER, {}),
    ("DefaultProject", world.PROJECT, {}),
    ("Project", world.PROJECT, {"project_id": world.PROJECT_ID}),
    ("Warehouse", world.WAREHOUSE, {"warehouse_id": str(world.WAREHOUSE_ID)}),
    ("Namespace", NamespaceIdRef(world.INNER_ID), {"namespace_id": str(world.INNER_ID)}),
    (
        "Table",
        TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID),
        {"warehouse_id": str(world.WAREHOUSE_ID), "table_id": str(world.TABLE_ID)},
    ),
    (
        "View",
        TabularRef(View, world.WAREHOUSE_ID, world.VIEW_ID),
        {"warehouse_id": str(world.WAREHOUSE_ID), "view_id": str(world.VIEW_ID)},
    ),
    (
        "GenericTable",
        TabularRef(GenericTable, world.WAREHOUSE_ID, world.GENERIC_TABLE_ID),
        {"warehouse_id": str(world.WAREHOUSE_ID), "generic_table_id": str(world.GENERIC_TABLE_ID)},
    ),
    ("Role", world.ROLE, {"role_id": str(world.ROLE_ID)}),
    ("DataPolicy", world.DATA_POLICY, {"policy_id": str(world.DATA_POLICY_ID)}),
)

#: Tags carry grants, but there are no questions about the rights on them.
_TAG_HELD: tuple[str, Ref, Mapping[str, str]] = ("Tag", world.TAG, {"tag_id": str(world.TAG_ID)})


def _family(name: str) -> Any:
    """Return the operation of a family (`gateway.access.nouns.families`)."""
    return OPERATIONS[name]


def _rights() -> list[Example]:
    of_bob = {"principalUser": world.BOB_ID}
    made: list[Example] = []
    for name, on, path in (*_HELD_ON, _TAG_HELD):
        for suffix, label in (("Access", "access"), ("AuthorizerActions", "actions")):
            operation = _family(f"Get{name}{suffix}")
            made.append(Example(label, operation(on), path))
            made.append(Example(f"{label} of other", operation(on, _BOB), path, of_bob))
    return made


def _tags() -> list[Example]:
    path = {"tag_id": str(world.TAG_ID)}
    new = {"name": "pii", "scope": ["table", "column"], "value-kind": "marker"}
    changed = {"name": "pii", "scope": ["table", "view", "column"]}
    made = [
        Example("create tag", tags.CreateTag(world.PROJECT, decode(_body(new), CreateTagRequest)), body=new),
        Example("list tags", tags.ListTags(world.PROJECT)),
        Example("get tag", tags.GetTag(world.TAG), path),
        Example("update", tags.UpdateTag(world.TAG, decode(_body(changed), UpdateTagRequest)), path, body=changed),
        Example("delete", tags.DeleteTag(world.TAG), path),
        Example("attachments", tag_attachments.ListTagAttachments(world.TAG), path),
    ]
    named, body = {"tag_name": "pii"}, {"value": None}
    for name, ref, names in _HELD_ON:
        if name not in ("Warehouse", "Namespace", "Table", "View", "GenericTable"):
            continue
        on, at = ref, {**names, **_IN_WAREHOUSE}
        if name == "Namespace":
            on = NamespaceIdRef(world.INNER_ID, world.WAREHOUSE_ID)
        attach = _family(f"Attach{name}Tag")(on, world.TAG_BY_NAME, None)
        made += [
            Example("attach tag", attach, {**at, **named}, body=body),
            Example("detach tag", _family(f"Detach{name}Tag")(on, world.TAG_BY_NAME), {**at, **named}),
            Example("tags", _family(f"List{name}Tags")(on), at),
        ]
    table = TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID)
    whole = {**_IN_WAREHOUSE, "table_id": str(world.TABLE_ID)}
    of = {**whole, "column": "amount"}
    return [
        *made,
        Example(
            "attach to column",
            tag_attachments.AttachColumnTag(table, "amount", world.TAG_BY_NAME, None),
            {**of, **named},
            body=body,
        ),
        Example(
            "detach from column",
            tag_attachments.DetachColumnTag(table, "amount", world.TAG_BY_NAME),
            {**of, **named},
        ),
        Example("tags of column", tag_attachments.ListTagsOfColumn(table, "amount"), of),
        Example("column tags", tag_attachments.ListColumnTags(table), whole),
        Example("tag suggestions", tag_attachments.ListTagSuggestions(table), whole),
    ]


def _search_and_statistics() -> list[Example]:
    requested = {"search": "orders"}
    window = {"type": "window", "end": "2026-03-04T12:00:00Z", "interval": "P1D"}
    hours = ((404,), datetime(2026, 3, 3, 12, tzinfo=UTC), datetime(2026, 3, 4, 12, tzinfo=UTC))

    def counted(**warehouse: str) -> dict[str, Any]:
        return {"warehouse": warehouse, "status-codes": [404], "range-specifier": window}

    return [
        Example("search", search.SearchTabular(world.WAREHOUSE, "orders"), _IN_WAREHOUSE, body=requested),
        Example(
            "search by tag",
            search.SearchTabular(world.WAREHOUSE, "orders", "pii"),
            _IN_WAREHOUSE,
            body={**requested, "tag": "pii"},
        ),
        Example("statistics", statistics.GetWarehouseStatistics(world.WAREHOUSE), _IN_WAREHOUSE),
        Example(
            "calls",
            statistics.GetProjectEndpointStatistics(*hours, world.PROJECT, False),
            body=counted(type="all"),
        ),
        Example(
            "calls",
            statistics.GetWarehouseEndpointStatistics(*hours, world.WAREHOUSE),
            body=counted(type="warehouse-id", id=str(world.WAREHOUSE_ID)),
        ),
    ]


def _live_credentials() -> list[Example]:
    made = [
        Example("own credentials", live_credentials.ListPrincipalLiveCredentials(world.PROJECT)),
        Example(
            "credentials of other",
            live_credentials.ListPrincipalLiveCredentials(world.PROJECT, _BOB),
            query={"principalUser": world.BOB_ID},
        ),
        Example("credentials", live_credentials.ListWarehouseLiveCredentials(on=world.WAREHOUSE), _IN_WAREHOUSE),
    ]
    for name, on, path in _HELD_ON:
        if name in ("Table", "GenericTable"):
            made.append(Example("credentials", _family(f"List{name}LiveCredentials")(on), path))
    return made


def _actions() -> list[Example]:
    """Return the path parameters of `…/actions`: with the warehouse of a namespace, without a project."""
    of_bob = {"principalUser": world.BOB_ID}
    made: list[Example] = []
    for name, on, path in (*_HELD_ON, _TAG_HELD):
        if name == "DefaultProject":
            continue
        if name == "Namespace":
            on, path = NamespaceIdRef(world.INNER_ID, world.WAREHOUSE_ID), {**_IN_WAREHOUSE, **path}
        operation = _family(f"Get{name}Actions")
        made.append(Example("can do", operation(on), path))
        made.append(Example("other can do", operation(on, _BOB), path, of_bob))
    return made


def _grant_lists() -> list[Example]:
    """Return the path parameters of the grants API: with the warehouse of a namespace, without a project."""
    of_bob = {"principalUser": world.BOB_ID}
    made = [
        Example("all privileges", grant_lists.ListAllPrivileges()),
        Example("own grants", grant_lists.ListPrincipalGrants(world.PROJECT)),
        Example(
            "grants of other",
            grant_lists.ListPrincipalGrants(world.PROJECT, _BOB),
            query={"principalUser": world.BOB_ID},
        ),
        Example(
            "grants of role",
            grant_lists.ListPrincipalGrants(world.PROJECT, Principal(PrincipalType.ROLE, str(world.ROLE_ID))),
            query={"principalRole": str(world.ROLE_ID)},
        ),
    ]
    for name, ref, names in (*_HELD_ON, _TAG_HELD):
        if name == "DefaultProject":
            continue
        on, path = ref, dict(names)
        if name == "Namespace":
            on, path["warehouse_id"] = NamespaceIdRef(world.INNER_ID, world.WAREHOUSE_ID), str(world.WAREHOUSE_ID)
        privilege = GRANTABLE[on.type][0]
        body = {"writes": [{"privilege": privilege.value, "principal": {"user": world.BOB_ID}}]}
        change = _family(f"Change{name}Grants")(on, (Assignment(privilege, _BOB),), ())
        made += [
            Example("grants in full", _family(f"List{name}Grants")(on), path),
            Example("grants of one", _family(f"List{name}Grants")(on, principal=_BOB), path, query=of_bob),
            Example(f"grant {privilege}", change, path, body=body),
            Example("grantable", _family(f"List{name}Privileges")(on), path),
            Example("grantable by other", _family(f"List{name}Privileges")(on, _BOB), path, query=of_bob),
            Example("grant history", _family(f"List{name}GrantHistory")(on), path),
        ]
    return made


def _tasks() -> list[Example]:
    id = str(world.TABLE_ID)
    warehouse, project = {"warehouse_id": str(world.WAREHOUSE_ID)}, world.PROJECT
    steer: dict[str, Any] = {"action": {"action-type": "cancel"}, "task-ids": [id]}
    steering = decode(_body(steer), ControlTasksRequest)
    listing, listing_own = ListTasksRequest(), ListProjectTasksRequest()
    on = world.WAREHOUSE
    return [
        Example("list tasks", task_control.ListTasks(on, listing), warehouse, body={}),
        Example("find task", task_control.FindTask(on, world.TABLE_ID), {**warehouse, "task_id": id}),
        *(
            Example(
                f"get {name}",
                task_control.GetTask(on, task_control.FoundTask(world.TABLE_ID, about), by_all),
                {**warehouse, "task_id": id},
            )
            for name, about, by_all in (
                ("task of table", TabularRef(Table, on.warehouse_id, world.TABLE_ID, dropped=True), False),
                ("task of view", TabularRef(View, on.warehouse_id, world.VIEW_ID, dropped=True), False),
                (
                    "task of generic table",
                    TabularRef(GenericTable, on.warehouse_id, world.GENERIC_TABLE_ID, dropped=True),
                    False,
                ),
                ("any task", TabularRef(Table, on.warehouse_id, world.TABLE_ID, dropped=True), True),
                ("task of what is gone", None, False),
            )
        ),
        Example("find tasks", task_control.FindTasks(on, steering), warehouse, body=steer),
        *(
            Example(
                f"steer {name}",
                task_control.ControlTasks(on, steering, (task_control.FoundTask(world.TABLE_ID, about),), by_all),
                warehouse,
                body=steer,
            )
            for name, about, by_all in (
                ("task of table", TabularRef(Table, on.warehouse_id, world.TABLE_ID, dropped=True), False),
                ("task of view", TabularRef(View, on.warehouse_id, world.VIEW_ID, dropped=True), False),
                (
                    "task of generic table",
                    TabularRef(GenericTable, on.warehouse_id, world.GENERIC_TABLE_ID, dropped=True),
                    False,
                ),
                ("any task", TabularRef(Table, on.warehouse_id, world.TABLE_ID, dropped=True), True),
                ("task of what is gone", None, False),
            )
        ),
        Example("list project tasks", task_control.ListProjectTasks(project, listing_own), body={}),
        Example("get project task", task_control.GetProjectTask(project, world.TABLE_ID), {"task_id": id}),
        Example("steer project task", task_control.ControlProjectTasks(project, steering), body=steer),
    ]


def _change_tickets() -> list[Example]:
    on, id = world.WAREHOUSE, world.TABLE_ID
    path = {"warehouse_id": str(world.WAREHOUSE_ID), "ticket_id": str(id)}
    comment = {"comment": "as agreed"}
    deciding = DecideChangeRequest(comment="as agreed")
    table = change_tickets.ticket_object(ObjectType.TABLE, on.warehouse_id, world.TABLE_ID)
    return [
        Example("list tickets", change_tickets.ListChangeTickets(on), {"warehouse_id": path["warehouse_id"]}),
        Example("find ticket", change_tickets.FindChangeTicket(on, id), path),
        Example(
            "ticket", change_tickets.GetChangeTicket(on, change_tickets.FoundTicket(id, world.BOB_ID, table)), path
        ),
        Example("find to approve", change_tickets.FindChangeToApprove(on, id, deciding), path, body=comment),
        Example("find to reject", change_tickets.FindChangeToReject(on, id, deciding), path, body=comment),
        *(
            example
            for type, of in (
                (ObjectType.WAREHOUSE, world.WAREHOUSE_ID),
                (ObjectType.TABLE, world.TABLE_ID),
                (ObjectType.NAMESPACE, world.inner_row.id),
                (ObjectType.VIEW, world.view_row.id),
                (ObjectType.GENERIC_TABLE, world.generic_table_row.id),
            )
            for ticket in (
                change_tickets.FoundTicket(id, world.BOB_ID, change_tickets.ticket_object(type, on.warehouse_id, of)),
            )
            for words in (type.value.replace("_", " "),)
            for example in (
                Example(
                    f"approve {words}",
                    change_tickets.ApproveChange(on, ticket, deciding),
                    path,
                    body=comment,
                ),
                Example(f"reject {words}", change_tickets.RejectChange(on, ticket, deciding), path, body=comment),
            )
        ),
    ]


def _access_requests() -> list[Example]:
    on = TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID)
    path = {"access_request_id": str(world.TABLE_ID)}
    new = {
        "object": {"type": "table", "warehouse-id": str(world.WAREHOUSE_ID), "table-id": str(world.TABLE_ID)},
        "privileges": ["select"],
        "reason": "a report",
    }
    request = decode(_body(new), CreateAccessRequestRequest)
    in_project = {"type": "project", "project-id": world.PROJECT.project_id}
    items = [{"object": new["object"], "privileges": ["select"]}, {"object": in_project, "privileges": ["describe"]}]
    together = {"items": items, "reason": "a report"}
    asking = decode(_body(together), CreateAccessRequestRequest)
    on_project = access_requests.CreateAccessRequest(asking, world.PROJECT, (Privilege.DESCRIBE,))
    approve, deny = {"comment": "as agreed"}, {"reason": "no need"}
    id, denying = world.TABLE_ID, access_examples.DENYING
    finding_to_approve = access_requests.FindAccessRequestToApprove(id, access_examples.APPROVING)
    denial = access_requests.DenyAccessRequest(access_examples.found(), Privilege.SELECT, denying)
    further = ((access_examples.found(world.PROJECT, Privilege.DESCRIBE), Privilege.DESCRIBE),)
    denial_of_several = replace(denial, further=further)
    return [
        Example("find a tag to request by", access_requests.FindRequestableTag(request, on), body=new),
        Example("request", access_requests.CreateAccessRequest(request, on, (Privilege.SELECT,)), body=new),
        Example(
            "request by tag",
            access_requests.CreateAccessRequest(request, on, (Privilege.SELECT,), world.TAG),
            body=new,
        ),
        Example(
            "request several",
            access_requests.CreateAccessRequest(asking, on, (Privilege.SELECT,), further=(on_project,)),
            body=together,
        ),
        Example("find a tag for a dry run", access_requests.FindTagOfDryRun(request, on), body=new),
        Example(
            "try a request by tag",
            access_requests.TryAccessRequest(request, on, (Privilege.SELECT,), world.TAG),
            body=new,
        ),
        Example("try a request", access_requests.TryAccessRequest(request, on, (Privilege.SELECT,)), body=new),
        Example("list access requests", access_requests.ListAccessRequests()),
        Example("access request", access_requests.GetAccessRequest(id), path),
        Example("find to approve", finding_to_approve, path, body=approve),
        Example("find to deny", access_requests.FindAccessRequestToDeny(id, denying), path, body=deny),
        Example("find to end", access_requests.FindAccessRequestToEnd(id), path),
        *(
            Example(f"approve {ref.type.value}", access_examples.approving(ref, privilege), path, body=approve)
            for ref, privilege in (
                (access_examples.found().on, Privilege.SELECT),
                (world.WAREHOUSE, Privilege.SELECT),
                (world.PROJECT, Privilege.DESCRIBE),
                (world.ROLE, Privilege.ASSIGNEE),
            )
        ),
        Example("approve several", access_examples.approving_several(), path, body=approve),
        Example("deny", denial, path, body=deny),
        Example("deny several", denial_of_several, path, body=deny),
        Example("end", access_examples.ending(), path),
        Example("end own", access_examples.ending(own=True), path),
        Example("withdraw", access_requests.WithdrawAccessRequest(id), path),
        Example("remind", access_requests.RemindOfAccessRequest(id), path),
    ]


def _access_reviews() -> list[Example]:
    on = TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID)
    query = {"type": "table", "id": str(world.TABLE_ID), "warehouseId": str(world.WAREHOUSE_ID)}
    named = {"type": "table", "warehouse-id": str(world.WAREHOUSE_ID), "table-id": str(world.TABLE_ID)}
    grant = {"privilege": "select", "principal": {"user": world.BOB_ID}}
    made = [Example("reviews", access_reviews.ListGrantReviews(on), query=query)]
    for decision in ("certify", "revoke"):
        body = {"decision": decision, "reason": "yearly", "object": named, "grants": [grant]}
        request = decode(_body(body), access_reviews.ReviewGrantsRequest)
        made += [
            Example(f"find to {decision}", access_reviews.FindGrantsToReview(request, on), body=body),
            Example(decision, access_examples.reviewing(request), body=body),
        ]
    return made


def _break_glass() -> list[Example]:
    path = {"activation_id": str(world.TABLE_ID)}
    warehouse = world.WAREHOUSE_ID
    places = {
        "warehouse": (world.WAREHOUSE, warehouse),
        "namespace": (NamespaceIdRef(world.INNER_ID, warehouse), world.INNER_ID),
        "table": (TabularRef(Table, warehouse, world.TABLE_ID), world.TABLE_ID),
        "view": (TabularRef(View, warehouse, world.VIEW_ID), world.VIEW_ID),
        "generic-table": (TabularRef(GenericTable, warehouse, world.GENERIC_TABLE_ID), world.GENERIC_TABLE_ID),
    }
    examples = []
    for kind, (on, id) in places.items():
        named = {"type": kind, "warehouse-id": str(warehouse), f"{kind}-id": str(id)}
        body = {"object": named, "privileges": ["select"], "reason": "outage", "minutes": 15}
        request = decode(_body(body), ActivateBreakGlassRequest)
        confirmed = break_glass.ConfirmBreakGlass(break_glass_examples.found(on))
        examples += [
            Example(f"activate on {kind}", break_glass_examples.activating(request, on), body=body),
            Example(f"confirm on {kind}", confirmed, path),
        ]
    id, reviewing, finding = world.TABLE_ID, break_glass_examples.REVIEWING, {"finding": "justified"}
    for reviewed_on in (world.WAREHOUSE, world.PROJECT):
        review = break_glass.ReviewBreakGlass(break_glass_examples.found(reviewed_on), reviewing)
        examples.append(Example(f"review on {reviewed_on.type.value}", review, path, body=finding))
    ending = break_glass.FindActivationToEnd(id)
    return [
        *examples,
        Example("list activations", break_glass.ListBreakGlass()),
        Example("find to confirm", break_glass.FindActivationToConfirm(id), path),
        Example("find to end", ending, path),
        Example("find to review", break_glass.FindActivationToReview(id, reviewing), path, body=finding),
        Example("end", break_glass_examples.activation_operation(ending), path),
        Example("end own", break_glass.EndBreakGlass(break_glass_examples.found(), own=True), path),
    ]


def _task_queues() -> list[Example]:
    queue = "soft_deletion"
    body: dict[str, Any] = {"queue-config": {}}
    path, on, project = {"warehouse_id": str(world.WAREHOUSE_ID), "queue_name": queue}, world.WAREHOUSE, world.PROJECT
    config = decode(_body(body), SetQueueConfigRequest)
    return [
        Example("queue config", task_queues.GetQueueConfig(on, queue), path),
        Example("configure queue", task_queues.SetQueueConfig(on, queue, config), path, body=body),
        Example("schedule task", task_queues.ScheduleTask(on, queue), path, body={}),
        Example("clean-up config", task_queues.GetTaskLogCleanupConfig(project)),
        Example("configure clean-up", task_queues.SetTaskLogCleanupConfig(project, config), body=body),
    ]


def _events() -> list[Example]:
    replay, retry = {"from-sequence": 1, "sink": "bus"}, {"sink": "bus"}
    return [
        Example("event sinks", events.ListEventSinks()),
        Example("dead letters", events.ListEventDeadLetters()),
        Example("replay", events.ReplayEvents(decode(_body(replay), ReplayEventsRequest)), body=replay),
        Example("retry", events.RetryEventDeadLetters(decode(_body(retry), RetryDeadLettersRequest)), body=retry),
    ]


def _policy_bundles() -> list[Example]:
    return [Example("bundle", policy_bundles.GetPolicyBundle("trino"), {"bundle": "trino"})]


def _managed_access() -> list[Example]:
    warehouse, namespace = {"warehouse_id": str(world.WAREHOUSE_ID)}, {"namespace_id": str(world.INNER_ID)}
    on, body = NamespaceIdRef(world.INNER_ID), {"managed-access": True}
    return [
        Example("permissions", _family("GetWarehousePermissions")(world.WAREHOUSE), warehouse),
        Example("permissions", _family("GetNamespacePermissions")(on), namespace),
        Example("manage access", _family("SetWarehouseManagedAccess")(world.WAREHOUSE, True), warehouse, body=body),
        Example("manage access", _family("SetNamespaceManagedAccess")(on, True), namespace, body=body),
    ]


def _namespace_moves() -> list[Example]:
    path = {"warehouse_id": str(world.WAREHOUSE_ID), "namespace_id": str(world.INNER_ID)}
    on = NamespaceIdRef(world.INNER_ID, world.WAREHOUSE_ID)

    def to(*levels: str) -> tuple[HttpOperation, dict[str, Any]]:
        return namespace_moves.MoveNamespace(world.WAREHOUSE, on, Namespace(levels)), {"destination": levels}

    (below, body_below), (top, body_top) = to("sales", "west"), to("west")
    return [
        Example("move below outer", below, path, body=body_below),
        Example("move to the top", top, path, body=body_top),
    ]


def _lifecycle() -> list[Example]:
    within = {"warehouse_id": str(world.WAREHOUSE_ID)}
    kept = (
        ("table", TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID, dropped=True), world.TABLE_ID),
        ("view", TabularRef(View, world.WAREHOUSE_ID, world.VIEW_ID, dropped=True), world.VIEW_ID),
        (
            "generic-table",
            TabularRef(GenericTable, world.WAREHOUSE_ID, world.GENERIC_TABLE_ID, dropped=True),
            world.GENERIC_TABLE_ID,
        ),
    )
    made = [Example("deleted", deletion.ListDeletedTabulars(world.WAREHOUSE), within)]
    for kind, ref, id in kept:
        body = {"targets": [{"type": kind, "id": str(id)}]}
        made.append(Example(f"undrop {kind}", deletion.UndropTabulars(world.WAREHOUSE, (ref,)), within, body=body))
    for name, on, id in (
        ("Namespace", NamespaceIdRef(world.INNER_ID, world.WAREHOUSE_ID), world.INNER_ID),
        ("Table", TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID), world.TABLE_ID),
        ("View", TabularRef(View, world.WAREHOUSE_ID, world.VIEW_ID), world.VIEW_ID),
        (
            "GenericTable",
            TabularRef(GenericTable, world.WAREHOUSE_ID, world.GENERIC_TABLE_ID),
            world.GENERIC_TABLE_ID,
        ),
    ):
        path = {**within, f"{on.type}_id": str(id)}
        protect = _family(f"Set{name}Protection")(on, True)
        made += [
            Example("protection", _family(f"Get{name}Protection")(on), path),
            Example("protect", protect, path, body={"protected": True}),
        ]
    return made


def _grants() -> list[Example]:
    made: list[Example] = []
    for name, on, path in (*_HELD_ON, _TAG_HELD):
        made.append(Example("grants", _family(f"Read{name}Assignments")(on), path))
        write = _family(f"Write{name}Assignments")
        for privilege in GRANTABLE[on.type] if name != "DefaultProject" else (Privilege.SELECT,):
            operation = write(on, (Assignment(privilege, _BOB),), ())
            made.append(Example(f"give {privilege}", operation, path, body=_giving(privilege)))
    return made


def _column_grants() -> list[Example]:
    on, column, select = (
        TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID, dropped=True),
        "amount",
        (Assignment(Privilege.SELECT, _BOB),),
    )
    path = {**_IN_WAREHOUSE, "table_id": str(world.TABLE_ID)}
    of = {**path, "column": column}
    body = {"writes": [{"privilege": "select", "principal": {"user": world.BOB_ID}}]}
    return [
        Example("grants of column", column_grants.ReadColumnAssignments(on, column), of),
        Example(
            "give column",
            column_grants.WriteColumnAssignments(on, select, (), column),
            of,
            body=_giving(Privilege.SELECT),
        ),
        Example("column grants in full", column_grants.ListColumnGrants(on=on, column=column), of),
        Example("grant column", column_grants.ChangeColumnGrants(on, select, (), column), of, body=body),
        Example("column grant history", column_grants.ListColumnGrantHistory(on=on, column=column), of),
        Example("grants of columns", column_grants.ListTableColumnGrants(on=on), path),
    ]


def _giving(privilege: Privilege) -> dict[str, Any]:
    return {"writes": [{"type": privilege.value, "user": world.BOB_ID}]}


EXAMPLES: Sequence[Example] = (
    *_tables(),
    *_views(),
    *_generic_tables(),
    *_renames(),
    *_transactions(),
    *_registrations(),
    *_namespaces(),
    *_management(),
    *_roles(),
    *_data_policies(),
    *_mapping_tables(),
    *_tags(),
    *_scim(),
    *_grants(),
    *_column_grants(),
    *_rights(),
    *_actions(),
    *_search_and_statistics(),
    *_live_credentials(),
    *_grant_lists(),
    *_tasks(),
    *_change_tickets(),
    *_access_requests(),
    *_access_reviews(),
    *_break_glass(),
    *_task_queues(),
    *_events(),
    *_policy_bundles(),
    *_managed_access(),
    *_namespace_moves(),
    *_lifecycle(),
)
