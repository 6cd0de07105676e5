# SPDX-License-Identifier: Apache-2.0
"""The full comparison of rows and tuples: many kinds of differences at once, restored databases, emptied stores.

The tests use the shared stack. Where the differences must last, the drift watch is suspended.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from gateway.fga.compiled import compiled_model
from tests.support.rows.relations import FOREVER, Relations, Tuple, soon
from tests.support.stack.world import World

pytestmark = pytest.mark.servers

DIFFERS = 3


@pytest.fixture(scope="module")
def relations(world: World) -> Iterator[Relations]:
    relations = Relations(world)
    yield relations
    relations.close()


@pytest.fixture
def unwatched(world: World, relations: Relations) -> Iterator[None]:
    """Suspend the drift watch; check that rows and tuples agree before and after the test."""
    soon(lambda: world.sql("select 1 from outbox") == [], seconds=60)
    assert relations.reconcile().returncode == 0
    with relations.unwatched():
        yield
        assert relations.reconcile().returncode == 0


def revisions(world: World) -> dict[str, str]:
    rows = world.sql(
        "select id::text, revision::text from warehouses union all select 'server', revision::text from server"
    )
    return {row["id"]: row["revision"] for row in rows}


@pytest.mark.usefixtures("unwatched")
def test_matching_rows_and_tuples_are_unchanged(world: World, relations: Relations) -> None:
    name = world.namespace()
    table = world.table(name)
    world.grant("select", world.analyst, "table", table.uuid)
    before, were = relations.all(), revisions(world)
    dry = relations.reconcile("--dry-run")
    assert (dry.returncode, dry.stdout) == (0, f"{len(before)} tuples: no difference\n")
    assert revisions(world) == were
    assert relations.reconcile().returncode == 0
    assert relations.all() == before


@pytest.mark.usefixtures("unwatched")
def test_every_kind_of_difference_is_reported_and_repaired(world: World, relations: Relations) -> None:
    name, other = world.namespace(), world.namespace()
    table, dropped = world.table(name), world.table(name)
    on, ns, elsewhere = (
        f"table:{table.uuid}",
        f"namespace:{world.namespace_id(name)}",
        f"namespace:{world.namespace_id(other)}",
    )
    world.grant("select", world.analyst, "table", table.uuid)
    world.grant("modify", world.analyst, "table", table.uuid)
    assert world.admin.delete(dropped.path).status_code == 204
    right = relations.all()

    wrong: list[Tuple] = [
        ("user:oidc~steward", "ownership", on),
        ("user:oidc~steward", "traverse", ns),
        ("user:oidc~never-seen", "select", on),
        ("user:oidc~steward", "select", f"table:{dropped.uuid}"),
        ("user:oidc~steward", "select", f"namespace:{uuid4()}"),
        (elsewhere, "parent", on),
        ("user:*", "managed_access", ns),
        (f"role:{uuid4()}#assignee", "assignee", f"role:{uuid4()}"),
    ]
    missing: list[Tuple] = [
        ("user:oidc~analyst", "traverse", f"warehouse:{world.warehouse}"),
        (ns, "parent", on),
        (f"project:{world.project}", "project", f"warehouse:{world.warehouse}"),
        ("user:oidc~admin", "ownership", ns),
    ]
    dated = ("user:oidc~analyst", "select", on)
    relations.write(*wrong)
    relations.delete(*missing, dated)
    relations.write(dated, until=FOREVER)
    different, were = relations.all(), revisions(world)

    dry = relations.reconcile("--dry-run")
    assert dry.returncode == DIFFERS, dry.stderr
    reported = {tuple(line.split(maxsplit=1)) for line in dry.stdout.splitlines()[:-1]}
    assert reported == {
        *(("unwanted", " ".join(each)) for each in wrong),
        *(("missing", " ".join(each)) for each in missing),
        ("other_condition", " ".join(dated)),
    }
    assert (relations.all(), revisions(world)) == (different, were), "a dry run changes nothing"

    mended = relations.reconcile()
    assert mended.returncode == 0, mended.stderr
    assert relations.all() == right
    now = revisions(world)
    assert all(now[each] != were[each] for each in were)
    again = relations.reconcile("--dry-run")
    assert again.returncode == 0, again.stdout


@pytest.mark.usefixtures("unwatched")
def test_an_emptied_store_is_filled_again_from_the_rows(world: World, relations: Relations) -> None:
    name = world.namespace()
    for _ in range(3):
        world.grant("select", world.analyst, "table", world.table(name).uuid)
    before = relations.all()
    relations.empty()
    assert relations.all() == {}
    assert relations.reconcile().returncode == 0
    assert relations.all() == before


@pytest.mark.usefixtures("unwatched")
def test_reconciliation_after_a_restore_makes_tuples_equal_to_the_rows(world: World, relations: Relations) -> None:
    """The rows of grants are an hour old: grants made since then end, and revocations since then are undone."""
    name = world.namespace()
    table = world.table(name)
    world.grant("select", world.analyst, "table", table.uuid)
    before = relations.all()
    world.sql("create table kept_grants as select * from grants")
    try:
        world.revoke("select", world.analyst, "table", table.uuid)
        world.grant("modify", world.steward, "table", table.uuid)
        assert relations.all() != before
        world.sql("delete from grants")
        world.sql("insert into grants select * from kept_grants")
    finally:
        world.sql("drop table kept_grants")
    were = revisions(world)
    assert relations.reconcile().returncode == 0
    assert relations.all() == before
    assert all(revisions(world)[each] != were[each] for each in were)
    assert world.analyst.get(table.path).status_code == 200
    assert world.steward.get(table.path).status_code == 404


_WAITS = """
    insert into outbox (takes_away, subject_type, subject_id, relation, object_type, object_id, not_before)
    values (false, 'user', 'oidc~steward', 'select', 'table', $1, now() + interval '1 hour')
"""


@pytest.mark.usefixtures("unwatched")
def test_grant_undelivered_at_backup_and_revoked_since_stays_revoked(world: World, relations: Relations) -> None:
    table = world.table(world.namespace())
    held = ("user:oidc~steward", "select", f"table:{table.uuid}")
    world.grant("select", world.steward, "table", table.uuid)
    soon(lambda: world.sql("select 1 from outbox") == [], seconds=60)
    # The restored dump has the row, and its key in the outbox; in OpenFGA the grant is revoked.
    relations.delete(held)
    world.sql(_WAITS, table.uuid)
    try:
        done = relations.reconcile("--restored", "revoke")
        assert (done.returncode, "1 revoked" in done.stdout) == (0, True), done.stdout + done.stderr
        assert world.sql("select 1 from outbox") == []
    finally:
        world.sql("delete from outbox where object_id = $1", table.uuid)
    assert not relations.there(held)
    assert world.sql(f"select 1 from grants where {_STEWARDS}", table.uuid) == []


_STEWARDS = "object_id = $1 and principal_id = 'oidc~steward'"


@pytest.mark.usefixtures("unwatched")
def test_earlier_expiry_applies_after_a_revoking_restore(world: World, relations: Relations) -> None:
    """Three grants: shortened after the backup, shortened to a time in the past, and extended after it."""
    tables = [world.table(world.namespace()) for _ in range(3)]
    held: list[Tuple] = [("user:oidc~steward", "select", f"table:{table.uuid}") for table in tables]
    for table in tables:
        world.grant("select", world.steward, "table", table.uuid)
    soon(lambda: world.sql("select 1 from outbox") == [], seconds=60)
    sooner, past = "2198-01-01T00:00:00Z", (datetime.now(UTC) - timedelta(minutes=1)).isoformat()
    world.sql(f"update grants set expires_at = '2198-01-01T00:00:00Z' where {_STEWARDS}", tables[2].uuid)
    relations.delete(*held)
    for one, until in zip(held, (sooner, past, FOREVER), strict=True):
        relations.write(one, until=until)
    done = relations.reconcile("--restored", "revoke")
    assert done.returncode == 0, done.stdout + done.stderr
    there = relations.all()
    assert [there.get(one, "gone") for one in held] == [sooner, "gone", sooner]
    way = ("user:oidc~steward", "traverse", f"namespace:{world.sql(_NAMESPACE, tables[0].uuid)[0]['id']}")
    assert there[way] == sooner, "the traverse tuple must end with its grant"
    ends = f"select count(*) as n from grants where {_STEWARDS} and expires_at = '2198-01-01T00:00:00Z'"
    assert [world.sql(ends, table.uuid)[0]["n"] for table in tables] == [1, 0, 1]
    reported = world.sql("select ended_by from grant_history where object_id = $1", tables[0].uuid)
    assert [row["ended_by"] for row in reported] == ["external"]


_NAMESPACE = "select namespace_id::text as id from tables where id = $1::text::uuid"
_DUE = """
    insert into tasks (id, queue, warehouse_id, entity_type, entity_id, payload, scheduled_for)
    select gen_random_uuid(), queue, $1::text::uuid, 'table', gen_random_uuid(), '{}', now() + interval '1 hour'
    from unnest(array['soft_deletion', 'tabular_purge', 'expire_staged_table']) queue
    returning id::text
"""


@pytest.mark.usefixtures("unwatched")
def test_deletions_due_after_a_restore_wait_a_day(world: World, relations: Relations) -> None:
    made = [row["id"] for row in world.sql(_DUE, world.warehouse)]
    waits = "select 1 from tasks where id::text = any($1) and scheduled_for > now() + interval '23 hours'"
    try:
        assert relations.reconcile().returncode == 0
        assert world.sql(waits, made) == [], "deletions must be postponed only after a restore"
        done = relations.reconcile("--restored", "give-back")
        assert done.returncode == 0, done.stderr
        assert "deleting tasks are delayed by one day" in done.stdout
        assert len(world.sql(waits, made)) == 3
    finally:
        world.sql("delete from tasks where id::text = any($1)", made)


@pytest.mark.usefixtures("unwatched")
def test_tuples_in_openfga_become_grant_rows_on_request(world: World, relations: Relations) -> None:
    name = world.namespace()
    table = world.table(name)
    on, ns = f"table:{table.uuid}", f"namespace:{world.namespace_id(name)}"
    adopted: list[Tuple] = [("user:oidc~steward", "select", on)]
    dated = ("user:oidc~etl", "modify", on)
    refused: list[Tuple] = [
        ("user:oidc~never-seen", "select", on),
        ("user:oidc~steward", "select", f"table:{uuid4()}"),
        ("user:oidc~steward", "traverse", f"namespace:{world.namespace_id(world.namespace())}"),
        (ns, "parent", f"table:{uuid4()}"),
        ("user:*", "managed_access", ns),
        (f"role:{uuid4()}#assignee", "select", on),
    ]
    relations.write(*adopted, *refused)
    relations.write(dated, until=FOREVER)
    done = relations.reconcile(DRIFT__EXTERNAL_GRANTS="adopt")
    assert done.returncode == 0, done.stderr
    assert "2 adopted" in done.stdout
    rows = world.sql(
        "select * from grants where object_id = $1 and granted_by = 'external' order by principal_id",
        table.uuid,
    )
    assert [(row["principal_id"], row["privilege"]) for row in rows] == [
        ("oidc~etl", "modify"),
        ("oidc~steward", "select"),
    ]
    assert [row["expires_at"] for row in rows] == [datetime.fromisoformat(FOREVER), None]
    left = relations.all()
    assert not set(refused) & set(left)
    assert ("user:oidc~steward", "traverse", ns) in left
    assert left["user:oidc~etl", "traverse", ns] == left[dated]
    assert world.steward.get(table.path).status_code == 200
    assert relations.reconcile("--dry-run").returncode == 0
    world.revoke("select", world.steward, "table", table.uuid)
    assert world.steward.get(table.path).status_code == 404


@pytest.mark.usefixtures("unwatched")
def test_report_only_grants_stay_and_other_differences_are_repaired(world: World, relations: Relations) -> None:
    table = world.table(world.namespace())
    grant, way = (
        ("user:oidc~steward", "select", f"table:{table.uuid}"),
        ("user:oidc~steward", "traverse", f"warehouse:{world.warehouse}"),
    )
    reason = way in relations.all()
    relations.write(grant)
    if not reason:
        relations.write(way)
    done = relations.reconcile(DRIFT__EXTERNAL_GRANTS="report")
    assert done.returncode == DIFFERS, done.stdout + done.stderr
    assert relations.there(grant)
    assert relations.there(way) is reason


@pytest.mark.usefixtures("unwatched")
def test_expired_grants_are_removed_and_are_no_drift(world: World, relations: Relations) -> None:
    table = world.table(world.namespace())
    over = ("user:oidc~steward", "select", f"table:{table.uuid}")
    relations.write(over, until=(datetime.now(UTC) - timedelta(minutes=1)).isoformat())
    dry = relations.reconcile("--dry-run")
    assert (dry.returncode, dry.stdout.split()[0]) == (0, "expired")
    assert relations.reconcile().returncode == 0
    assert not relations.there(over)


@pytest.mark.usefixtures("unwatched")
def test_types_of_another_model_are_reported_and_kept(world: World, relations: Relations) -> None:
    """The migration of a newer version writes such tuples while this version still serves."""
    model = compiled_model()
    extra = {
        "type": "glossary",
        "relations": {"reader": {"this": {}}},
        "metadata": {"relations": {"reader": {"directly_related_user_types": [{"type": "user"}]}}},
    }
    newer = relations.push({**model, "type_definitions": [*model["type_definitions"], extra]})
    strange = ("user:oidc~steward", "reader", "glossary:terms")
    relations.write(strange, model=newer)
    done = relations.reconcile()
    assert (done.returncode, done.stdout.splitlines()[0].split()[0]) == (0, "unknown")
    assert relations.there(strange)
    relations.delete(strange)


@pytest.mark.parametrize(
    "forgotten", ["store_id = 'another'", "last_change = 'a change that is not in the feed any more'"]
)
def test_replaced_or_rewound_store_triggers_a_full_comparison(
    world: World, relations: Relations, forgotten: str
) -> None:
    """The change feed begins after the change: it cannot show a tuple that was lost with the old store."""
    table = world.table(world.namespace())
    world.grant("select", world.analyst, "table", table.uuid)
    lost = ("user:oidc~analyst", "select", f"table:{table.uuid}")
    soon(lambda: world.sql("select 1 from outbox") == [], seconds=60)
    began = world.sql("select clock_timestamp() as now")[0]["now"]
    with relations.unwatched():
        relations.delete(lost)
        # Pretend that the feed was read past the deletion: only a full comparison can find it.
        world.sql(f"update drift_watch set seen_until = now() + interval '1 minute', {forgotten}")
    soon(lambda: relations.there(lost), seconds=60)
    compared = "select 1 from audit_log where operation = 'compare_tuples' and at > $1"
    soon(lambda: bool(world.sql(compared, began)), seconds=60)
    settled = "select 1 from drift_watch where store_id = $1 and seen_until <= now() and not compare_all"
    soon(lambda: bool(world.sql(settled, relations.ready.openfga.store_id)), seconds=60)
