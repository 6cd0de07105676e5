# SPDX-License-Identifier: Apache-2.0
"""Ids and former names that policies receive, of a target and all its ancestors."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from gateway.access.nouns.card import Resolved
from gateway.access.nouns.describe import describe_target
from gateway.access.nouns.refs import NamespaceRef, Table, TabularRef
from gateway.access.nouns.resolved import FormerNames, Resolution, ResolvedNamespace, ResolvedTable, ResolvedWarehouse
from gateway.iceberg.identifiers import Namespace, TableIdentifier
from gateway.storage.registry import stored_profile

W, TOP, DEEP, T = (UUID(int=number) for number in range(1, 5))
SPACE = Namespace(("a", "b"))
WAREHOUSE = ResolvedWarehouse(
    id=W,
    project_id="p",
    name="main",
    active=True,
    decode=stored_profile,
    profile=b"{}",
    profile_version=1,
    credential_id=None,
    allowed_format_versions=(2,),
    default_format_version=None,
)
NAMESPACE = ResolvedNamespace(
    id=DEEP,
    warehouse=WAREHOUSE,
    namespace=SPACE,
    ancestors=(TOP,),
    former=FormerNames(names=(("x", "b"),)),
)


def resolution(ref: object, row: Resolved) -> Resolution:
    return Resolution(rows={ref: row}, now=datetime(2026, 1, 1, tzinfo=UTC))


def test_a_namespace_has_the_ids_of_its_levels_and_its_former_names() -> None:
    ref = NamespaceRef(W, SPACE)
    target = describe_target(ref, resolution(ref, NAMESPACE))
    assert (target.id, target.namespace, target.namespace_ids) == (str(DEEP), ["a", "b"], [str(TOP), str(DEEP)])
    assert (target.former_names, target.former_namespaces, target.former_names_complete) == ([], [["x", "b"]], True)


def test_an_absent_object_has_no_ids_and_no_former_names() -> None:
    ref = NamespaceRef(W, SPACE)
    target = describe_target(ref, Resolution(rows={}, now=datetime(2026, 1, 1, tzinfo=UTC)))
    assert (target.id, target.namespace_ids, target.former_namespaces) == (None, None, [])


def test_a_truncated_list_of_former_names_is_marked_as_incomplete() -> None:
    ref = TabularRef(Table, W, TableIdentifier(SPACE, "t"))
    for own, above in ((True, True), (False, True), (True, False)):
        row = ResolvedTable(
            id=T,
            namespace=ResolvedNamespace(
                id=DEEP,
                warehouse=WAREHOUSE,
                namespace=SPACE,
                ancestors=(TOP,),
                former=FormerNames(complete=above),
            ),
            identifier=ref.identifier,
            location="s3://b/t",
            metadata_location="s3://b/t/metadata/1.json",
            version=1,
            former=FormerNames(names=(("a", "b", "old"),), complete=own),
        )
        target = describe_target(ref, resolution(ref, row))
        assert target.former_names == [["a", "b", "old"]]
        assert target.former_names_complete is (own and above)
