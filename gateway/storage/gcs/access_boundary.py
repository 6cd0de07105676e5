# SPDX-License-Identifier: Apache-2.0
"""Build the credential access boundary of a downscoped token: the smallest document that allows one prefix and nothing
else.

It has one rule for the bucket (IAM documentation, "Credential Access Boundaries"). The condition is true for objects
and folders below the prefix, and for lists whose prefix is below it. A request that is not a list has no list prefix.
Only buckets with a hierarchical namespace have folders; writing a file creates those that are missing.
"""

import json
import re
from typing import Final

from gateway.scope.credential import AccessLevel
from gateway.scope.errors import InvalidLocation, PolicyTooLarge
from gateway.scope.location import Location

__all__ = ["MAX_EXPRESSION_CHARACTERS", "build_access_boundary", "whole_bucket"]

MAX_EXPRESSION_CHARACTERS: Final = 2048  # IAM documentation, "Quotas and limits", conditions

#: `objectCreator` cannot overwrite, which needs the permission to delete. So the middle level can only add files.
_ROLES: Final = {
    AccessLevel.READ: ("roles/storage.objectViewer",),
    AccessLevel.READ_WRITE: ("roles/storage.objectViewer", "roles/storage.objectCreator"),
    AccessLevel.READ_WRITE_DELETE: ("roles/storage.objectUser",),
}
_QUOTED: Final = re.compile(r"['\\]")


def build_access_boundary(location: Location, level: AccessLevel) -> str:
    """Build the boundary for `level` on every object below `location`, as compact JSON.

    Raises `InvalidLocation` for a character that the condition cannot contain, and `PolicyTooLarge` if the condition
    exceeds the limit. The boundary is never widened, shortened or omitted instead.
    """
    prefix = _literal(location.key_prefix)
    name = f"projects/_/buckets/{location.authority}"
    expression = (
        f"resource.name.startsWith('{name}/objects/{prefix}') || "
        f"resource.name.startsWith('{name}/folders/{prefix}') || "
        f"api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('{prefix}')"
    )
    if len(expression) > MAX_EXPRESSION_CHARACTERS:
        raise PolicyTooLarge(
            f"The condition for the location has {len(expression)} characters; the store allows at most "
            f"{MAX_EXPRESSION_CHARACTERS}. Use a location with a shorter path"
        )
    rule = {
        "availableResource": f"//storage.googleapis.com/projects/_/buckets/{location.authority}",
        "availablePermissions": [f"inRole:{role}" for role in _ROLES[level]],
        "availabilityCondition": {"title": "table", "expression": expression},
    }
    document = {"accessBoundary": {"accessBoundaryRules": [rule]}}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def whole_bucket(bucket: str) -> str:
    """Build the boundary for all objects of a bucket. Tokens with it serve to test other tokens and are never
    vended.
    """
    rule = {
        "availableResource": f"//storage.googleapis.com/projects/_/buckets/{bucket}",
        "availablePermissions": ["inRole:roles/storage.objectViewer"],
    }
    return json.dumps({"accessBoundary": {"accessBoundaryRules": [rule]}}, separators=(",", ":"))


def _literal(text: str) -> str:
    """Return the text as a string literal in single quotes (Common Expression Language, "Values")."""
    if not text.isprintable():
        raise InvalidLocation("The location has a character that a condition of the store cannot contain")
    return _QUOTED.sub(lambda found: "\\" + found[0], text)
