# SPDX-License-Identifier: Apache-2.0
"""Apply SCIM patches (RFC 7644, section 3.5.2), in the forms that Entra ID and Okta send.

Entra ID capitalises the names of operations and sends booleans as text. It addresses one email by
`emails[type eq "work"].value`. It also uses paths as keys of the value of an operation without a path. Okta replaces
several attributes by the value of an operation without a path.

Attributes that are not stored here, such as a title, a department or other schemas, are ignored. Providers send every
attribute that their configuration maps, and an error would stop their synchronisation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gateway.scim.errors import Immutable, InvalidPath, InvalidSyntax, InvalidValue, NoTarget, TooMany
from gateway.scim.filters import bare, is_core
from gateway.scim.reading import (
    MAX_EMAILS,
    MAX_MEMBERS,
    MAX_NAME,
    MAX_OPERATIONS,
    Email,
    Group,
    User,
    boolean,
    describing,
    emails_of,
    identifying,
    member_id,
    one_primary,
    read,
    refuse_group,
)
from gateway.scim.wire import EmailBody, OperationBody, PatchRequest

_ADD, _REPLACE, _REMOVE = "add", "replace", "remove"
_STRING = r'"(?:[^"\\]|\\.)*"'
_PATH: Final = re.compile(
    rf"(?P<attribute>[A-Za-z][A-Za-z0-9_$:.-]*)"
    rf"(?:\[\s*(?P<by>[A-Za-z][A-Za-z0-9_$.-]*)\s+eq\s+(?P<value>{_STRING}|true|false)\s*\](?:\.(?P<of>[A-Za-z][A-Za-z0-9_$-]*))?)?",
    re.IGNORECASE | re.DOTALL,
)


class _Path(msgspec.Struct, frozen=True):
    """A parsed path, `attribute[by eq "value"].of`, with names in lower case.

    `by` and `value` select entries of the attribute. `of` is the sub-attribute of the selected entries.
    """

    attribute: str
    by: str | None = None
    value: str | None = None
    of: str | None = None


class _Step(msgspec.Struct, frozen=True):
    """One change of one attribute, as a part of a patch operation."""

    op: str
    path: _Path
    value: Any


def patched_user(user: User, request: PatchRequest) -> User:
    """Return the user after all operations. If ScimError is raised, the caller must change nothing."""
    for step in _steps(request):
        user = _user_step(user, step)
    return user


def patched_group(request: PatchRequest) -> Group:
    """Return the changes that all operations make to a group. If ScimError is raised, the caller must change
    nothing.
    """
    group, entries = Group(), 0
    for step in _steps(request):
        if step.path.attribute.partition(".")[0] == "members":
            ids = _member_ids(step)
            entries += len(ids)
            if entries > MAX_MEMBERS:
                raise TooMany(
                    f"The request names more than {MAX_MEMBERS} members. Send the change in several requests."
                )
            group = _members_step(group, step, ids)
        else:
            group = _group_step(group, step)
    return group


def _steps(request: PatchRequest) -> Iterator[_Step]:
    """Yield one step for each attribute of each operation.

    The total number of steps is limited, because each takes time and needs only a few bytes of the request. Raises
    TooMany, InvalidSyntax, InvalidPath, InvalidValue and NoTarget.
    """
    if len(request.operations) > MAX_OPERATIONS:
        raise TooMany(
            f"The request has {len(request.operations)} operations; at most {MAX_OPERATIONS} are allowed. Send the "
            "change in several requests."
        )
    taken = 0
    for operation in request.operations:
        for step in _steps_of(operation):
            taken += 1
            if taken > MAX_OPERATIONS:
                raise TooMany(
                    f"The operations of one request may change at most {MAX_OPERATIONS} attributes. Send the change "
                    "in several requests."
                )
            yield step


def _steps_of(operation: OperationBody) -> Iterator[_Step]:
    op = operation.op.lower()
    if op not in (_ADD, _REPLACE, _REMOVE):
        raise InvalidSyntax("The `op` of an operation must be add, replace or remove.")
    if operation.path and not is_core(operation.path):
        yield _Step(op, _path(operation.path), operation.value)
    elif op == _REMOVE:
        raise NoTarget("An operation with `op` remove must have a `path`.")
    else:
        yield from _inside(op, operation.value)


def _inside(op: str, attributes: Any) -> Iterator[_Step]:
    if not isinstance(attributes, dict):
        raise InvalidValue("The `value` of an operation without a `path` must be an object.")
    for key, value in _bared(attributes):
        path = _path(key)
        if path.attribute == "name" and isinstance(value, dict):
            yield from (_Step(op, _Path(f"name.{part.lower()}"), inner) for part, inner in value.items())
        else:
            yield _Step(op, path, value)


def _bared(attributes: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield all attributes with their values. Attributes that are nested below the URN of a core schema are included.

    Attributes of extensions are nested in this way. If nested core attributes were ignored, a deactivation could be
    lost.
    """
    for key, value in attributes.items():
        yield from value.items() if is_core(key) and isinstance(value, dict) else ((key, value),)


def _path(text: str) -> _Path:
    matched = _PATH.fullmatch(bare(text.strip())) if len(text) <= 2048 else None
    if matched is None:
        raise InvalidPath(
            'A `path` must have the form `attribute`, `attribute.part` or `attribute[part eq "value"].part`.'
        )
    attribute, by, of = matched["attribute"].lower(), matched["by"], matched["of"]
    if by is None:
        return _Path(attribute)
    try:
        value = str(msgspec.json.decode(matched["value"]))
    except (msgspec.DecodeError, UnicodeError):
        raise InvalidPath("A value in the `path` is not a valid JSON string.") from None
    return _Path(attribute, by.lower(), value, None if of is None else of.lower())


# ---- users ---------------------------------------------------------------------------------------------------------

_PARTS: Final = {
    "displayname": "display_name",
    "name.formatted": "formatted",
    "name.givenname": "given_name",
    "name.familyname": "family_name",
}


#: Attributes without sub-attributes. A path into one is refused: if it were ignored, a removal would have no effect.
_PLAIN_OF_USERS: Final = frozenset({"username", "active", "externalid", "displayname"})
_PLAIN_OF_GROUPS: Final = frozenset({"displayname", "externalid"})


def _require_whole(path: _Path, plain: frozenset[str]) -> None:
    name = path.attribute.partition(".")[0]
    if name in plain and (path.by is not None or path.attribute != name):
        raise InvalidPath(f"The `path` names a part of {name}, which has no parts. Use the attribute alone.")


def _user_step(user: User, step: _Step) -> User:
    attribute = step.path.attribute
    _require_whole(step.path, _PLAIN_OF_USERS)
    if attribute == "emails":
        return replace(user, emails=_emails(user.emails, step))
    if step.path.by is not None:
        return user
    if attribute in _PARTS:
        value = None if step.op == _REMOVE else describing(_single(step.value), attribute)
        return replace(user, **{_PARTS[attribute]: value})
    if attribute == "name":
        return _name(user, step)
    if attribute == "externalid":
        return replace(user, external_id=_optional(step))
    if attribute not in ("username", "active"):
        return user
    if attribute == "active":
        if step.op == _REMOVE:
            raise InvalidValue("`active` cannot be removed. Set it to true or false.")
        return replace(user, active=boolean(_single(step.value), "active"))
    if step.op == _REMOVE:
        raise Immutable("`userName` is required and cannot be removed.")
    return replace(user, user_name=identifying(_single(step.value), "userName"))


def _name(user: User, step: _Step) -> User:
    if step.op == _REMOVE:
        return replace(user, formatted=None, given_name=None, family_name=None)
    if not isinstance(step.value, dict):
        raise InvalidValue("The value of `name` must be an object.")
    for part, value in step.value.items():
        user = _user_step(user, _Step(step.op, _Path(f"name.{part.lower()}"), value))
    return user


def _emails(emails: tuple[Email, ...], step: _Step) -> tuple[Email, ...]:
    path = step.path
    if path.by is None:
        if step.op == _REMOVE and step.value is None:
            return ()
        given = emails_of(_bodies(step.value))
        if step.op == _REPLACE:
            return given
        values = {each.value.lower() for each in given}
        kept = tuple(each for each in emails if each.value.lower() not in values)
        found = kept if step.op == _REMOVE else (*kept, *given)
    else:
        is_allowed = _chooser(path)
        chosen, others = (
            [each for each in emails if is_allowed(each)],
            [each for each in emails if not is_allowed(each)],
        )
        if step.op == _REMOVE:
            return tuple(others)
        found = (*others, *_changed(chosen, step))
    if len(found) > MAX_EMAILS:
        raise TooMany(f"A user can have at most {MAX_EMAILS} emails.")
    return one_primary(found)


def _changed(chosen: Sequence[Email], step: _Step) -> tuple[Email, ...]:
    """Return the selected emails with the new value. If none was selected, return a new email."""
    of = step.path.of or "value"
    type = step.path.value if step.path.by == "type" else None
    if of == "value":
        given = _single(step.value)
        if step.path.of is None and isinstance(given, dict):
            return emails_of(_bodies(given))
        value = describing(given, "emails.value")
        if value is None:
            return ()
        primary = any(each.primary for each in chosen)
        return (Email(value=value, type=type or (chosen[0].type if chosen else None), primary=primary),)
    if of == "primary":
        primary = boolean(_single(step.value), "emails.primary")
        return tuple(replace(each, primary=primary) for each in chosen)
    return tuple(chosen)


def _chooser(path: _Path) -> Callable[[Email], bool]:
    value = (path.value or "").lower()
    match path.by:
        case "type":
            return lambda each: (each.type or "").lower() == value
        case "value":
            return lambda each: each.value.lower() == value
        case "primary":
            return lambda each: each.primary == (value == "true")
        case _:
            raise InvalidPath("A `path` can select emails only by `type`, `value` or `primary`.")


def _bodies(value: Any) -> Sequence[EmailBody]:
    listed = value if isinstance(value, list) else [value]
    return read(msgspec.json.encode(listed), list[EmailBody])


# ---- groups --------------------------------------------------------------------------------------------------------


def _group_step(group: Group, step: _Step) -> Group:
    _require_whole(step.path, _PLAIN_OF_GROUPS)
    if step.path.attribute == "displayname":
        if step.op == _REMOVE:
            raise Immutable("`displayName` is required and cannot be removed.")
        return replace(group, display_name=identifying(_single(step.value), "displayName", longest=MAX_NAME))
    if step.path.attribute == "externalid":
        return replace(group, external_id=_optional(step))
    return group


def _member_ids(step: _Step) -> frozenset[str]:
    """Return the ids of the members that a step contains. An empty set means that it addresses all members."""
    path = step.path
    if path.attribute != "members" or path.of is not None or (path.by is not None and path.by != "value"):
        raise InvalidPath(
            'The `path` for members must be `members`, or `members[value eq "<id>"]` to remove one member.'
        )
    if path.by is not None:
        if step.op != _REMOVE or path.value is None:
            raise InvalidPath(
                'The `path` `members[value eq "<id>"]` is only valid with `op` remove. To add members, give them '
                "as the `value` of `members`."
            )
        return frozenset({member_id(path.value)})
    if step.value is None:
        return frozenset()
    listed = step.value if isinstance(step.value, list) else [step.value]
    return frozenset(_member_id(each) for each in listed)


def _member_id(entry: Any) -> str:
    if isinstance(entry, dict):
        by_name = {key.lower(): value for key, value in entry.items()}
        refuse_group(by_name.get("type"))
        entry = by_name.get("value")
    if not isinstance(entry, str):
        raise InvalidValue("The `value` of a member must be the id of a user.")
    return member_id(entry)


def _members_step(group: Group, step: _Step, ids: frozenset[str]) -> Group:
    if step.op == _REMOVE:
        if step.path.by is None and step.value is None:
            return replace(group, only=frozenset(), add=frozenset(), remove=frozenset())
        return replace(group, add=group.add - ids, remove=group.remove | ids)
    if step.value is None:
        raise InvalidValue("The operation has no `value`; it must list the members.")
    if step.op == _REPLACE:
        return replace(group, only=ids, add=frozenset(), remove=frozenset())
    return replace(group, add=group.add | ids, remove=group.remove - ids)


def _optional(step: _Step) -> str | None:
    value = None if step.op == _REMOVE else _single(step.value)
    return None if value is None or value == "" else identifying(value, "externalId")


def _single(value: Any) -> Any:
    """Return a single value. Accept it in a list with one object too, as Entra ID sends it."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and "value" in value[0]:
        return value[0]["value"]
    return value
