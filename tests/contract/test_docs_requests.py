# SPDX-License-Identifier: Apache-2.0
"""The requests and queries of the documentation, sent as they are written: only names and ids are filled in.

`docs/guide.md` has a test of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import uuid
from typing import Any

import httpx
import pytest

from gateway.access.audit.audit_record import AuditRecord, encode_record
from gateway.audit.refused_logins import RefusedLogins
from tests.support.docs_commands import Block, block, blocks
from tests.support.stack.lifecycle import deleted, until
from tests.support.stack.tags import TAG
from tests.support.stack.world import Person, Table, World, error_triple, unique

_STATUS = "\n======== %{http_code}\n"

#: Blocks with `curl` or in the form of a request, by a text that identifies them, and the test that sends each.
_TESTED = {
    ("docs/data-policies.md", "policy-loss"): "test_documented_policy_loss_request_changes_the_warehouse",
    ("docs/data-engineer.md", "deleted-tabulars"): "test_documented_undrop_request_restores_a_table",
    ("docs/answers.md", "access/denials"): "test_documented_denial_and_explanation_are_answered",
    ("docs/answers.md", "access/explain"): "test_documented_denial_and_explanation_are_answered",
    ("docs/authzen.md", "search/subject"): "test_documented_questions_of_an_application_are_answered",
    ("docs/capacity.md", "endpoint-statistics"): "test_documented_statistics_request_returns_counts",
    ("docs/operator.md", "/bootstrap"): "test_documented_bootstrap_is_refused_on_a_bootstrapped_server",
    ("deploy/README.md", "/bootstrap"): "test_documented_bootstrap_is_refused_on_a_bootstrapped_server",
    ("docs/policy-author.md", "columns/{column}/grants"): "test_documented_column_grant_is_accepted",
    ("docs/policy-repository.md", "policy_reader"): "test_documented_grant_of_policy_reader_is_accepted",
    ("docs/tags.md", '"enumerated"'): "test_documented_requests_define_attach_and_grant_a_tag",
    ("docs/tags.md", "/tags/sensitivity"): "test_documented_requests_define_attach_and_grant_a_tag",
    ("docs/tags.md", '"privilege": "apply"'): "test_documented_requests_define_attach_and_grant_a_tag",
    ("docs/token-exchange.md", '"type": "delegate"'): "test_documented_grant_of_delegate_excludes_administrators",
    ("docs/token-exchange.md", "acts-for"): "test_documented_limits_of_delegate_are_in_the_list",
}
#: Requests that no test of this module sends, with the reason.
_NOT_HERE = {
    ("deploy/README.md", "docker compose up"): "needs Docker; /health is in tests/integration/test_embedded_up.py",
    ("deploy/README.md", "client_id=spark-etl"): "needs Keycloak: tests/e2e/test_keycloak.py",
    ("docs/token-exchange.md", "grant_type="): "the form is sent by tests/contract/test_token_exchange.py",
}
_REQUEST = re.compile(r"^(?:GET|POST|PUT|DELETE) /", re.MULTILINE)


def _requests() -> list[Block]:
    return [
        each
        for each in blocks()
        if each.page != "docs/guide.md" and ("curl " in each.script or _REQUEST.match(each.text))
    ]


@pytest.mark.parametrize("found", _requests(), ids=str)
def test_every_documented_request_has_a_test(found: Block) -> None:
    named = [
        error_triple
        for (page, holding), error_triple in (_TESTED | _NOT_HERE).items()
        if page == found.page and holding in found.text
    ]
    assert len(named) == 1, f"{found}: name the test that sends it"
    assert named[0] in globals() or named[0] in _NOT_HERE.values()


def _sent(script: str, **variables: str) -> list[tuple[str, str]]:
    """Run the block with these variables; return (status, body) of each response."""
    # The first line makes curl print the status of each response, which the documentation leaves out.
    shell = f"curl() {{ command curl -sS -w '{_STATUS}' \"$@\"; }}\n{script}"
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **variables}
    ran = subprocess.run(
        ["bash", "-eu", "-c", shell], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return [(status, body) for body, status in re.findall(r"(.*?)\n======== (\d+)\n", ran.stdout, re.DOTALL)]


def _written(found: Block, person: Person, path: str, **names: str) -> httpx.Response:
    """Send a request in the form of its first line and its body, with the path of this test."""
    line, _, body = found.text.partition("\n")
    method, documented = line.split(" ", 1)
    assert re.fullmatch(re.sub(r"\\?\{[^}]*\}|<[^>]*>", "[^/]+", documented), path), (documented, path)
    for name, value in names.items():
        assert name in body
        body = body.replace(name, value)
    return person.send(method, path, json=json.loads(body))


def test_documented_policy_loss_request_changes_the_warehouse(soft: World) -> None:
    script = block("docs/data-policies.md", "policy-loss").script
    gateway = soft.base.removesuffix("/")
    [(status, _)] = _sent(script, TOKEN=soft.admin.token, GATEWAY=gateway, WAREHOUSE_ID=soft.warehouse)
    assert status == "200"
    found = soft.admin.get(f"/management/v1/warehouse/{soft.warehouse}").json()
    assert found["policy-loss"] == "refuse"


def test_documented_undrop_request_restores_a_table(soft: World) -> None:
    table = soft.table(soft.namespace())
    assert soft.admin.delete(table.path).status_code == 204
    [row] = [each for each in deleted(soft.admin, soft).values() if each["name"] == table.name]
    script = block("docs/data-engineer.md", "deleted-tabulars").script
    assert "<id from the list>" in script
    answers = _sent(
        script.replace("<id from the list>", row["id"]),
        TOKEN=soft.admin.token,
        GATEWAY=soft.base,
        WAREHOUSE=soft.warehouse,
    )
    assert [status for status, _ in answers] == ["200", "204"]
    assert row["id"] in {each["id"] for each in json.loads(answers[0][1])["tabulars"]}
    assert soft.admin.head(table.path).status_code == 204


def test_documented_denial_and_explanation_are_answered(world: World) -> None:
    namespace, names = world.namespace(), {"TOKEN": world.analyst.token, "LAKEGATE": world.base}
    table = world.table(namespace, "orders")
    world.grant("describe", world.analyst, "table", table.uuid)
    refused = world.analyst.delete(table.path)
    denial = refused.json()["error"]["message"].rpartition("denial=")[2]
    [(status, body)] = _sent(block("docs/answers.md", "access/denials").script, DENIAL=denial, **names)
    assert (status, json.loads(body)["operation"]) == ("200", "drop_table")
    script = block("docs/answers.md", "access/explain").script.replace('["sales"]', f'["{namespace}"]')
    [(status, body)] = _sent(script, WAREHOUSE=world.warehouse, **names)
    assert (status, json.loads(body)["decision"]) == ("200", "denied")
    world.revoke("describe", world.analyst, "table", table.uuid)


def test_documented_questions_of_an_application_are_answered(world: World) -> None:
    namespace = world.namespace()
    world.grant("select", world.carol, "table", world.table(namespace, "orders").uuid)
    script = block("docs/authzen.md", "search/subject").script.replace("/sales/", f"/{namespace}/")
    names = {"GATEWAY": world.base, "WAREHOUSE": world.warehouse, "PERSON": world.carol.id}
    answers = _sent(script, TOKEN=world.admin.token, **names)
    assert [status for status, _ in answers] == ["200"] * 3
    decision, subjects, actions = (json.loads(body) for _, body in answers)
    assert decision == {"decision": True}
    assert {"type": "user", "id": world.carol.id} in subjects["results"]
    assert {"name": "read_data"} in actions["results"]


def test_documented_statistics_request_returns_counts(world: World) -> None:
    script = block("docs/capacity.md", "endpoint-statistics").script
    [(status, body)] = _sent(script, TOKEN=world.admin.token, GATEWAY=world.base)
    assert status == "200"
    assert {"timestamps", "next-page-token", "previous-page-token"} <= set(json.loads(body))


@pytest.mark.parametrize(
    ("page", "gateway"), [("docs/operator.md", "https://lake.example"), ("deploy/README.md", "http://localhost:8181")]
)
def test_documented_bootstrap_is_refused_on_a_bootstrapped_server(world: World, page: str, gateway: str) -> None:
    found = block(page, "/bootstrap")
    assert gateway in found.script
    # The login needs a browser: tests/e2e/test_keycloak.py.
    script = re.sub(r"^(lakegate|TOKEN=\$\(lakegate) .*\n", "", found.script, flags=re.MULTILINE)
    script = script.replace(gateway, world.base)
    [(status, body)] = _sent(script, TOKEN=world.admin.token)
    assert (status, json.loads(body)["error"]["type"]) == ("400", "CatalogAlreadyBootstrapped")


def test_documented_grant_of_policy_reader_is_accepted(world: World) -> None:
    client, path = world.stranger("opa"), world.grants_path("server", "")
    found = block("docs/policy-repository.md", "policy_reader")
    granted = _written(found, world.admin, path, **{"oidc~<subject of the client>": client.id})
    assert granted.status_code == 204, granted.text
    assert {"type": "policy_reader", "user": client.id} in world.admin.get(path).json()["assignments"]
    world.revoke("policy_reader", client, "server", "")


def test_documented_column_grant_is_accepted(world: World, ns: str) -> None:
    table = world.table(ns)
    reader = world.stranger()
    path = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/columns/id/grants"
    found = block("docs/policy-author.md", "columns/{column}/grants")
    granted = _written(found, world.admin, path, **{"oidc~carol": reader.id})
    assert granted.status_code == 204, granted.text
    [grant] = world.admin.get(path).json()["grants"]
    assert (grant["privilege"], grant["reason"]) == ("select", "monthly report")


def test_documented_requests_define_attach_and_grant_a_tag(world: World, ns: str) -> None:
    name, table = "sensitivity", world.table(ns)
    role = world.admin.post("/management/v1/role", {"name": unique("analysts")}).json()["id"]
    defined = _written(block("docs/tags.md", '"enumerated"'), world.admin, TAG)
    assert defined.status_code == 201, defined.text
    path = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/tags/{name}"
    attached = _written(block("docs/tags.md", "/tags/sensitivity"), world.admin, path)
    assert attached.status_code == 200, attached.text
    assert "restricted" in world.admin.get(path.rpartition("/")[0]).text
    grants = f"{TAG}/{defined.json()['id']}/grants"
    found = block("docs/tags.md", '"privilege": "apply"')
    granted = _written(found, world.admin, grants, **{"0198c9b2-5d7e-7c3a-9d41-0c5f3b1e2a77": role})
    assert granted.status_code == 204, granted.text
    held = [(each["privilege"], each["principal"]) for each in world.admin.get(grants).json()["grants"]]
    assert ("apply", {"role": role}) in held


def test_documented_grant_of_delegate_excludes_administrators(world: World) -> None:
    program = world.stranger("program")
    path = world.grants_path("warehouse", world.warehouse)
    found = block("docs/token-exchange.md", '"type": "delegate"')
    granted = _written(found, world.admin, path, **{"oidc~trino": program.id})
    assert granted.status_code == 204, granted.text
    listed = {"type": "delegate", "user": program.id, "acts-for": {"administrators": False}}
    assert listed in world.admin.get(path).json()["assignments"]
    world.revoke("delegate", program, "warehouse", world.warehouse)


def test_documented_limits_of_delegate_are_in_the_list(world: World) -> None:
    program, role = world.stranger("program"), str(uuid.uuid4())
    path = f"/management/v1/warehouse/{world.warehouse}/grants"
    found = block("docs/token-exchange.md", "acts-for")
    names = {"oidc~trino": program.id, "0198f3c1-0000-7000-8000-000000000001": role}
    granted = _written(found, world.admin, path, **names)
    assert granted.status_code == 204, granted.text
    grants = world.admin.get(path).json()["grants"]
    [limits] = [each["acts-for"] for each in grants if each["principal"] == {"user": program.id}]
    assert limits == {"roles": [role], "administrators": False, "networks": ["10.20.0.0/16"]}
    world.revoke("delegate", program, "warehouse", world.warehouse)


@pytest.mark.parametrize(
    "found", [each for each in blocks() if (each.page, each.language) == ("docs/auditor.md", "sql")], ids=str
)
def test_documented_audit_query_finds_its_rows(world: World, ns: str, found: Block) -> None:
    table = world.table(ns)
    reader = world.stranger()
    world.grant("describe", reader, "table", table.uuid)
    assert error_triple(reader.delete(table.path))[:2] == (403, "TableActionForbidden")
    assert world.admin.get(table.path).status_code == 200
    statement, arguments = found.text.rstrip(";\n").replace("oidc~alice", world.admin.id), []
    if ":id" in statement:
        [row] = world.sql(
            "select id, now() + interval '1 minute' as soon from tables where table_uuid::text = $1", table.uuid
        )
        arguments = [str(row["id"]), row["soon"]] if ":moment" in statement else [str(row["id"])]
        statement = statement.replace(":id", "$1").replace(":moment", "$2")
    if "unauthenticated" in statement:
        _record_refused_login(world)
    # Audit records of reads and refusals are written up to 200 ms after the response.
    until(
        lambda: _finds(world.sql(statement, *arguments), found, table, reader),
        "the query did not find the audit record",
        15,
    )


def test_documented_query_of_former_rights_finds_containers_and_members_of_roles(world: World, ns: str) -> None:
    table, member = world.table(ns), world.stranger()
    role = world.admin.post("/management/v1/role", {"name": unique("auditors")}).json()["id"]
    space = world.grants_path("namespace", world.namespace_id(ns))
    inside = {"writes": [{"type": "assignee", "user": member.id}]}
    assert world.admin.post(f"/management/v1/permissions/role/{role}/assignments", inside).status_code == 204
    assert world.admin.post(space, {"writes": [{"type": "select", "role": role}]}).status_code == 204
    [found] = [each for each in blocks() if each.page == "docs/auditor.md" and ":moment" in each.text]
    statement = found.text.rstrip(";\n").replace(":id", "$1").replace(":moment", "$2")
    [row] = world.sql("select id, clock_timestamp() as held from tables where table_uuid::text = $1", table.uuid)
    assert world.admin.post(space, {"deletes": [{"type": "select", "role": role}]}).status_code == 204
    [now] = world.sql("select clock_timestamp() as moment")
    held, after = (world.sql(statement, str(row["id"]), moment) for moment in (row["held"], now["moment"]))
    assert [(each["privilege"], each["through_role"]) for each in held if each["principal_id"] == member.id] == [
        ("select", role)
    ]
    assert member.id not in {each["principal_id"] for each in after}


def _record_refused_login(world: World) -> None:
    """Write the record of a refused login, which a stack with the default settings does not write."""
    records: list[AuditRecord] = []
    logins = RefusedLogins(records.append, window=60)
    logins.add(address="192.0.2.7", reason="signature", request_id="docs")
    logins.flush()
    [made] = records
    world.sql(
        "insert into audit_log values ($1, $2, $3, $4, $5, $6, $7)",
        made.id,
        made.at,
        made.request_id,
        made.actor.id,
        made.operation,
        made.outcome,
        encode_record(made),
    )


def _finds(rows: list[Any], found: Block, table: Table, reader: Person) -> bool:
    """Return True if the rows of a documented query include the test's actions."""
    if "principal_id" in found.text:
        return (reader.id, "describe") in {(each["principal_id"], each["privilege"]) for each in rows}
    if "facts" in found.text:
        return any(reader.id in str(each["given"]) for each in rows)
    if "trace_id" in found.text:
        return (reader.id, "drop_table") in {(each["actor_id"], each["operation"]) for each in rows}
    if "failure" in found.text:
        return (reader.id, "ActionForbidden") in {(each["actor_id"], each["failure"]) for each in rows}
    if "reason" in found.text:
        return ("192.0.2.7", "signature", 1) in {(each["address"], each["reason"], each["requests"]) for each in rows}
    if "position(" in found.text:
        return (reader.id, "forbidden") in {(each["actor_id"], each["outcome"]) for each in rows}
    prefixes = [str(each["prefix"]) for each in rows]
    return any(table.location.startswith(each) or each.startswith(table.location) for each in prefixes)
