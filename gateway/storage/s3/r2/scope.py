# SPDX-License-Identifier: Apache-2.0
"""Build the scope of a temporary credential of Cloudflare R2: one bucket, one prefix and one permission.

The fields are those of the request (Cloudflare API, "Create Temporary Access Credentials"). The prefix ends with a
slash, because R2 compares it as text: `ns/t1` would also be the prefix of `ns/t10`.
"""

import json
from typing import Final

from gateway.scope.credential import AccessLevel
from gateway.scope.errors import InvalidLocation
from gateway.scope.location import Location, refuse_pattern_characters

__all__ = ["build_r2_scope"]

# R2 has no permission to write without deleting. Its admin permissions are never requested.
_PERMISSIONS: Final = {
    AccessLevel.READ: "object-read-only",
    AccessLevel.READ_WRITE_DELETE: "object-read-write",
}


def build_r2_scope(location: Location, level: AccessLevel) -> str:
    """Build the scope for `level` on every key below `location`, as compact JSON.

    Raises `InvalidLocation` for a pattern character, and for the level `read-write`, which R2 cannot express.
    """
    permission = _PERMISSIONS.get(level)
    if permission is None:
        raise InvalidLocation("Cloudflare R2 has no credentials that write files and cannot delete them")
    for segment in location.segments:
        refuse_pattern_characters(segment)
    scope = {"bucket": location.authority, "permission": permission, "prefixes": [location.key_prefix]}
    return json.dumps(scope, ensure_ascii=False, separators=(",", ":"))
