# SPDX-License-Identifier: Apache-2.0
"""Updates of identity, version, location, schemas, specs and sort orders."""

from typing import Any

import pytest

from gateway.iceberg.errors import (
    AssignUuidNotAllowed,
    BadRequestException,
    CatalogError,
    FormatVersionNotAllowed,
    InvalidTableUpdate,
    SetLocationNotAllowed,
)
from gateway.iceberg.metadata import encode_table_metadata

SORT = {"transform": "identity", "direction": "asc", "null-order": "nulls-last"}


def add_spec(*fields: Any, **more: Any) -> dict[str, Any]:
    return {"action": "add-spec", "spec": {"fields": list(fields), **more}}


def part(source: int, transform: str, name: str, **more: Any) -> dict[str, Any]:
    return {"source-id": source, "transform": transform, "name": name, **more}


def add_order(*sources: int) -> dict[str, Any]:
    return {
        "action": "add-sort-order",
        "sort-order": {"order-id": 77, "fields": [{"source-id": s, **SORT} for s in sources]},
    }


def add_schema(members: Any, **more: Any) -> dict[str, Any]:
    return {"action": "add-schema", "schema": members, **more}


CURRENT = {"action": "set-current-schema", "schema-id": -1}
DEFAULT_SPEC = {"action": "set-default-spec", "spec-id": -1}
DEFAULT_ORDER = {"action": "set-default-sort-order", "sort-order-id": -1}


# ---- identity, version, location ---------------------------------------------------------------------------------


def test_the_uuid_of_a_table_cannot_be_replaced(table: Any, commit: Any, w: Any) -> None:
    with pytest.raises(AssignUuidNotAllowed):
        commit(table(), {"action": "assign-uuid", "uuid": "00000000-0000-0000-0000-000000000009"})
    same = {"action": "assign-uuid", "uuid": str(w.table_uuid).upper()}
    assert not commit(table(), same).changed


def test_an_invalid_uuid_is_refused(commit: Any) -> None:
    with pytest.raises(BadRequestException, match="is not a UUID at"):
        commit(None, {"action": "assign-uuid", "uuid": "me"}, requirements=[{"type": "assert-create"}])


def test_a_table_cannot_be_moved(table: Any, commit: Any, w: Any) -> None:
    for location in ("s3://lake/sales/orders", w.location + "x", w.location + "/data", w.location.upper()):
        with pytest.raises(SetLocationNotAllowed):
            commit(table(), {"action": "set-location", "location": location})
    for location in (w.location, w.location + "/"):
        assert not commit(table(), {"action": "set-location", "location": location}).changed


def test_the_format_version_cannot_be_lowered(table: Any, commit: Any) -> None:
    def to(version: int) -> dict[str, Any]:
        return {"action": "upgrade-format-version", "format-version": version}

    assert commit(table(1), to(2)).metadata.format_version == 2
    assert not commit(table(2), to(2)).changed
    with pytest.raises(InvalidTableUpdate, match="Cannot downgrade v2 table to v1"):
        commit(table(2), to(1))
    with pytest.raises(InvalidTableUpdate, match=r"unsupported format version: v4 \(supported: v3\)"):
        commit(table(2), to(4))
    with pytest.raises(FormatVersionNotAllowed):
        commit(table(2), to(3), allowed_format_versions=frozenset({1, 2}))


def test_a_table_may_keep_a_format_version_that_is_no_longer_permitted(table: Any, commit: Any) -> None:
    same = {"action": "upgrade-format-version", "format-version": 3}
    assert not commit(table(3), same, allowed_format_versions=frozenset({2})).changed


def test_an_upgrade_to_version_3_sets_next_row_id_and_keeps_snapshots(table: Any, commit: Any, w: Any) -> None:
    base = commit(table(2), w.snapshot(1), w.ref("main", 1)).metadata
    new = commit(base, {"action": "upgrade-format-version", "format-version": 3}).metadata
    assert (new.next_row_id, new.snapshots) == (0, base.snapshots)


# ---- schemas -----------------------------------------------------------------------------------------------------


def test_a_new_schema_gets_the_next_id_regardless_of_the_client_id(table: Any, commit: Any, w: Any) -> None:
    wider = w.schema(*w.schema()["fields"], w.column(3, "note", "string"), **{"schema-id": 55})
    new = commit(table(), add_schema(wider, **{"last-column-id": 3}), CURRENT).metadata
    assert (new.current_schema_id, new.last_column_id) == (1, 3)
    assert [s.schema_id for s in new.schemas] == [0, 1]


def test_an_equal_schema_is_reused_and_changes_nothing(table: Any, commit: Any, w: Any) -> None:
    outcome = commit(table(), add_schema(w.schema(**{"schema-id": 9})))
    assert not outcome.changed
    assert outcome.metadata.last_column_id == 2


def test_a_reused_schema_is_not_the_last_added_one(table: Any, commit: Any, w: Any) -> None:
    with pytest.raises(InvalidTableUpdate, match="Cannot set last added schema: no schema has been added"):
        commit(table(), add_schema(w.schema()), CURRENT)


def test_a_schema_added_twice_in_one_commit_is_the_last_added_one(table: Any, commit: Any, w: Any) -> None:
    one, other = w.schema(w.column(1, "id"), w.column(2, "ts", "timestamptz")), w.schema(w.column(1, "id"))
    new = commit(table(), add_schema(one), add_schema(other), add_schema(one), CURRENT).metadata
    assert (new.current_schema_id, len(new.schemas)) == (1, 3)


def test_a_schema_can_be_reverted_to(table: Any, commit: Any, w: Any) -> None:
    wider = commit(table(), add_schema(w.schema(*w.schema()["fields"], w.column(3, "n"))), CURRENT).metadata
    back = commit(wider, {"action": "set-current-schema", "schema-id": 0}).metadata
    assert (back.current_schema_id, back.last_column_id, len(back.schemas)) == (0, 3, 2)


def test_the_last_column_id_never_shrinks(table: Any, commit: Any, w: Any) -> None:
    narrow = w.schema(w.column(1, "id", required=True))
    assert commit(table(), add_schema(narrow), CURRENT).metadata.last_column_id == 2


def test_a_schema_with_a_lower_last_column_id_still_drops_a_column(table: Any, commit: Any, w: Any) -> None:
    narrow = w.schema(w.column(1, "id", required=True))
    new = commit(table(), add_schema(narrow, **{"last-column-id": 1}), CURRENT).metadata
    assert (new.last_column_id, len(new.schemas), new.current_schema_id) == (2, 2, 1)


def test_an_unknown_schema_cannot_become_current(table: Any, commit: Any) -> None:
    with pytest.raises(InvalidTableUpdate, match="unknown schema: 5"):
        commit(table(), {"action": "set-current-schema", "schema-id": 5})


def test_types_of_a_later_version_are_refused(table: Any, commit: Any, w: Any) -> None:
    variant = w.schema(w.column(1, "id"), w.column(3, "v", "variant"))
    with pytest.raises(BadRequestException, match="variant is not supported until v3"):
        commit(table(2), add_schema(variant))
    upgrade = {"action": "upgrade-format-version", "format-version": 3}
    assert commit(table(2), upgrade, add_schema(variant)).metadata.last_column_id == 3


def test_a_malformed_schema_is_refused_with_its_path(table: Any, commit: Any) -> None:
    with pytest.raises(BadRequestException, match=r"`\$\.updates\[1\]\.schema"):
        commit(table(), {"action": "remove-properties", "removals": []}, add_schema({"type": "struct"}))


def test_dropping_a_column_of_the_default_spec_is_refused(table: Any, commit: Any, w: Any) -> None:
    base = table(**{"partition-spec": {"fields": [part(2, "day", "d")]}})
    with pytest.raises(BadRequestException, match="Cannot find source column for partition field: d"):
        commit(base, add_schema(w.schema(w.column(1, "id", required=True))), CURRENT)


@pytest.mark.parametrize("transform", ["day", "identity", "void"])
def test_a_column_must_not_get_the_name_of_a_partition_field(table: Any, commit: Any, w: Any, transform: str) -> None:
    base = table(**{"partition-spec": {"fields": [part(2, transform, "d")]}})
    named = add_schema(w.schema(*w.schema()["fields"], w.column(3, "d")))
    with pytest.raises(BadRequestException, match="sourced from different field in schema: d"):
        commit(base, named, CURRENT)
    unpartitioned = [{"action": "add-spec", "spec": {"fields": []}}, {"action": "set-default-spec", "spec-id": -1}]
    with pytest.raises(BadRequestException, match="sourced from different field in schema: d"):
        commit(base, *unpartitioned, named, CURRENT)
    removed = {"action": "remove-partition-specs", "spec-ids": [0]}
    assert commit(base, *unpartitioned, removed, named, CURRENT).changed


def test_schemas_no_longer_used_can_be_removed_but_not_the_current_one(table: Any, commit: Any, w: Any) -> None:
    wider = commit(table(), add_schema(w.schema(*w.schema()["fields"], w.column(3, "n"))), CURRENT).metadata
    new = commit(wider, {"action": "remove-schemas", "schema-ids": [0, 99]}).metadata
    assert [s.schema_id for s in new.schemas] == [1]
    with pytest.raises(InvalidTableUpdate, match="Cannot remove the current schema"):
        commit(wider, {"action": "remove-schemas", "schema-ids": [0, 1]})
    assert not commit(wider, {"action": "remove-schemas", "schema-ids": [99]}).changed


def test_the_id_of_a_removed_schema_is_not_reused_while_a_later_one_exists(table: Any, commit: Any, w: Any) -> None:
    wider = commit(table(), add_schema(w.schema(*w.schema()["fields"], w.column(3, "n"))), CURRENT).metadata
    trimmed = commit(wider, {"action": "remove-schemas", "schema-ids": [0]}).metadata
    again = commit(trimmed, add_schema(w.schema()), CURRENT).metadata
    assert again.current_schema_id == 2


# ---- specs -------------------------------------------------------------------------------------------------------


def test_missing_partition_field_ids_are_assigned(table: Any, commit: Any) -> None:
    new = commit(table(), add_spec(part(2, "day", "d"), part(1, "bucket[8]", "b")), DEFAULT_SPEC).metadata
    assert [f.field_id for f in new.default_spec.fields] == [1000, 1001]
    assert (new.default_spec_id, new.last_partition_id) == (1, 1001)


def test_a_field_keeps_its_id_across_specs_and_a_new_one_gets_a_new_id(table: Any, commit: Any) -> None:
    base = commit(table(), add_spec(part(2, "day", "d"), part(1, "bucket[8]", "b")), DEFAULT_SPEC).metadata
    new = commit(base, add_spec(part(1, "bucket[8]", "b"), part(2, "hour", "h")), DEFAULT_SPEC).metadata
    assert [f.field_id for f in new.default_spec.fields] == [1001, 1002]


def test_a_new_column_leaves_ids_to_other_writers(table: Any, commit: Any, w: Any) -> None:
    def adding(id: int) -> Any:
        columns = (w.column(1, "id", required=True), w.column(2, "ts", "timestamptz"), w.column(id, "new"))
        return {"action": "add-schema", "schema": w.schema(*columns)}

    # The table has the ids 1 and 2. Three columns, and a gap of a thousand.
    assert commit(table(), adding(1005)).metadata.last_column_id == 1005
    for id in (1006, 2**31 - 300):
        with pytest.raises(InvalidTableUpdate, match=f"The field id {id} leaves too few .* Use 3, the next one"):
            commit(table(), adding(id))


def test_a_new_partition_field_leaves_ids_to_other_writers(table: Any, commit: Any) -> None:
    def adding(id: int) -> Any:
        field = {"source-id": 1, "field-id": id, "name": "part", "transform": "bucket[4]"}
        return {"action": "add-spec", "spec": {"spec-id": 9, "fields": [field]}}

    last = table().last_partition_id
    assert commit(table(), adding(last + 1001)).metadata.last_partition_id == last + 1001
    with pytest.raises(InvalidTableUpdate, match=f"The partition field id .* Use {last + 1}, the next one"):
        commit(table(), adding(last + 1002))


def test_the_last_partition_id_never_shrinks(table: Any, commit: Any) -> None:
    base = commit(table(), add_spec(part(2, "day", "d"), part(1, "bucket[8]", "b"))).metadata
    narrow = commit(base, add_spec(part(2, "day", "d"))).metadata
    assert (narrow.partition_specs[2].last_field_id, narrow.last_partition_id) == (1000, 1001)


def test_a_partition_field_id_of_another_field_is_refused(table: Any, commit: Any) -> None:
    base = commit(table(), add_spec(part(2, "day", "d")), DEFAULT_SPEC).metadata
    with pytest.raises(BadRequestException, match="partition field id 1000 for b"):
        commit(base, add_spec(part(1, "bucket[8]", "b", **{"field-id": 1000})))
    twice = add_spec(part(1, "bucket[8]", "b", **{"field-id": 1005}), part(2, "hour", "h", **{"field-id": 1005}))
    with pytest.raises(BadRequestException, match="more than once"):
        commit(base, twice)


def test_a_spec_with_equal_fields_is_reused(table: Any, commit: Any) -> None:
    base = commit(table(), add_spec(part(2, "day", "d")), DEFAULT_SPEC).metadata
    assert not commit(base, add_spec(part(2, "day", "d", **{"field-id": 1000}), **{"spec-id": 4})).changed
    renamed = commit(base, add_spec(part(2, "day", "other", **{"field-id": 1000})), DEFAULT_SPEC).metadata
    assert renamed.default_spec_id == 2


def test_version_1_needs_ids_in_sequence(table: Any, commit: Any) -> None:
    new = commit(table(1), add_spec(part(2, "day", "d"), part(1, "identity", "id"))).metadata
    assert [f.field_id for f in new.partition_specs[1].fields] == [1000, 1001]
    with pytest.raises(BadRequestException, match="sequential IDs that are required in v1"):
        commit(table(1), add_spec(part(2, "day", "d", **{"field-id": 1003})))


def test_spec_id_minus_one_needs_a_spec_added_in_the_same_commit(table: Any, commit: Any) -> None:
    with pytest.raises(InvalidTableUpdate, match="Cannot set last added spec: no spec has been added"):
        commit(table(), DEFAULT_SPEC)
    with pytest.raises(InvalidTableUpdate, match="unknown spec: 3"):
        commit(table(), {"action": "set-default-spec", "spec-id": 3})


def test_specs_can_be_removed_but_not_the_default_one(table: Any, commit: Any) -> None:
    base = commit(table(), add_spec(part(2, "day", "d")), DEFAULT_SPEC).metadata
    new = commit(base, {"action": "remove-partition-specs", "spec-ids": [0, 9]}).metadata
    assert [s.spec_id for s in new.partition_specs] == [1]
    with pytest.raises(InvalidTableUpdate, match="Cannot remove the default partition spec"):
        commit(base, {"action": "remove-partition-specs", "spec-ids": [1]})


def test_a_void_partition_field_may_remain_without_its_column(table: Any, commit: Any, w: Any) -> None:
    base = commit(table(1), add_spec(part(2, "void", "ts_day"), part(1, "identity", "id")), DEFAULT_SPEC).metadata
    assert commit(base, add_schema(w.schema(w.column(1, "id", required=True))), CURRENT).changed


def test_a_missing_transform_is_refused_and_an_unknown_one_is_kept(table: Any, commit: Any) -> None:
    order = {"order-id": 1, "fields": [{"source-id": 1, **SORT, "transform": "bucket[0]"}]}
    for update in (add_spec(part(1, "juggle[2", "j")), {"action": "add-sort-order", "sort-order": order}):
        with pytest.raises(BadRequestException, match="Invalid"):
            commit(table(), update)
    kept = commit(table(), add_spec(part(1, "juggle[2]", "j"))).metadata.partition_specs.items[-1]
    assert kept.fields[0].transform == "juggle[2]"


def test_unknown_members_of_a_spec_are_kept(table: Any, commit: Any) -> None:
    new = commit(table(), add_spec(part(2, "day", "d", **{"x-note": "n"}), **{"x-why": 1})).metadata
    assert b'"x-note":"n"' in bytes(new.partition_specs[1].text)
    assert b'"x-why":1' in encode_table_metadata(new)


# ---- sort orders -------------------------------------------------------------------------------------------------


def test_sort_order_ids_start_at_1_and_unsorted_is_0(table: Any, commit: Any) -> None:
    new = commit(table(), add_order(1), DEFAULT_ORDER).metadata
    assert new.default_sort_order_id == 1
    again = commit(new, add_order(2, 1), DEFAULT_ORDER).metadata
    assert again.default_sort_order_id == 2
    unsorted = commit(again, {"action": "set-default-sort-order", "sort-order-id": 0}).metadata
    assert (unsorted.default_sort_order_id, len(unsorted.sort_orders)) == (0, 3)


def test_an_equal_order_is_reused(table: Any, commit: Any) -> None:
    new = commit(table(), add_order(1), DEFAULT_ORDER).metadata
    assert not commit(new, add_order(1)).changed
    assert not commit(new, add_order()).changed
    with pytest.raises(InvalidTableUpdate, match="Cannot set last added sort order"):
        commit(new, add_order(1), DEFAULT_ORDER)


@pytest.mark.parametrize(
    ("update", "message"),
    [
        (add_order(9), "Cannot find source column for sort field"),
        ({"action": "set-default-sort-order", "sort-order-id": 4}, "unknown order: 4"),
        (add_spec(part(9, "day", "d")), "Cannot find source column for partition field"),
        (add_spec(part(2, "truncate[4]", "d")), "Invalid source type timestamptz for transform"),
        (add_schema([]), "expected an object at `$.updates[0].schema`"),
        ({"action": "add-spec", "spec": 5}, "expected an object"),
    ],
)
def test_invalid_updates_are_refused_with_400(table: Any, commit: Any, update: Any, message: str) -> None:
    with pytest.raises(CatalogError) as caught:
        commit(table(), update)
    assert caught.value.code == 400
    assert message in caught.value.message
