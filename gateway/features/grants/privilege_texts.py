# SPDX-License-Identifier: Apache-2.0
"""Display texts of privileges for administrators: name, description and category."""

from __future__ import annotations

from gateway.access.nouns.cards import CARDS
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectType
from gateway.access.operations.grants import PrivilegeInfo

#: (display name, description, category). The categories are metadata, read, write, create, security and administration.
_TEXTS: dict[Privilege, tuple[str, str, str]] = {
    Privilege.ADMIN: (
        "Admin",
        "Administers the server and grants rights on projects; no access to data.",
        "administration",
    ),
    Privilege.OPERATOR: ("Operator", "Administers every project of the server.", "administration"),
    Privilege.PROVISIONER: (
        "Provisioner",
        "Creates and changes the users and synchronised roles of one identity provider (SCIM); no other right.",
        "administration",
    ),
    Privilege.POLICY_READER: (
        "Policy reader",
        "Reads the policies and policy data of the server as bundles for OPA; no other right.",
        "administration",
    ),
    Privilege.PROJECT_ADMIN: ("Project admin", "All rights in the project.", "administration"),
    Privilege.SECURITY_ADMIN: (
        "Security admin",
        "Grants rights and manages roles in the project; no access to data.",
        "security",
    ),
    Privilege.DATA_ADMIN: (
        "Data admin",
        "Reads and changes all data of the project; cannot grant rights.",
        "administration",
    ),
    Privilege.ROLE_CREATOR: ("Role creator", "Creates roles in the project.", "create"),
    Privilege.TAG_CREATOR: ("Tag creator", "Creates tags in the project.", "create"),
    Privilege.DELEGATE: (
        "Delegate",
        "For engines: checks the rights of any user here and acts with them; gives no right of its own.",
        "security",
    ),
    Privilege.ENFORCER: (
        "Enforcer",
        "For engines: trusted to hide columns that its user may not read; gives no right of its own.",
        "security",
    ),
    Privilege.INSPECTOR: ("Inspector", "Checks the rights of any user here, and cannot act for them.", "security"),
    Privilege.OWNERSHIP: (
        "Owner",
        "Reads and changes this object and the objects below it, and grants these rights.",
        "administration",
    ),
    Privilege.PASS_GRANTS: ("Pass grants", "Grants rights that the holder has, on this object only.", "security"),
    Privilege.MANAGE_GRANTS: (
        "Manage grants",
        "Grants rights on this object and the objects below it, but none that is meant to bind their owners.",
        "security",
    ),
    Privilege.MANAGE_STORAGE: (
        "Manage storage",
        "Changes the storage profile, the endpoints and the credential of this warehouse.",
        "administration",
    ),
    Privilege.MANAGE_TAGS: ("Manage tags", "Attaches tags to this object and the objects below it.", "metadata"),
    Privilege.APPROVE_CHANGES: (
        "Approve changes",
        "Approves or rejects changes of this object and the objects below it, and reads their metadata, but no data.",
        "administration",
    ),
    Privilege.DESCRIBE: (
        "Describe",
        "Reads the metadata of this object and the objects below it, but no data.",
        "metadata",
    ),
    Privilege.SELECT: ("Select", "Reads the data of this object and the objects below it.", "read"),
    Privilege.CREATE: ("Create", "Creates objects in this object and below it, and owns them.", "create"),
    Privilege.MODIFY: (
        "Modify",
        "Reads and writes data, renames and drops, on this object and the objects below it.",
        "write",
    ),
    Privilege.APPLY: ("Apply", "Attaches this tag to objects.", "metadata"),
    Privilege.REMOVE: ("Remove", "Detaches this tag from objects, and changes its value there.", "security"),
    Privilege.ASSIGNEE: ("Member", "Has all rights that are granted to the role.", "security"),
    Privilege.SUBJECT: (
        "Subject",
        "Is restricted by the data policy, if it applies to subjects; gives no right.",
        "security",
    ),
    Privilege.EXEMPT: ("Exempt", "Is never restricted by the data policy; gives no other right.", "security"),
}


def type_name(type: ObjectType) -> str:
    """Return the object type as request and response bodies spell it, for example `generic-table`."""
    return CARDS[type].in_bodies


def privilege_answer(privilege: Privilege, type: ObjectType) -> PrivilegeInfo:
    """Return the privilege on this object type in wire form."""
    name, description, category = _TEXTS[privilege]
    return PrivilegeInfo(
        name=privilege.value,
        display_name=name,
        description=description,
        category=category,
        resource_type=type_name(type),
    )
