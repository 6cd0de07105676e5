# SPDX-License-Identifier: Apache-2.0
"""Display texts of privileges for administrators: name, description and category."""

from __future__ import annotations

from gateway.access.privileges import Privilege
from gateway.access.refs import ObjectType
from gateway.protocol.grants import PrivilegeInfo

#: (display name, description, category). The categories are metadata, read, write, create, security and administration.
_TEXTS: dict[Privilege, tuple[str, str, str]] = {
    Privilege.ADMIN: ("Admin", "Runs the server and hands out projects; no right on data.", "administration"),
    Privilege.OPERATOR: ("Operator", "Administers every project.", "administration"),
    Privilege.PROVISIONER: (
        "Provisioner",
        "Keeps users and synchronised roles as one identity provider says; no right on anything else.",
        "administration",
    ),
    Privilege.PROJECT_ADMIN: ("Project admin", "Everything in the project.", "administration"),
    Privilege.SECURITY_ADMIN: ("Security admin", "Hands out rights and manages roles; no right on data.", "security"),
    Privilege.DATA_ADMIN: ("Data admin", "All data of the project; hands out nothing.", "administration"),
    Privilege.ROLE_CREATOR: ("Role creator", "Creates roles in the project.", "create"),
    Privilege.TAG_CREATOR: ("Tag creator", "Creates tags in the project.", "create"),
    Privilege.DELEGATE: (
        "Delegate",
        "Asks and acts here in the name of any user, with that user's rights; none of its own.",
        "security",
    ),
    Privilege.ENFORCER: (
        "Enforcer",
        "Is trusted to hold back of a table what the user it acts for may not read; no right of its own.",
        "security",
    ),
    Privilege.INSPECTOR: ("Inspector", "Is told what any user may do here, and cannot act as them.", "security"),
    Privilege.OWNERSHIP: ("Owner", "Everything on this and below, and hands out rights on it.", "administration"),
    Privilege.PASS_GRANTS: ("Pass on", "Passes on the rights one holds, on this object only.", "security"),
    Privilege.MANAGE_GRANTS: ("Manage grants", "Hands out every right on this and below.", "security"),
    Privilege.MANAGE_STORAGE: (
        "Manage storage",
        "Changes the storage profile, the endpoints and the credential of this warehouse.",
        "administration",
    ),
    Privilege.MANAGE_TAGS: ("Manage tags", "Attaches tags to this and to what lies below.", "metadata"),
    Privilege.DESCRIBE: ("Describe", "Sees this and what lies below, without its data.", "metadata"),
    Privilege.SELECT: ("Select", "Reads the data of this and of what lies below.", "read"),
    Privilege.CREATE: ("Create", "Creates things in this and below, and owns them.", "create"),
    Privilege.MODIFY: ("Modify", "Reads and writes data, renames and drops, here and below.", "write"),
    Privilege.ASSIGNEE: ("Member", "Has whatever the role is given.", "security"),
}


def type_name(type: ObjectType) -> str:
    """Return the object type as request and response bodies spell it, for example `generic-table`."""
    return type.value.replace("_", "-")


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
