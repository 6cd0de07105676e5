# SPDX-License-Identifier: Apache-2.0
"""The privileges, and for each the right that is needed to grant it."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from gateway.access.nouns.relations import Can


class Privilege(StrEnum):
    """A relation that can be granted to users and roles directly, with its texts for administrators.

    The categories are metadata, read, write, create, security and administration.
    """

    _value_: str
    display_name: str
    description: str
    category: str

    def __new__(cls, name: str, display_name: str = "", description: str = "", category: str = "") -> Self:
        """Return a privilege with its texts."""
        # Without the defaults, type checkers refuse `Privilege(name)`.
        privilege = str.__new__(cls, name)
        privilege._value_ = name
        privilege.display_name, privilege.description, privilege.category = display_name, description, category
        return privilege

    ADMIN = (
        "admin",
        "Admin",
        "Administers the server and grants rights on projects; no access to data.",
        "administration",
    )
    OPERATOR = "operator", "Operator", "Administers every project of the server.", "administration"
    PROVISIONER = (
        "provisioner",
        "Provisioner",
        "Creates and changes the users and synchronised roles of one identity provider (SCIM); no other right.",
        "administration",
    )
    POLICY_READER = (
        "policy_reader",
        "Policy reader",
        "Reads the policies and policy data of the server as bundles for OPA; no other right.",
        "administration",
    )
    AUDITOR = (
        "auditor",
        "Auditor",
        "Reads grants, their history, approvals, live credentials and data policies here and below; no data.",
        "security",
    )
    PROJECT_ADMIN = "project_admin", "Project admin", "All rights in the project.", "administration"
    SECURITY_ADMIN = (
        "security_admin",
        "Security admin",
        "Grants rights and manages roles in the project; no access to data.",
        "security",
    )
    DATA_ADMIN = (
        "data_admin",
        "Data admin",
        "Reads and changes all data of the project; cannot grant rights.",
        "administration",
    )
    ROLE_CREATOR = "role_creator", "Role creator", "Creates roles in the project.", "create"
    TAG_CREATOR = "tag_creator", "Tag creator", "Creates tags in the project.", "create"
    DELEGATE = (
        "delegate",
        "Delegate",
        "For engines: checks the rights of any user here and acts with them; gives no right of its own.",
        "security",
    )
    ENFORCER = (
        "enforcer",
        "Enforcer",
        "For engines: trusted to hide columns that its user may not read; gives no right of its own.",
        "security",
    )
    INSPECTOR = "inspector", "Inspector", "Checks the rights of any user here, and cannot act for them.", "security"
    OWNERSHIP = (
        "ownership",
        "Owner",
        "Reads and changes this object and the objects below it, and grants these rights.",
        "administration",
    )
    PASS_GRANTS = "pass_grants", "Pass grants", "Grants rights that the holder has, on this object only.", "security"
    MANAGE_GRANTS = (
        "manage_grants",
        "Manage grants",
        "Grants rights on this object and the objects below it, but none that is meant to bind their owners.",
        "security",
    )
    MANAGE_STORAGE = (
        "manage_storage",
        "Manage storage",
        "Changes the storage profile, the endpoints and the credential of this warehouse.",
        "administration",
    )
    MANAGE_TAGS = "manage_tags", "Manage tags", "Attaches tags to this object and the objects below it.", "metadata"
    APPROVE_CHANGES = (
        "approve_changes",
        "Approve changes",
        "Approves or rejects changes of this object and the objects below it, and reads their metadata, but no data.",
        "administration",
    )
    BREAK_GLASS = (
        "break_glass",
        "Break glass",
        "Takes rights here and below in an emergency, for at most an hour and with a review; no right by itself.",
        "security",
    )
    REQUESTER = (
        "requester",
        "Requester",
        "Requests access to this object and the objects below it, or to objects with this tag, also to invisible ones.",
        "metadata",
    )
    DESCRIBE = (
        "describe",
        "Describe",
        "Reads the metadata of this object and the objects below it, but no data.",
        "metadata",
    )
    SELECT = "select", "Select", "Reads the data of this object and the objects below it.", "read"
    CREATE = "create", "Create", "Creates objects in this object and below it, and owns them.", "create"
    MODIFY = (
        "modify",
        "Modify",
        "Reads and writes data, renames and drops, on this object and the objects below it.",
        "write",
    )
    ASSIGNEE = "assignee", "Member", "Has all rights that are granted to the role.", "security"
    SUBJECT = (
        "subject",
        "Subject",
        "Is restricted by the data policy, if it applies to subjects; gives no right.",
        "security",
    )
    EXEMPT = "exempt", "Exempt", "Is never restricted by the data policy; gives no other right.", "security"
    APPLY = "apply", "Apply", "Attaches this tag to objects.", "metadata"
    REMOVE = "remove", "Remove", "Detaches this tag from objects, and changes its value there.", "security"


#: A live grant of one of these on an object makes the containers above it visible, by a derived `traverse` tuple. Every
#: privilege that makes its object visible is in this set: `manage_storage` and `auditor` show the warehouse, so they
#: show the project too.
TRAVERSE_REASONS: frozenset[Privilege] = frozenset(
    {
        Privilege.DESCRIBE,
        Privilege.SELECT,
        Privilege.CREATE,
        Privilege.MODIFY,
        Privilege.OWNERSHIP,
        Privilege.MANAGE_STORAGE,
        Privilege.APPROVE_CHANGES,
        Privilege.AUDITOR,
    }
)

#: Privileges that restrict or observe even the owners and grant managers of the object. So only principals that may
#: secure the project can grant them.
BINDING: frozenset[Privilege] = frozenset(
    {
        Privilege.DELEGATE,
        Privilege.ENFORCER,
        Privilege.INSPECTOR,
        Privilege.MANAGE_TAGS,
        Privilege.APPROVE_CHANGES,
        Privilege.AUDITOR,
        Privilege.BREAK_GLASS,
    }
)


def granting(privilege: Privilege) -> Can:
    """Return the relation that a caller needs on an object to grant or revoke `privilege` on it."""
    if privilege is Privilege.OWNERSHIP:
        return Can.CHANGE_OWNERSHIP
    return Can(f"can_grant_{privilege.value}")
