# SPDX-License-Identifier: Apache-2.0
"""Approval of changes on a running gateway: PyIceberg's statements wait, are approved or rejected, and go through."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from pyiceberg.exceptions import CommitFailedException, ForbiddenError, RESTError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from gateway.cli.exit_codes import ExitCode
from tests.support.load.kills import Killable
from tests.support.stack.approval_site import Site, verified_site
from tests.support.stack.world import Person, unique

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

SCHEMA = Schema(NestedField(1, "id", LongType(), required=False))


@pytest.fixture(scope="module")
def site(stopped_gateway: Killable, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with verified_site(stopped_gateway, tmp_path_factory.mktemp("approval")) as site:
        yield site


@pytest.fixture
def ns(site: Site) -> str:
    """Return a new namespace in which bob may create and modify."""
    return site.world.namespace()


def test_schema_change_of_pyiceberg_waits_and_goes_through_when_run_again(site: Site, ns: str) -> None:
    bob, admin = site.world.bob, site.world.admin
    catalog = site.pyiceberg(bob)
    table = catalog.create_table(f"{ns}.orders", SCHEMA)

    def add_column() -> None:
        with catalog.load_table(f"{ns}.orders").update_schema() as update:
            update.add_column("label", StringType())

    with site.answering("commit:table", "pending", "new columns need a steward"):
        for _ in range(2):
            with pytest.raises(CommitFailedException, match="steward: new columns need a steward"):
                add_column()
        ticket = site.only(f"{ns}.orders")
        assert (ticket["kind"], ticket["object-type"], ticket["principal"]) == ("commit", "table", bob.id)
        assert ticket["reasons"] == ["steward: new columns need a steward"]
        assert any(update["action"] == "add-schema" for update in ticket["change"]["updates"])
        site.approve(ticket, by=admin)
        site.approve(ticket, by=admin, expect=409)
        add_column()
        assert catalog.load_table(f"{ns}.orders").schema().column_names == ["id", "label"]
        assert site.only(f"{ns}.orders", status="used")["id"] == ticket["id"]
        assert catalog.load_table(f"{ns}.orders").metadata_location != table.metadata_location


def test_rejection_shows_its_reasons_and_is_not_retried(site: Site, ns: str) -> None:
    catalog = site.pyiceberg(site.world.bob)
    catalog.create_table(f"{ns}.orders", SCHEMA)
    with (
        site.answering("commit:table", "rejected", "column id is protected"),
        pytest.raises(ForbiddenError, match=r"ChangeRejected.*steward: column id is protected"),
    ):
        catalog.load_table(f"{ns}.orders").transaction().set_properties({"a": "b"}).commit_transaction()
    assert "a" not in catalog.load_table(f"{ns}.orders").properties


def test_silent_verifier_answers_429_and_changes_nothing(site: Site, ns: str) -> None:
    bob = site.world.bob
    table = site.world.table(ns, by=bob)
    with site.answering("commit:table", "broken"):
        answer = site.world.commit(bob, table.path, {"action": "set-properties", "updates": {"a": "b"}})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "5")
    assert "a" not in bob.get(table.path).json()["metadata"]["properties"]


def test_drop_waits_also_after_a_rename_of_the_table(site: Site, ns: str) -> None:
    bob = site.world.bob
    catalog = site.pyiceberg(bob)
    catalog.create_table(f"{ns}.orders", SCHEMA)
    with site.answering("drop:table", "pending", "keep it for the audit"):
        with pytest.raises(RESTError, match="keep it for the audit"):
            catalog.drop_table(f"{ns}.orders")
        ticket = site.only(f"{ns}.orders")
        catalog.rename_table(f"{ns}.orders", f"{ns}.former")
        # The approver decides about the table by its id, and the approval was for the drop of the old name.
        site.approve(ticket)
        with pytest.raises(RESTError, match="keep it for the audit"):
            catalog.drop_table(f"{ns}.former")
        site.approve(site.only(f"{ns}.former"))
        catalog.drop_table(f"{ns}.former")
    assert not catalog.table_exists(f"{ns}.former")


def test_rename_waits_for_its_own_destination(site: Site, ns: str) -> None:
    catalog = site.pyiceberg(site.world.bob)
    catalog.create_table(f"{ns}.orders", SCHEMA)
    with site.answering("rename:table", "pending", "names are published"):
        with pytest.raises(ForbiddenError, match="names are published"):
            catalog.rename_table(f"{ns}.orders", f"{ns}.sales")
        site.approve(site.only(f"{ns}.orders"))
        with pytest.raises(ForbiddenError, match="names are published"):
            catalog.rename_table(f"{ns}.orders", f"{ns}.other")
        catalog.rename_table(f"{ns}.orders", f"{ns}.sales")
    assert catalog.table_exists(f"{ns}.sales")


def test_move_into_another_namespace_waits_for_the_approvers_of_both(site: Site, ns: str) -> None:
    world, to, name = site.world, site.world.namespace(), "orders"
    site.pyiceberg(world.bob).create_table(f"{ns}.{name}", SCHEMA)
    world.grant("create", world.bob, "namespace", world.namespace_id(to))
    holders = {}
    for of in (ns, to):
        holders[of] = world.stranger("approver")
        world.grant("approve_changes", holders[of], "namespace", world.namespace_id(of))

    def move() -> tuple[int, str]:
        places = {"source": {"namespace": [ns], "name": name}, "destination": {"namespace": [to], "name": name}}
        answer = world.bob.post(f"{world.root}/tables/rename", places)
        return answer.status_code, "" if answer.status_code == 204 else answer.json()["error"]["type"]

    with site.answering("rename:table", "pending", "moves are published"):
        assert move() == (403, "ChangePending")
        tickets = {each["object-type"]: each for each in site.tickets(world.admin) if each["name"] == f"{ns}.{name}"}
        assert set(tickets) == {"table", "namespace"}
        assert tickets["namespace"]["object-id"] == world.namespace_id(to)
        site.approve(tickets["namespace"], by=holders[ns], expect=404)
        site.approve(tickets["table"], by=holders[ns])
        assert move() == (403, "ChangePending"), "the approvers of the source decide about the source only"
        site.approve(tickets["namespace"], by=holders[to])
        assert move() == (204, "")


@pytest.mark.parametrize("staged", [False, True])
def test_approved_creation_is_no_approval_of_another_location(site: Site, ns: str, staged: bool) -> None:
    catalog = site.pyiceberg(site.world.bob)
    name = f"{ns}.{unique('orders')}"
    chosen = f"s3://{site.world.bucket}/demo/{unique('chosen')}"

    def create(location: str | None = None) -> None:
        if staged:
            catalog.create_table_transaction(name, SCHEMA, location=location).commit_transaction()
        else:
            catalog.create_table(name, SCHEMA, location=location)

    with site.answering("create:table", "pending", "new tables need an owner"):
        with pytest.raises(ForbiddenError, match="new tables need an owner"):
            create()
        site.approve(site.only(name))
        with pytest.raises(ForbiddenError, match="new tables need an owner"):
            create(chosen)
        create()
    assert not catalog.load_table(name).location().startswith(chosen)


def test_creation_waits_and_if_not_exists_does_not_hide_it(site: Site, ns: str) -> None:
    catalog = site.pyiceberg(site.world.bob)
    with site.answering("create:table", "pending", "new tables need an owner"):
        with pytest.raises(ForbiddenError, match="new tables need an owner"):
            catalog.create_table_if_not_exists(f"{ns}.orders", SCHEMA)
        ticket = site.only(f"{ns}.orders")
        assert ticket["object-type"] == "namespace"
        site.approve(ticket)
        other = Schema(NestedField(1, "secret", LongType(), required=False))
        with pytest.raises(ForbiddenError, match="new tables need an owner"):
            catalog.create_table(f"{ns}.orders", other)
        catalog.create_table_if_not_exists(f"{ns}.orders", SCHEMA)
    assert catalog.load_table(f"{ns}.orders").schema().column_names == ["id"]


def test_table_of_a_create_transaction_waits_at_its_commit(site: Site, ns: str) -> None:
    catalog = site.pyiceberg(site.world.bob)
    with site.answering("create:table", "pending", "new tables need an owner"):
        with pytest.raises(ForbiddenError, match="new tables need an owner"):
            catalog.create_table_transaction(f"{ns}.orders", SCHEMA).commit_transaction()
        site.approve(site.only(f"{ns}.orders"))
        catalog.create_table_transaction(f"{ns}.orders", SCHEMA).commit_transaction()
    assert catalog.table_exists(f"{ns}.orders")


def test_namespace_properties_wait_and_other_changes_do_not(site: Site, ns: str) -> None:
    admin = site.world.admin
    path = f"{site.world.root}/namespaces/{ns}/properties"
    with site.answering("namespace_properties:namespace", "pending", "owners are agreed on"):
        body = {"updates": {"owner": "x"}}
        refused = admin.post(path, body)
        assert (refused.status_code, refused.json()["error"]["type"]) == (409, "ChangePending")
        ticket = site.only(ns)
        # The requester has every right and still cannot approve its own change.
        text = site.approve(ticket, expect=403)
        assert "You requested the change" in text
        carol = _approver(site)
        site.approve(ticket, by=carol)
        assert admin.post(path, body).status_code == 200
        assert site.world.table(ns, by=site.world.bob).name


def test_move_of_a_namespace_waits_and_is_503_without_a_verdict(site: Site, ns: str) -> None:
    admin = site.world.admin
    id, to = site.world.namespace_id(ns), unique("moved")
    path = f"/management/v1/warehouse/{site.world.warehouse}/namespace/{id}/move"
    with site.answering("rename:namespace", "broken"):
        assert admin.post(path, {"destination": [to]}).status_code == 503
    with site.answering("rename:namespace", "pending", "names are published"):
        refused = admin.post(path, {"destination": [to]})
        assert (refused.status_code, refused.json()["error"]["type"]) == (403, "ChangePending")
        site.approve(site.only(ns), by=_approver(site))
        assert admin.post(path, {"destination": [to]}).status_code == 200


def _approver(site: Site) -> Person:
    """Return a new user that may approve changes in the warehouse."""
    carol = site.world.stranger("carol")
    site.world.grant("approve_changes", carol, "warehouse", site.world.warehouse)
    return carol


def test_recursive_drop_does_not_pass_by_the_verifiers_of_its_tables(site: Site, ns: str) -> None:
    admin = site.world.admin
    site.world.table(ns, by=site.world.bob)
    with site.answering("drop:table", "rejected", "tables stay"):
        answer = admin.delete(f"{site.world.root}/namespaces/{ns}?recursive=true&force=true")
    assert (answer.status_code, answer.json()["error"]["type"]) == (403, "ChangeRejected")


def test_recursive_drop_does_not_pass_by_the_verifiers_of_the_namespaces_inside(site: Site, ns: str) -> None:
    admin = site.world.admin
    assert admin.post(f"{site.world.root}/namespaces", {"namespace": [ns, "inner"]}).status_code == 200
    with site.answering("drop:namespace", "approved"):
        answer = admin.delete(f"{site.world.root}/namespaces/{ns}?recursive=true&force=true")
    assert (answer.status_code, answer.json()["error"]["type"]) == (403, "ChangeRejected")
    assert admin.get(f"{site.world.root}/namespaces/{ns}%1Finner").status_code == 200


def test_approved_drop_that_keeps_the_files_is_no_approval_of_their_deletion(site: Site, ns: str) -> None:
    bob = site.world.bob
    table = site.world.table(ns, by=bob)
    with site.answering("drop:table", "pending", "keep it for the audit"):
        assert bob.delete(f"{table.path}?purgeRequested=false").status_code == 409
        ticket = site.only(f"{ns}.{table.name}")
        assert ticket["change"]["updates"] == [{"action": "drop", "purge": False, "force": False}]
        site.approve(ticket)
        assert bob.delete(f"{table.path}?purgeRequested=true").status_code == 409
        assert bob.delete(f"{table.path}?purgeRequested=false&force=true").status_code == 409
        assert bob.delete(f"{table.path}?purgeRequested=false").status_code == 204


def test_only_requesters_and_approvers_see_a_ticket(site: Site, ns: str) -> None:
    bob, alice = site.world.bob, site.world.alice
    table = site.world.table(ns, by=bob)
    with site.answering("commit:table", "pending", "wait"):
        update = {"action": "set-properties", "updates": {"a": "b"}}
        assert site.world.commit(bob, table.path, update).status_code == 409
    ticket = site.only(f"{ns}.{table.name}")
    one = f"{site.path}/{ticket['id']}"
    assert bob.get(one).json()["id"] == ticket["id"]
    assert [each["id"] for each in site.tickets(bob) if each["id"] == ticket["id"]]
    assert ticket["id"] not in {each["id"] for each in site.tickets(alice)}
    assert alice.get(one).json()["error"]["type"] == "TicketNotFound"
    # Alice sees the table and may not decide; a stranger does not learn that the ticket exists.
    assert alice.post(f"{one}/approve", {}).status_code == 403
    assert site.world.stranger().post(f"{one}/reject", {}).status_code == 404
    assert site.only(f"{ns}.{table.name}")["status"] == "pending"


def test_command_lists_approves_and_rejects(site: Site, ns: str) -> None:
    bob, admin = site.world.bob, site.world.admin
    table = site.world.table(ns, by=bob)
    with site.answering("commit:table", "pending", "wait"):
        for value in ("b", "c"):
            update = {"action": "set-properties", "updates": {"a": value}}
            assert site.world.commit(bob, table.path, update).status_code == 409
        listed = site.command(admin, "list").output.splitlines()
        lines = [line.split("\t") for line in listed if f"{ns}.{table.name}" in line]
        assert [line[1:6] for line in lines] == [["pending", "commit", "table", f"{ns}.{table.name}", bob.id]] * 2
        (first, *_), (second, *_) = lines
        shown = site.command(admin, "show", first)
        assert f"change:    commit of the table {ns}.{table.name}\n" in shown.output
        assert "  steward:\n    - wait\n" in shown.output
        assert '  - set-properties: {"updates": {"a": "b"}}\n' in shown.output
        assert json.loads(site.command(bob, "show", first, "--json").output)["change"]["updates"][0]["updates"] == {
            "a": "b"
        }
        assert site.command(site.world.alice, "show", first).exit_code == ExitCode.NOT_FOUND
        own = site.command(bob, "approve", first)
        assert own.exit_code == ExitCode.REFUSED
        assert site.command(admin, "approve", first).output == (
            "Approved. The requester can run the statement again.\n"
        )
        assert site.command(admin, "reject", second, "--comment", "not c").exit_code == 0
        again = site.command(admin, "reject", second)
        assert (again.exit_code, "TicketNotPending" in again.output) == (1, True)
        b, c = ({"action": "set-properties", "updates": {"a": value}} for value in ("b", "c"))
        refused = site.world.commit(bob, table.path, c)
        assert refused.status_code == 403
        assert "not c" in refused.json()["error"]["message"]
        assert site.world.commit(bob, table.path, b).status_code == 200


def test_approval_and_refusals_are_in_the_audit(site: Site, ns: str) -> None:
    bob = site.world.bob
    table = site.world.table(ns, by=bob)
    update = {"action": "set-properties", "updates": {unique("a"): "b"}}
    with site.answering("commit:table", "pending", "wait"):
        assert site.world.commit(bob, table.path, update).status_code == 409
        ticket = site.only(f"{ns}.{table.name}")
        site.approve(ticket)
        assert site.world.commit(bob, table.path, update).status_code == 200
    deadline = time.monotonic() + 30
    # The record of a refusal is written from a buffer.
    while len(results := _results(site, ticket["id"])) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sorted(results) == ["committed", "failed"]


def _results(site: Site, ticket: str) -> list[str]:
    rows = site.world.sql(
        "select coalesce(detail->>'result', 'committed') as result from "
        "(select convert_from(record, 'UTF8')::jsonb->'detail' as detail from audit_log) records "
        "where detail->>'change_tickets' = $1",
        ticket,
    )
    return [row["result"] for row in rows]
