# SPDX-License-Identifier: Apache-2.0
"""Group the operations of the OpenAPI documents by the noun that they concern.

The noun is the last segment of the path that names one. So grants, tags and protection of a table are with the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

TAGS: Final[Mapping[str, str]] = {
    "config": "The configuration that clients of the catalog read first.",
    "server": "The server: its version and state, its first administrator, grants and actions on it.",
    "projects": "Projects, which contain warehouses, roles, tags and data policies.",
    "warehouses": "Warehouses: storage, credentials, deletion, protection, grants and tags.",
    "namespaces": "Namespaces: properties, contents, moves, protection, grants and tags.",
    "tables": "Tables: metadata, commits, credentials, protection, grants, tags and data policies.",
    "columns": "Columns of tables: grants and tags.",
    "views": "Views: metadata, commits, protection, grants and tags.",
    "generic-tables": "Tables in other formats than Iceberg: creation, credentials, protection, grants and tags.",
    "transactions": "Commits to several tables, all or none.",
    "signer": "Signatures for requests of clients to the object store.",
    "deleted-tabulars": "Dropped tables and views that can be restored.",
    "users": "Users: records, roles and actions, and the caller's own record.",
    "roles": "Roles: members, the roles that contain them, and grants.",
    "grants": "The grants of one principal.",
    "tag-definitions": "Tags: their definitions, the objects that carry them, and grants.",
    "data-policies": "Data policies, which filter rows and mask columns: versions, bindings, effects and grants.",
    "mapping-tables": "Mapping tables, which give row filters values for each principal.",
    "access": "Reasons of decisions: explanations, denials, and lists of principals and objects with access.",
    "audit": "Searches of the audit log.",
    "access-requests": "Requests of users for access, and the decisions about them.",
    "access-reviews": "Reviews of grants: certifications and revocations.",
    "break-glass": "Privileges for an emergency, with confirmation and review.",
    "change-tickets": "Approvals of changes by a second person.",
    "permission-checks": "Checks of permissions, one or many in a request.",
    "authzen": "The decisions of this server in the form of OpenID AuthZEN.",
    "live-credentials": "Credentials that were issued and are still valid.",
    "engine-probes": "Probes that prove if an engine enforces filters and masks.",
    "tasks": "Background tasks and the configuration of their queues.",
    "events": "Change events: sinks, dead letters and replay.",
    "search": "Searches for tables, views, roles and users.",
    "statistics": "Counts of requests, tables and views.",
    "oauth": "Tokens with which an engine acts for a user (RFC 8693).",
    "scim": "Users and groups that an identity provider provisions (SCIM 2.0).",
    "policy-bundles": "The policies as bundles for OPA.",
    "system": "Health, this documentation, and the pages for browsers.",
}
"""The description of each tag, in the order of the page."""

#: The tag by a segment of the path. Other segments name no noun: `grants` belongs to the object before it.
_NOUNS: Final[Mapping[str, str]] = {
    **{f"{name}s": f"{name}s" for name in ("namespace", "table", "column", "view", "generic-table")},
    **{name: f"{name}s" for name in ("project", "warehouse", "namespace", "table", "column", "view", "generic-table")},
    **{name: f"{name}s" for name in ("user", "role", "tag-definition", "mapping-table", "engine-probe", "task")},
    **{name: name for name in ("server", "break-glass", "change-tickets", "deleted-tabulars", "statistics")},
    "action": "permission-checks",
    "bootstrap": "server",
    "check": "permission-checks",
    "column-tags": "columns",
    "created": "tables",
    "data-policy": "data-policies",
    "default-project": "projects",
    "endpoint-statistics": "statistics",
    "info": "server",
    "policy-bundle": "policy-bundles",
    "project-list": "projects",
    "register": "tables",
    "register-view": "views",
    "requests": "access-requests",
    "reviews": "access-reviews",
    "search-tabular": "search",
    "tag": "tag-definitions",
    "task-queue": "tasks",
    "warehouse-creation-validation": "warehouses",
    "whoami": "users",
}

#: First segments after the version that decide alone.
_ALONE: Final = frozenset({"config", "grants", "live-credentials", "search", "signer"})
_ROOTS: Final[Mapping[str, str]] = {"scim": "scim", "access": "authzen", ".well-known": "authzen"}


def tag_of(path: str) -> str:
    """Return the tag of a path; `system` for one that names no noun."""
    words = [each for each in path.split("/")[1:] if each and not each.startswith("{")]
    first = words[2] if len(words) > 2 else ""
    if words[0] in _ROOTS:
        return _ROOTS[words[0]]
    if first in _ALONE:
        return first
    named = (_NOUNS[each] for each in reversed(words) if each in _NOUNS)
    return next(named, first if first in TAGS else "system")


def described_tags(paths: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[dict[str, str]]:
    """Return the tags of a document with their descriptions, in the order of `TAGS`."""
    used = {tag for methods in paths.values() for operation in methods.values() for tag in operation["tags"]}
    return [{"name": name, "description": text} for name, text in TAGS.items() if name in used]
