# SPDX-License-Identifier: Apache-2.0
"""Locations in documents and commits: every one is listed."""

import json
from typing import Any

import pytest

from gateway.iceberg import wire
from gateway.iceberg.errors import BadRequestException
from gateway.iceberg.locations import PATH_PROPERTIES, inner_locations, location_properties, update_locations
from gateway.iceberg.metadata import decode_table_metadata, encode_table_metadata


def decoded(*updates: Any) -> Any:
    body = {"requirements": [], "updates": list(updates)}
    return wire.decode(json.dumps(body).encode(), wire.CommitTableRequest).updates


ALL_PATHS = {name: f"s3://evil/{i}" for i, name in enumerate(PATH_PROPERTIES)}


@pytest.mark.threat("LG-LOC-04")
def test_path_properties_are_listed_from_every_source(table: Any) -> None:
    expected = tuple(ALL_PATHS.items())
    assert location_properties({**ALL_PATHS, "comment": "s3://x"}) == expected
    assert location_properties(table(properties={**ALL_PATHS, "a": "b"})) == expected
    assert location_properties(decoded({"action": "set-properties", "updates": {**ALL_PATHS, "a": "b"}})) == expected
    assert location_properties(decoded({"action": "set-properties", "updated": ALL_PATHS})) == expected
    assert location_properties({}) == location_properties(decoded()) == ()


@pytest.mark.threat("LG-LOC-04")
@pytest.mark.parametrize(
    "name", ["write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path"]
)
def test_no_known_path_property_is_forgotten(name: str) -> None:
    assert location_properties({name: "s3://evil"})


@pytest.mark.threat("LG-LOC-09")
def test_every_location_inside_a_document_is_found(table: Any, commit: Any, w: Any) -> None:
    """Each text that looks like a location is in the list, at any depth of the document."""
    stats = {"snapshot-id": 1, "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1, "blob-metadata": []}
    made = commit(
        table(properties=ALL_PATHS),
        w.snapshot(1, **{"manifest-list": "s3://evil/list"}),
        w.ref("main", 1),
        {"action": "set-statistics", "statistics": {**stats, "statistics-path": "s3://evil/puffin"}},
        {"action": "set-partition-statistics", "partition-statistics": {**stats, "statistics-path": "s3://evil/parts"}},
        base_location="s3://evil/previous.json",
    ).metadata
    document = json.loads(encode_table_metadata(made))
    document["snapshots"][0]["manifests"] = ["s3://evil/manifest"]
    found = inner_locations(decode_table_metadata(json.dumps(document).encode()))
    everywhere = {part for part in json.dumps(document).split('"') if "://" in part} - {document["location"]}
    assert {location.location for location in found} == everywhere
    assert ("metadata-log[0].metadata-file", "s3://evil/previous.json") in found


@pytest.mark.threat("LG-LOC-08")
def test_every_location_that_a_commit_adds_is_found(w: Any) -> None:
    stats = {"snapshot-id": 1, "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1, "blob-metadata": []}
    updates = [
        {"action": "set-location", "location": "s3://a"},
        {"action": "set-properties", "updates": {"write.data.path": "s3://b"}},
        w.snapshot(1, **{"manifest-list": "s3://c", "manifests": ["s3://d"]}),
        {"action": "set-statistics", "statistics": {**stats, "statistics-path": "s3://e"}},
        {"action": "set-partition-statistics", "partition-statistics": {**stats, "statistics-path": "s3://f"}},
        {"action": "set-current-schema", "schema-id": 0},
    ]
    found = update_locations(decoded(*updates))
    assert [location.location[-1] for location in found] == list("abcdef")
    assert found[2].source == "updates[2].snapshot.manifest-list"


def test_an_unreadable_location_is_refused() -> None:
    with pytest.raises(BadRequestException, match=r"\$\.updates\[0\]\.statistics"):
        update_locations(decoded({"action": "set-statistics", "statistics": {"statistics-path": 5}}))
