# SPDX-License-Identifier: Apache-2.0
"""The part of an audit record that an auditor reads, and its comparison with a search."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.features.all_routes  # noqa: F401 - the import declares every operation
from gateway.access.audit.audit_record import (
    AuditedActor,
    AuditedDecision,
    AuditedResource,
    AuditRecord,
    LeftOut,
    encode_record,
)
from gateway.access.audit.audited_inputs import DecisionInputs
from gateway.access.operations.audit import AuditedObject, AuditEntry, AuditSelection, ContainerObject
from gateway.features.audit.audit_view import AuditPlace, entry_of, has_text, parts_of, text_part

AT: Final = datetime(2026, 3, 4, 12, tzinfo=UTC)
WAREHOUSES: Final = [str(UUID(int=number)) for number in (1, 2)]
NAMESPACES: Final = [str(UUID(int=number)) for number in (11, 12)]
ALL: Final = AuditSelection(since=AT - timedelta(days=1), until=AT + timedelta(days=1))
HERE: Final = AuditPlace(warehouses=frozenset(WAREHOUSES[:1]))
SERVER: Final = AuditPlace()

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
resources = st.builds(
    AuditedResource,
    type=st.sampled_from(["table", "warehouse", "role", "project", "server"]),
    id=st.none() | st.sampled_from([*WAREHOUSES, "t", "p"]),
    name=st.none() | texts,
    warehouse_id=st.none() | st.sampled_from(WAREHOUSES),
    project_id=st.none() | st.sampled_from(["p", "q"]),
)
decisions = st.builds(
    AuditedDecision,
    operation=st.sampled_from(["load_table", "drop_table", "search_audit"]),
    outcome=st.sampled_from(["allowed", "hidden", "forbidden"]),
    determined_by=st.just("both"),
    resources=st.lists(resources, max_size=3).map(tuple),
    failure=st.none() | st.sampled_from(["ActionForbidden", "CannotSeeResource"]),
    policy_reasons=st.lists(texts, max_size=2).map(tuple),
    inputs=st.none() | st.builds(DecisionInputs, namespace_ids=st.none() | st.lists(st.sampled_from(NAMESPACES))),
)
records = st.builds(
    AuditRecord,
    id=st.sampled_from([UUID(int=21), UUID(int=22)]),
    format=st.just(1),
    at=st.just(AT),
    request_id=st.sampled_from(["r", "s"]),
    actor=st.builds(AuditedActor, kind=st.just("user"), id=st.sampled_from(["oidc~ann", "oidc~bob"])),
    decisions=st.lists(decisions, min_size=1, max_size=3).map(tuple),
    client_request_id=st.none() | texts,
    detail=st.dictionaries(st.sampled_from(["reason", "location", "search", "facts"]), texts),
)
places = st.sampled_from(
    [SERVER, HERE, AuditPlace(warehouses=frozenset(WAREHOUSES)), AuditPlace(project_id="p"),
     AuditPlace(project_id="p", warehouses=frozenset(WAREHOUSES[1:]))]
)  # fmt: skip


@st.composite
def selections(draw: st.DrawFn) -> AuditSelection:
    """Return a search whose filters often meet the records above."""
    ids = [*(("warehouse", each) for each in WAREHOUSES), *(("namespace", each) for each in NAMESPACES)]
    kind, id = draw(st.sampled_from(ids))
    container = msgspec.convert({"type": kind, "id": id}, ContainerObject)
    object = st.builds(
        AuditedObject, type=st.sampled_from(["table", "warehouse"]), id=st.sampled_from([*WAREHOUSES, "t"])
    )
    return replace(
        ALL,
        actor=draw(st.none() | st.just("oidc~ann")),
        operations=tuple(draw(st.lists(st.sampled_from(["load_table", "drop_table"]), max_size=2))),
        outcomes=draw(st.sampled_from([(), ("allowed",), ("hidden", "forbidden")])),
        object=draw(st.none() | object),
        below=draw(st.none() | st.just(container)),
        request_id=draw(st.none() | st.sampled_from(["r", str(UUID(int=21))])),
        text=draw(st.none() | texts | st.sampled_from(["FORBIDDEN", "see"])),
    )


@given(records, places, selections())
def test_the_statement_finds_every_record_that_a_search_selects(
    record: AuditRecord, place: AuditPlace, selection: AuditSelection
) -> None:
    if entry_of(record, place, selection, None) is None:
        return
    stored = encode_record(record)
    for parts in parts_of(selection, place):
        assert any(part in stored for part in parts)
    if selection.text is not None:
        assert text_part(selection.text) in stored.lower()


@given(records, places, selections())
def test_a_filter_changes_no_entry(record: AuditRecord, place: AuditPlace, selection: AuditSelection) -> None:
    assert entry_of(record, place, selection, None) in (None, entry_of(record, place, ALL, None))


@given(records, selections())
def test_nothing_of_other_places_changes_what_an_auditor_reads(record: AuditRecord, selection: AuditSelection) -> None:
    """Replace everything that is not about the place: the entry and the result of each search stay."""
    for search in (ALL, selection):
        assert _encoded(entry_of(record, HERE, search, 1)) == _encoded(entry_of(_otherwise(record), HERE, search, 1))


def _otherwise(record: AuditRecord) -> AuditRecord:
    """Return a record that is the same at the place `HERE`, and different elsewhere."""
    decided = []
    for decision in record.decisions:
        kept = [each for each in decision.resources if HERE.has(each)]
        if not kept:
            changed: dict[str, Any] = {"operation": "create_role", "outcome": "unavailable", "policy_reasons": ("x",)}
        elif len(kept) < len(decision.resources):
            changed = {"policy_reasons": ("other: reason",)}
        else:
            changed = {}
        moved = [
            each if HERE.has(each) else msgspec.structs.replace(each, name="other", project_id="other")
            for each in decision.resources
        ]
        decided.append(msgspec.structs.replace(decision, resources=tuple(moved), **changed))
    whole = all(HERE.has(each) for decision in record.decisions for each in decision.resources)
    whole = whole and all(decision.resources for decision in record.decisions)
    detail = record.detail if whole else {"reason": "of another place"}
    return msgspec.structs.replace(record, decisions=tuple(decided), detail=detail)


def _encoded(entry: AuditEntry | None) -> bytes:
    return msgspec.json.encode(entry)


def _record(*found: AuditedDecision, **detail: str) -> AuditRecord:
    actor = AuditedActor(kind="user", id="oidc~ann")
    return AuditRecord(id=UUID(int=1), format=1, at=AT, request_id="r", actor=actor, decisions=found, detail=detail)


def _decision(*found: AuditedResource, **more: Any) -> AuditedDecision:
    return AuditedDecision(operation="load_table", outcome="allowed", determined_by="both", resources=found, **more)


def test_details_are_shown_only_if_the_whole_record_is_about_the_place() -> None:
    here, there = (AuditedResource(type="table", id="t", warehouse_id=id) for id in WAREHOUSES)
    whole = entry_of(_record(_decision(here), reason="x", location="s3://b"), HERE, ALL, None)
    assert whole is not None
    assert (whole.detail, whole.partial) == ({"reason": "x"}, False)
    for record in (
        _record(_decision(here, there), reason="x"),
        _record(_decision(here), _decision(there), reason="x"),
        _record(_decision(here, resources_left_out=LeftOut(count=1, sha256="0")), reason="x"),
    ):
        part = entry_of(record, HERE, ALL, None)
        assert part is not None
        assert (part.detail, part.partial) == ({}, True)


def test_only_facts_of_grants_are_shown() -> None:
    facts = '{"write_table_assignments":{"writes":[]},"commit_table":{"updates":[]}}'
    entry = entry_of(_record(_decision(), facts=facts), SERVER, ALL, None)
    assert entry is not None
    assert entry.detail == {"facts": '{"write_table_assignments":{"writes":[]}}'}
    for other in ('{"commit_table":{}}', '{"write_table_assign', "[]"):
        hidden = entry_of(_record(_decision(), facts=other), SERVER, ALL, None)
        assert hidden is not None
        assert hidden.detail == {}


@pytest.mark.parametrize(
    ("text", "part", "found"),
    [("ActionForbidden", "FORBID", True), ("Straße", "STRASSE", False), ("Ünder", "ünder", False), ("a", "ab", False)],
)
def test_case_of_ascii_letters_alone_is_ignored(text: str, part: str, found: bool) -> None:
    assert has_text(text, part) is found


def test_filters_of_a_decision_are_met_by_one_decision() -> None:
    read = _decision(AuditedResource(type="table", id="t", warehouse_id=WAREHOUSES[0]))
    refused = msgspec.structs.replace(read, operation="drop_table", outcome="forbidden", resources=())
    both = _record(read, refused)
    for selection, selected in (
        (replace(ALL, operations=("load_table",), outcomes=("allowed",)), True),
        (replace(ALL, operations=("drop_table",), outcomes=("allowed",)), False),
        (replace(ALL, operations=("drop_table",), object=AuditedObject(type="table", id="t")), False),
        (replace(ALL, until=AT), False),
        (replace(ALL, since=AT), True),
    ):
        assert (entry_of(both, SERVER, selection, None) is not None) is selected
