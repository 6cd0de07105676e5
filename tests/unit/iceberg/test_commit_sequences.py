# SPDX-License-Identifier: Apache-2.0
"""Invariants of table metadata under sequences of random commits."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.iceberg import wire
from gateway.iceberg.commit import commit_table
from gateway.iceberg.creation import new_table_metadata
from gateway.iceberg.errors import CatalogError
from gateway.iceberg.metadata import (
    TableMetadata,
    decode_stored_table_metadata,
    decode_table_metadata,
    encode_table_metadata,
)

UUID_OF_TABLE = UUID(int=4)
START_MS = 1_700_000_000_000
TYPES = ["int", "long", "string", "timestamptz", "decimal(9,2)"]
TRANSFORMS = {
    "int": "bucket[4]",
    "long": "bucket[16]",
    "string": "truncate[3]",
    "timestamptz": "day",
    "decimal(9,2)": "void",
}
REFS = ["main", "dev", "audit", "release"]


class Commits(RuleBasedStateMachine):
    """A table under random commits, with a record of the object that each id denotes."""

    metadata: TableMetadata

    def __init__(self) -> None:
        super().__init__()
        self.now = START_MS
        self.written = 0
        self.snapshot_ids: list[int] = []
        self.contents: dict[tuple[str, int], Any] = {}
        self.field_meaning: dict[int, tuple[int, str]] = {}
        self.highest = {"sequence": 0, "column": 0, "partition": 0, "row": 0, "updated": 0}

    @initialize(version=st.sampled_from([1, 2, 3]))
    def create(self, version: int) -> None:
        schema = {"type": "struct", "fields": [{"id": 1, "name": "c1", "type": "long", "required": True}]}
        body = {"name": "t", "schema": schema, "properties": {"format-version": str(version)}}
        request = wire.decode(json.dumps(body).encode(), wire.CreateTableRequest)
        self.metadata = new_table_metadata(request, table_uuid=UUID_OF_TABLE, location="s3://b/t", now_ms=self.now)

    def commit(self, *updates: Any, reread: bool = True) -> bool:
        """Commit with requirements that describe the current state. Return True if the commit was accepted."""
        m = self.metadata
        requirements = [
            {"type": "assert-table-uuid", "uuid": m.table_uuid},
            {"type": "assert-last-assigned-field-id", "last-assigned-field-id": m.last_column_id},
            {"type": "assert-default-spec-id", "default-spec-id": m.default_spec_id},
            *({"type": "assert-ref-snapshot-id", "ref": n, "snapshot-id": r.snapshot_id} for n, r in m.refs.items()),
        ]
        body = {"requirements": requirements, "updates": list(updates)}
        request = wire.decode(json.dumps(body).encode(), wire.CommitTableRequest)
        self.now += 1000
        before = encode_table_metadata(m)
        file = f"s3://b/t/metadata/{self.written:05d}.json"
        try:
            outcome = commit_table(m, file, request.requirements, request.updates, now_ms=self.now)
        except CatalogError as error:
            assert error.code in (400, 409)
            assert encode_table_metadata(m) == before
            return False
        assert encode_table_metadata(m) == before
        if not outcome.changed:
            assert outcome.metadata is m
        else:
            self.written += 1
            assert outcome.metadata.metadata_log[-1].metadata_file == file
        data = encode_table_metadata(outcome.metadata)
        self.metadata = decode_stored_table_metadata(data) if reread else outcome.metadata
        return True

    def snapshot(self, parent: int | None, *, stale: bool = False) -> tuple[int, dict[str, Any]]:
        number = 10**12 + 17 * len(self.snapshot_ids)
        sequence = self.metadata.last_sequence_number + (0 if stale else 1)
        members: dict[str, Any] = {
            "snapshot-id": number,
            "sequence-number": sequence,
            "timestamp-ms": self.now + 500,
            "manifest-list": f"s3://b/t/metadata/{number}.avro",
            "summary": {"operation": "append"},
            "schema-id": self.metadata.current_schema_id,
            "first-row-id": self.metadata.next_row_id,
            "added-rows": 3,
        }
        if parent is not None:
            members["parent-snapshot-id"] = parent
        return number, {"action": "add-snapshot", "snapshot": members}

    @rule(name=st.sampled_from(REFS), tag=st.booleans(), root=st.booleans(), reread=st.booleans())
    def append(self, name: str, tag: bool, root: bool, reread: bool) -> None:
        known = self.metadata.refs.get(name)
        parent = None if root or known is None else known.snapshot_id
        number, added = self.snapshot(parent)
        kind = "tag" if tag and name != "main" else "branch"
        named = {"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": number}
        assert self.commit(added, named, reread=reread)
        self.snapshot_ids.append(number)

    @rule()
    def append_twice_in_one_commit(self) -> None:
        number, added = self.snapshot(None)
        self.snapshot_ids.append(number)
        later, again = self.snapshot(number)
        again["snapshot"]["sequence-number"] += 1
        again["snapshot"]["first-row-id"] += 3
        self.snapshot_ids.append(later)
        ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch"}
        assert self.commit(added, {**ref, "snapshot-id": number}, again, {**ref, "snapshot-id": later})
        assert number not in {entry.snapshot_id for entry in self.metadata.snapshot_log}

    @precondition(lambda self: self.metadata.format_version > 1 and self.metadata.last_sequence_number > 0)
    @rule()
    def append_overtaken(self) -> None:
        _, added = self.snapshot(5, stale=True)
        assert not self.commit(added)

    @precondition(lambda self: self.snapshot_ids)
    @rule(data=st.data(), name=st.sampled_from(REFS))
    def move_ref(self, data: Any, name: str) -> None:
        target = data.draw(st.sampled_from(self.snapshot_ids))
        exists = target in {s.snapshot_id for s in self.metadata.snapshots}
        moved = {"action": "set-snapshot-ref", "ref-name": name, "type": "branch", "snapshot-id": target}
        assert self.commit(moved) == exists

    @rule(name=st.sampled_from(REFS))
    def drop_ref(self, name: str) -> None:
        assert self.commit({"action": "remove-snapshot-ref", "ref-name": name})
        assert name not in self.metadata.refs

    @precondition(lambda self: self.snapshot_ids)
    @rule(data=st.data())
    def expire(self, data: Any) -> None:
        gone = data.draw(st.lists(st.sampled_from(self.snapshot_ids), max_size=3))
        assert self.commit({"action": "remove-snapshots", "snapshot-ids": gone})
        assert not set(gone) & {s.snapshot_id for s in self.metadata.snapshots}

    @rule(kind=st.sampled_from(TYPES), current=st.booleans())
    def add_column(self, kind: str, current: bool) -> None:
        field = self.metadata.last_column_id + 1
        fields = json.loads(bytes(self.metadata.schema.text))["fields"]
        fields = [*fields, {"id": field, "name": f"c{field}", "type": kind, "required": False}]
        updates: list[Any] = [{"action": "add-schema", "schema": {"type": "struct", "fields": fields}}]
        if current:
            updates.append({"action": "set-current-schema", "schema-id": -1})
        assert self.commit(*updates)

    @rule(data=st.data())
    def go_to_schema(self, data: Any) -> None:
        requested = data.draw(st.sampled_from([s.schema_id for s in self.metadata.schemas]))
        needed = {f.source_id for f in self.metadata.default_spec.fields if f.transform != "void"}
        needed |= {f.source_id for f in self.metadata.default_sort_order.fields}
        target = next(s for s in self.metadata.schemas if s.schema_id == requested)
        accepted = self.commit({"action": "set-current-schema", "schema-id": requested})
        assert accepted == (needed <= set(target.columns))

    @rule(data=st.data())
    def partition(self, data: Any) -> None:
        fields = data.draw(st.lists(st.sampled_from(self.metadata.schema.fields), max_size=3, unique_by=lambda f: f.id))
        spec = [{"source-id": f.id, "name": f"p_{f.name}", "transform": TRANSFORMS[str(f.type)]} for f in fields]
        accepted = self.commit({"action": "add-spec", "spec": {"fields": spec}})
        assert accepted
        match = [
            s.spec_id
            for s in self.metadata.partition_specs
            if [(f.source_id, f.transform, f.name) for f in s.fields]
            == [(f["source-id"], f["transform"], f["name"]) for f in spec]
        ]
        assert len(match) == 1
        assert self.commit({"action": "set-default-spec", "spec-id": match[0]})

    @rule(data=st.data())
    def sort(self, data: Any) -> None:
        fields = data.draw(st.lists(st.sampled_from(self.metadata.schema.fields), max_size=2, unique_by=lambda f: f.id))
        keys = [
            {"source-id": f.id, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}
            for f in fields
        ]
        assert self.commit({"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": keys}})

    @rule(name=st.sampled_from("abc"), value=st.sampled_from("12"), remove=st.booleans())
    def property(self, name: str, value: str, remove: bool) -> None:
        if remove:
            assert self.commit({"action": "remove-properties", "removals": [name]})
        else:
            assert self.commit({"action": "set-properties", "updates": {name: value}})
        assert (self.metadata.properties.get(name) == value) or remove

    @rule(version=st.sampled_from([1, 2, 3]))
    def upgrade(self, version: int) -> None:
        upward = version >= self.metadata.format_version
        assert self.commit({"action": "upgrade-format-version", "format-version": version}) == upward

    @invariant()
    def the_document_is_consistent_and_stable(self) -> None:
        data = encode_table_metadata(self.metadata)
        assert encode_table_metadata(decode_table_metadata(data)) == data

    @invariant()
    def refs_name_snapshots_that_exist_and_main_is_current(self) -> None:
        existing = {s.snapshot_id for s in self.metadata.snapshots}
        assert {r.snapshot_id for r in self.metadata.refs.values()} <= existing
        main = self.metadata.refs.get("main")
        assert self.metadata.current_snapshot_id == (main.snapshot_id if main else None)
        log = [entry.snapshot_id for entry in self.metadata.snapshot_log]
        assert set(log) <= existing
        assert main is None or log[-1] == main.snapshot_id

    @invariant()
    def ids_are_unique(self) -> None:
        m = self.metadata
        things = [("snapshot", s.snapshot_id, bytes(s.text)) for s in m.snapshots]
        things += [("schema", s.schema_id, bytes(s.text)) for s in m.schemas]
        things += [("spec", s.spec_id, bytes(s.text)) for s in m.partition_specs]
        things += [("order", o.order_id, bytes(o.text)) for o in m.sort_orders]
        for kind, number, text in things:
            assert self.contents.setdefault((kind, number), text) == text
        if m.format_version > 1 and not any(k == "was-v1" for k, _ in self.contents):
            for field in (f for spec in m.partition_specs for f in spec.fields):
                assert field.field_id is not None
                meaning = self.field_meaning.setdefault(field.field_id, field.content)
                assert meaning == field.content
        elif m.format_version == 1:
            self.contents[("was-v1", 0)] = b""

    @invariant()
    def counters_never_go_back(self) -> None:
        m = self.metadata
        now = {
            "sequence": m.last_sequence_number,
            "column": m.last_column_id,
            "partition": m.last_partition_id,
            "row": m.next_row_id,
            "updated": m.last_updated_ms,
        }
        assert all(now[name] >= self.highest[name] for name in now)
        self.highest = now
        assert all(s.sequence_number <= m.last_sequence_number for s in m.snapshots)
        assert max(s.highest_field_id for s in m.schemas) <= m.last_column_id


Commits.TestCase.settings = settings(max_examples=100, stateful_step_count=40)
TestCommits = Commits.TestCase
