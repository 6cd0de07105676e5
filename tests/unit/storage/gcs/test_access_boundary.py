# SPDX-License-Identifier: Apache-2.0
"""The access boundary of a token opens exactly one prefix of a bucket."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.iceberg.errors import CatalogError
from gateway.scope.credential import AccessLevel
from gateway.scope.location import Location
from gateway.storage.gcs.access_boundary import build_access_boundary
from gateway.storage.gcs.profile import SCHEME
from gateway.storage.gcs.proof import UnsupportedBoundary, evaluate, prove_scope

_TABLE = Location(SCHEME, "lake-1", ("wh", "t1"))
_NAMES = ("wh/t10/f", "wh/t1", "f", "wh/t1'/f", "other/wh/t1/f")
_SEGMENT = st.text(min_size=1, max_size=12)


@pytest.mark.parametrize("level", AccessLevel)
def test_the_boundary_opens_the_table_and_nothing_else(level: AccessLevel) -> None:
    assert prove_scope(build_access_boundary(_TABLE, level), _TABLE, level, _NAMES) == []


@given(st.lists(_SEGMENT, min_size=1, max_size=3), st.sampled_from(AccessLevel), st.lists(_SEGMENT, max_size=4))
def test_every_accepted_location_is_proven(segments: list[str], level: AccessLevel, others: list[str]) -> None:
    try:
        location = Location(SCHEME, "lake-1", tuple(segments))
        boundary = build_access_boundary(location, level)
    except CatalogError:
        return
    assert prove_scope(boundary, location, level, ("/".join(others), *others)) == []


@pytest.mark.threat("LG-POL-04")
def test_quotes_cannot_end_the_string_of_the_condition() -> None:
    name = "x') || true || ('"
    location = Location(SCHEME, "lake-1", ("wh", "t" + name.replace(" ", "")))
    assert prove_scope(build_access_boundary(location, AccessLevel.READ), location, AccessLevel.READ, _NAMES) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("wh/t1/'", "wh/t1'"),
        ("/objects/wh/t1/", "/objects/wh/"),
        ("/folders/wh/t1/", "/folders/wh/"),
        ("/folders/wh/t1/", "/managedFolders/wh/t1/"),
        ("objectListPrefix', '').startsWith('wh/t1/')", "objectListPrefix', '').startsWith('')"),
        ("roles/storage.objectViewer", "roles/storage.objectUser"),
    ],
)
def test_a_wider_boundary_is_not_proven(before: str, after: str) -> None:
    boundary = build_access_boundary(_TABLE, AccessLevel.READ)
    assert before in boundary
    assert prove_scope(boundary.replace(before, after), _TABLE, AccessLevel.READ, _NAMES) != []


@pytest.mark.parametrize(
    "change",
    [
        lambda rule: rule.pop("availabilityCondition"),
        lambda rule: rule["availabilityCondition"].update(expression="true"),
        lambda rule: rule.update(availablePermissions=["inRole:roles/storage.admin"]),
        lambda rule: rule.update(availableResource="//storage.googleapis.com/projects/_/buckets/a/b"),
        lambda rule: rule.update(availableResource="//cloudresourcemanager.googleapis.com/projects/p"),
    ],
)
def test_an_unknown_part_is_never_proven(change: object) -> None:
    document = json.loads(build_access_boundary(_TABLE, AccessLevel.READ))
    change(document["accessBoundary"]["accessBoundaryRules"][0])  # type: ignore[operator]  # one of the functions above
    with pytest.raises(UnsupportedBoundary):
        evaluate(json.dumps(document), "storage.objects.get", bucket="lake-1", name="wh/t1/f")


def test_a_writer_without_deletion_cannot_overwrite() -> None:
    boundary = build_access_boundary(_TABLE, AccessLevel.READ_WRITE)
    assert evaluate(boundary, "storage.objects.create", bucket="lake-1", name="wh/t1/f")
    assert not evaluate(boundary, "storage.objects.delete", bucket="lake-1", name="wh/t1/f")


def test_a_condition_beyond_the_limit_is_an_error() -> None:
    long = Location(SCHEME, "lake-1", tuple("'" * 100 for _ in range(10)))
    with pytest.raises(CatalogError) as refused:
        build_access_boundary(long, AccessLevel.READ)
    assert refused.value.type == "PolicyTooLarge"


def test_a_boundary_has_the_documented_form() -> None:
    """https://cloud.google.com/iam/docs/downscoping-short-lived-credentials, "Components of a Credential Access
    Boundary".
    """
    assert json.loads(build_access_boundary(_TABLE, AccessLevel.READ_WRITE)) == {
        "accessBoundary": {
            "accessBoundaryRules": [
                {
                    "availableResource": "//storage.googleapis.com/projects/_/buckets/lake-1",
                    "availablePermissions": ["inRole:roles/storage.objectViewer", "inRole:roles/storage.objectCreator"],
                    "availabilityCondition": {
                        "title": "table",
                        "expression": "resource.name.startsWith('projects/_/buckets/lake-1/objects/wh/t1/') || "
                        "resource.name.startsWith('projects/_/buckets/lake-1/folders/wh/t1/') || "
                        "api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('wh/t1/')",
                    },
                }
            ]
        }
    }
