# SPDX-License-Identifier: Apache-2.0
"""The privileges, and the right that granting each one needs."""

from __future__ import annotations

from enum import StrEnum

from gateway.access.nouns.relations import Can


class Privilege(StrEnum):
    """A relation that can be granted to users and roles directly."""

    ADMIN = "admin"
    OPERATOR = "operator"
    PROVISIONER = "provisioner"
    POLICY_READER = "policy_reader"
    PROJECT_ADMIN = "project_admin"
    SECURITY_ADMIN = "security_admin"
    DATA_ADMIN = "data_admin"
    ROLE_CREATOR = "role_creator"
    TAG_CREATOR = "tag_creator"
    DELEGATE = "delegate"
    ENFORCER = "enforcer"
    INSPECTOR = "inspector"
    OWNERSHIP = "ownership"
    PASS_GRANTS = "pass_grants"
    MANAGE_GRANTS = "manage_grants"
    MANAGE_STORAGE = "manage_storage"
    MANAGE_TAGS = "manage_tags"
    APPROVE_CHANGES = "approve_changes"
    DESCRIBE = "describe"
    SELECT = "select"
    CREATE = "create"
    MODIFY = "modify"
    ASSIGNEE = "assignee"
    SUBJECT = "subject"
    EXEMPT = "exempt"
    APPLY = "apply"
    REMOVE = "remove"


#: A live grant of one of these on an object makes the containers above it visible, by a derived `traverse` tuple. Every
#: privilege that makes its object visible is one: `manage_storage` shows the warehouse, so it shows the project too.
TRAVERSE_REASONS: frozenset[Privilege] = frozenset(
    {
        Privilege.DESCRIBE,
        Privilege.SELECT,
        Privilege.CREATE,
        Privilege.MODIFY,
        Privilege.OWNERSHIP,
        Privilege.MANAGE_STORAGE,
        Privilege.APPROVE_CHANGES,
    }
)


#: Privileges that are meant to bind the owners and grant managers of the object. Only principals that secure the
#: project grant them.
BINDING: frozenset[Privilege] = frozenset(
    {
        Privilege.DELEGATE,
        Privilege.ENFORCER,
        Privilege.INSPECTOR,
        Privilege.MANAGE_TAGS,
        Privilege.APPROVE_CHANGES,
    }
)


def granting(privilege: Privilege) -> Can:
    """Return the relation that a caller needs on an object to grant or revoke `privilege` there."""
    if privilege is Privilege.OWNERSHIP:
        return Can.CHANGE_OWNERSHIP
    return Can(f"can_grant_{privilege.value}")
