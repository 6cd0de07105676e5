# SPDX-License-Identifier: Apache-2.0
"""`lakegate apply` and `lakegate export` against a running gateway, as commands of a user."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from tests.support.docs_commands import block
from tests.support.stack.apply_desk import CHANGES, Desk, full_content, warehouse_id
from tests.support.stack.views import version
from tests.support.stack.warehouses import profile
from tests.support.stack.world import SCHEMA, World, send_until_decided, unique

pytestmark = pytest.mark.servers


@pytest.fixture
def desk(world: World, tmp_path: Path) -> Desk:
    """Return a file for a project that does not exist yet."""
    return Desk(world, tmp_path / "shop.yaml", full_content(world, world.stranger("reader"), world.stranger("writer")))


def test_apply_creates_everything_once_and_then_changes_nothing(desk: Desk) -> None:
    planned = desk.apply("--plan")
    assert planned.returncode == CHANGES, planned.stdout + planned.stderr
    assert desk.project["id"] not in desk.world.admin.get("/management/v1/project-list").text
    assert "12 to create, 0 to change, 0 to remove" in planned.stdout
    desk.applied()
    again = desk.apply("--yes", "--prune", "--prune-containers", "--plan")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "No changes" in again.stdout
    assert desk.agrees("--prune", "--prune-containers")


def test_edits_of_grants_properties_and_fields_are_shown_and_made(desk: Desk) -> None:
    desk.applied()
    desk.warehouse["grants"][0]["expires-at"] = "2080-01-01T00:00:00Z"
    desk.warehouse["protected"] = False
    desk.namespace["properties"]["zone"] = "us"
    desk.namespace["managed-access"] = False
    desk.project["roles"][0]["description"] = "read and report"
    planned = desk.apply("--plan")
    assert planned.returncode == CHANGES
    assert 'properties.zone: "eu" -> "us"' in planned.stdout
    assert "expires-at: 2089-12-31T23:00:00+00:00 -> 2080-01-01T00:00:00+00:00" in planned.stdout
    assert "protected: true -> false" in planned.stdout
    assert "0 to create, 4 to change, 0 to remove" in planned.stdout
    desk.applied()
    assert desk.agrees()
    namespace = desk.world.admin.get(f"/catalog/v1/{warehouse_id(desk)}/namespaces/sales").json()
    assert namespace["properties"]["zone"] == "us"


def test_a_grant_of_another_grantor_that_lasts_longer_is_revoked(desk: Desk, world: World) -> None:
    """The grant with the earlier expiry alone would leave the other grant in effect."""
    desk.applied()
    other, holder = world.stranger("other"), desk.warehouse["grants"][0]["user"]
    path = f"/management/v1/warehouse/{warehouse_id(desk)}/grants"
    manager = {"privilege": "manage_grants", "principal": {"user": other.id}}
    assert world.admin.post(path, {"writes": [manager]}).status_code == 204
    longer = {"privilege": "create", "principal": {"user": holder}}
    assert send_until_decided(lambda: other.post(path, {"writes": [longer]})).status_code == 204
    assert "expires-at: (none) -> 2089-12-31T23:00:00+00:00" in desk.apply("--plan").stdout
    desk.applied()
    assert desk.agrees()


def test_prune_removes_only_what_the_lists_of_the_file_leave_out(desk: Desk, world: World) -> None:
    desk.applied()
    writer, lead = desk.warehouse["grants"][0]["user"], desk.project["roles"].pop(1)["name"]
    desk.project["roles"][0]["members"] = []
    del desk.project["grants"]
    desk.warehouse["grants"] = []
    desk.namespace["properties"].pop("zone")
    del desk.warehouse["namespaces"][1]
    unpruned = desk.apply("--plan")
    assert unpruned.returncode == 0, unpruned.stdout
    assert "--plan --prune lists them" in unpruned.stdout
    output = desk.applied("--prune")
    assert f"- grant create on warehouse {desk.project['id']}/main to user {writer}" in output
    assert f"- role {desk.project['id']}/{lead}" in output
    assert 'properties.zone: "eu" -> (none)' in output
    # The caller owns what it created.
    assert f"grant ownership on warehouse {desk.project['id']}/main to user {world.admin.id} stays" in output
    assert world.admin.get(f"/catalog/v1/{warehouse_id(desk)}/namespaces/sales%1Fraw").status_code == 200
    assert desk.agrees("--prune")


def test_containers_are_removed_with_their_flag_and_only_without_contents(desk: Desk, world: World) -> None:
    desk.warehouse["namespaces"] += [{"name": "empty"}, {"name": ["empty", "below"]}, {"name": "used"}]
    desk.applied()
    root = f"/catalog/v1/{warehouse_id(desk)}/namespaces"
    made = world.admin.post(f"{root}/used/tables", {"name": "t", "schema": SCHEMA})
    assert made.status_code == 200, made.text
    del desk.warehouse["namespaces"][2:]
    assert desk.agrees("--prune")
    output = desk.applied("--prune", "--prune-containers")
    done = [line.rpartition("/")[2] for line in output.splitlines() if line.startswith("done: - namespace")]
    assert done == ["empty.below", "empty"]
    assert "main/used stays: it contains tables or views" in output
    assert [world.admin.get(f"{root}/{name}").status_code for name in ("empty", "used")] == [404, 200]


def test_columns_tables_and_renames_by_id(desk: Desk, world: World) -> None:
    desk.applied()
    warehouse, reader = warehouse_id(desk), desk.project["roles"][0]["members"][0]["user"]
    made = world.admin.post(f"/catalog/v1/{warehouse}/namespaces/sales/tables", {"name": "orders", "schema": SCHEMA})
    assert made.status_code == 200, made.text
    grants = [{"privilege": "select", "user": reader}]
    desk.namespace["tables"] = [{"name": "orders", "protected": True, "grants": [], "columns": {"word": grants}}]
    desk.warehouse.update(id=warehouse, name="renamed")
    output = desk.applied()
    assert f"+ grant select on column {desk.project['id']}/renamed/sales/orders/word to user {reader}" in output
    assert 'name: "main" -> "renamed"' in output
    assert desk.agrees("--prune")
    desk.namespace["tables"][0]["columns"]["absent"] = grants
    refused = desk.apply("--yes")
    assert refused.returncode == 1
    assert "these objects do not exist, and apply does not create them: column" in refused.stderr


def test_an_exported_project_changes_nothing_when_it_is_applied(desk: Desk, world: World) -> None:
    desk.namespace["grants"][0]["expires-at"] = "2090-01-01T00:00:00Z"
    desk.applied()
    warehouse = warehouse_id(desk)
    for name in ("plain", "granted"):
        body = {"name": name, "schema": SCHEMA}
        assert world.admin.post(f"/catalog/v1/{warehouse}/namespaces/sales/tables", body).status_code == 200
    _make_view_and_files(desk, warehouse)
    desk.namespace["views"] = [{"name": "report", "protected": True}]
    desk.namespace["generic-tables"] = [{"name": "files", "grants": [{"privilege": "select", "role": "leads"}]}]
    desk.namespace["tables"] = [{"name": "granted", "columns": {"id": [{"privilege": "select", "role": "analysts"}]}}]
    desk.applied()
    exported = desk.run("export", "--project", desk.project["id"])
    assert exported.returncode == 0, exported.stderr
    assert world.ready.s3.secret_key not in exported.stdout
    copy = Desk(world, desk.file.with_name("copy.yaml"), yaml.safe_load(exported.stdout))
    planned = copy.apply("--plan", "--prune", "--prune-containers")
    assert planned.returncode == 0, planned.stdout + planned.stderr
    tables = {each["name"]: each for each in copy.namespace["tables"]}
    assert list(tables["granted"]["columns"]) == ["id"]
    assert [each["name"] for each in copy.namespace["views"] if each.get("protected")] == ["report"]
    assert {"privilege": "select", "role": "leads"} in copy.namespace["generic-tables"][0]["grants"]
    assert copy.warehouse["storage"]["bucket"] == world.bucket
    assert copy.warehouse["policy-loss"] == "announce"
    assert copy.warehouse["task-queues"] == {"soft_deletion": {"max-seconds-since-last-heartbeat": 300}}
    second = desk.run("export", "--project", "Shop-that-does-not-exist")
    assert second.returncode == 1 and "you see no project" in second.stderr


def test_an_inactive_warehouse_is_exported_without_its_namespaces(desk: Desk) -> None:
    desk.applied()
    id, namespaces = warehouse_id(desk), desk.warehouse.pop("namespaces")
    desk.warehouse["status"] = "inactive"
    desk.applied()
    exported = desk.run("export", "--project", desk.project["id"])
    assert exported.returncode == 0, exported.stderr
    assert "because it is inactive" in exported.stderr
    copy = Desk(desk.world, desk.file.with_name("copy.yaml"), yaml.safe_load(exported.stdout))
    assert (copy.warehouse["status"], "namespaces" in copy.warehouse) == ("inactive", False)
    assert copy.agrees("--prune", "--prune-containers")
    desk.warehouse.update(status="active", namespaces=namespaces)
    refused = desk.apply("--yes")
    assert refused.returncode == 1
    assert f"lakegate warehouse set {id} --status active" in refused.stderr
    del desk.warehouse["namespaces"]
    desk.applied()
    desk.warehouse["namespaces"] = namespaces
    assert desk.agrees("--prune", "--prune-containers")


def test_a_caller_without_the_right_is_refused_with_the_reason_and_changes_nothing(desk: Desk, world: World) -> None:
    before = world.rows()
    del desk.content["users"]
    refused = desk.apply("--yes", by=world.stranger("newcomer"))
    assert refused.returncode == 1
    assert "was answered with 403" in refused.stderr
    assert "0 of 11 changes were made. The next one failed: + project" in refused.stderr
    assert "run the command as a user who has it" in refused.stderr
    assert {name for name, rows in world.rows().items() if rows != before[name]} <= {"users"}


def test_a_run_after_a_partial_failure_completes_the_changes(desk: Desk) -> None:
    desk.warehouse["namespaces"].append({"name": ["absent", "below"]})
    failed = desk.apply("--yes")
    assert failed.returncode == 1
    assert "changes were made. The next one failed: + namespace" in failed.stderr
    desk.warehouse["namespaces"].append({"name": "absent"})
    output = desk.applied()
    assert "done: + project" not in output
    assert desk.agrees("--prune", "--prune-containers")


def test_a_project_administrator_needs_no_right_on_the_server(desk: Desk, world: World) -> None:
    """Reading and changing a project must not need the server's lists of users or grants."""
    manager = world.stranger("manager")
    desk.project["grants"].append({"privilege": "project_admin", "user": manager.id})
    desk.applied()
    del desk.content["users"]
    desk.namespace["properties"]["zone"] = "us"
    desk.project["roles"].append({"name": "guests", "members": [{"user": manager.id}]})
    desk.warehouse["grants"].append({"privilege": "select", "role": "guests"})
    done = desk.apply("--yes", "--prune", by=manager)
    assert done.returncode == 0, done.stdout + done.stderr
    assert desk.apply("--plan", "--prune", by=manager).returncode == 0
    # The manager is not the creator, so the ownership of the creator is not "a right of the caller".
    assert f"user {world.admin.id} stays: the file names no owner of the object" in done.stdout


def test_a_change_that_is_refused_midway_is_completed_by_a_caller_with_the_right(desk: Desk, world: World) -> None:
    helper = world.stranger("helper")
    desk.project["grants"].append({"privilege": "security_admin", "user": helper.id})
    desk.applied()
    del desk.content["users"]
    desk.namespace["grants"].append({"privilege": "describe", "role": "leads"})
    desk.project["roles"].append({"name": "guests"})
    desk.warehouse["namespaces"].append({"name": "new"})
    refused = desk.apply("--yes", by=helper)
    assert refused.returncode == 1, refused.stdout
    assert "1 of 3 changes were made. The next one failed: + namespace" in refused.stderr
    assert "was answered with 403" in refused.stderr
    output = desk.applied()
    assert "2 changes were made" in output
    assert desk.agrees("--prune")


def test_an_export_leaves_out_what_the_caller_may_not_read_and_says_so(desk: Desk, world: World) -> None:
    """One project without rights must not prevent the export of the others."""
    desk.applied()
    reader = next(each for each in desk.project["roles"][0]["members"] if "user" in each)["user"]
    [person] = [each for each in world._met if each.id == reader]
    exported = desk.run("export", by=person)
    assert exported.returncode == 0, exported.stderr
    assert f"note: the project {desk.project['id']} is left out" in exported.stderr
    assert "note: the grants on server are left out" in exported.stderr
    assert yaml.safe_load(exported.stdout) == {"version": 1, "projects": []}


def test_secrets_are_missing_before_the_first_change_and_rotate_on_demand(desk: Desk, world: World) -> None:
    desk.warehouse["credential"]["secret-access-key"] = {"env": "LAKEGATE_APPLY_ABSENT_KEY"}
    refused = desk.apply("--yes")
    assert refused.returncode == 1
    assert "the environment variable LAKEGATE_APPLY_ABSENT_KEY is not set" in refused.stderr
    assert desk.project["id"] not in world.admin.get("/management/v1/project-list").text
    desk.warehouse["credential"]["secret-access-key"] = {"env": "LAKEGATE_APPLY_WAREHOUSE_KEY"}
    desk.applied()
    assert "1 changes were made" in desk.applied("--rotate-secrets")
    assert desk.agrees()
    credential = desk.warehouse.pop("credential")
    desk.warehouse["storage"]["remote-signing-enabled"] = False
    refused = desk.apply("--yes")
    assert refused.returncode == 1
    assert "a change of `storage` needs `credential` too" in refused.stderr
    desk.warehouse["credential"] = credential
    assert "storage.remote-signing-enabled: true -> false" in desk.applied()
    assert desk.agrees()


def test_without_a_terminal_or_the_flag_nothing_is_changed_and_usage_errors_are_not_changes(desk: Desk) -> None:
    refused = desk.apply()
    assert refused.returncode == 1
    assert "give --yes" in refused.stderr
    assert desk.run("apply", "--plann").returncode == 1


def test_the_documented_example_is_applied_as_it_is(desk: Desk, world: World) -> None:
    """Only the names that are unique on a server, the store and the secrets are replaced."""
    project, user = unique("shop").replace("_", "-"), unique("user")
    text = block("docs/apply.md", "yaml-language-server").text.replace("id: shop", f"id: {project}")
    content = yaml.safe_load(text.replace("oidc~", f"oidc~{user}").replace("name: Shop", f"name: {project}"))
    [warehouse] = content["projects"][0]["warehouses"]
    warehouse["storage"] = profile(world)
    warehouse["credential"]["access-key-id"] = world.ready.s3.access_key
    warehouse["credential"]["secret-access-key"] = {"env": "LAKEGATE_APPLY_WAREHOUSE_KEY"}
    example = Desk(world, desk.file, content)
    example.applied()
    assert example.agrees("--prune", "--prune-containers")
    text = block("docs/apply.md", "own-regions").text.replace("id: shop", f"id: {project}")
    content = yaml.safe_load(text.replace("oidc~", f"oidc~{user}").replace("name: Shop", f"name: {project}"))
    policies = Desk(world, desk.file, content)
    assert "13 changes were made" in policies.applied()
    assert policies.agrees("--prune")


def test_two_runs_at_once_leave_one_of_each_object(desk: Desk, world: World) -> None:
    """The run that loses a race stops with a conflict, and completes when it is repeated."""
    desk.file.write_text(yaml.safe_dump(desk.content, sort_keys=False))
    with ThreadPoolExecutor(2) as both:
        done = list(both.map(lambda _: desk.run("apply", "-f", str(desk.file), "--yes"), range(2)))
    for each in done:
        assert each.returncode == 0 or "Run the command again" in each.stderr, each.stdout + each.stderr
    desk.applied()
    assert desk.agrees("--prune", "--prune-containers")
    assert warehouse_id(desk)


def test_roles_of_another_provider_and_their_members_stay(desk: Desk) -> None:
    desk.project["roles"].append({"name": "directory", "provider-id": "entra", "source-id": "group-1"})
    desk.applied()
    desk.project["roles"].pop()
    output = desk.applied("--prune")
    assert f"role {desk.project['id']}/directory stays: the provider entra manages it" in output


def _make_view_and_files(desk: Desk, warehouse: str) -> None:
    """Create the view `report` and the generic table `files` in the first namespace."""
    schema = {"schema-id": 0, **SCHEMA}
    view = {"name": "report", "schema": schema, "view-version": version("select 1"), "properties": {}}
    made = desk.world.admin.post(f"/catalog/v1/{warehouse}/namespaces/sales/views", view)
    assert made.status_code == 200, made.text
    path = f"/lakekeeper/v1/{warehouse}/namespaces/sales/generic-tables"
    made = desk.world.admin.post(path, {"name": "files", "format": "csv"})
    assert made.status_code == 200, made.text
