# SPDX-License-Identifier: Apache-2.0
"""Request bodies as values: names of attributes in any letter case (RFC 7643 section 2.1), everything bounded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec
from msgspec.structs import replace

from gateway.iceberg.limits import count_values
from gateway.scim.errors import InvalidSyntax, InvalidValue, TooMany
from gateway.scim.texts import MAX_NAME, boolean, describing, identifying
from gateway.scim.wire import EmailBody, GroupRequest, UserRequest

MAX_BYTES: Final = 2 * 1024 * 1024
#: Most values in one body, however short they are.
MAX_VALUES: Final = 60_000
#: Most members that one request adds or removes.
MAX_MEMBERS: Final = 5_000
MAX_OPERATIONS: Final = 1_000
MAX_EMAILS: Final = 20

Body = TypeVar("Body")

_SPELLED: Final[dict[str, str]] = {
    name.lower(): name
    for name in (
        *("schemas", "userName", "externalId", "active", "displayName", "name", "emails", "members", "Operations"),
        *("formatted", "givenName", "familyName", "value", "type", "primary", "display", "op", "path"),
    )
}


class Email(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One address, to show."""

    value: str
    type: str | None = None
    primary: bool = False


class Described(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of a user only to be told again."""

    display_name: str | None = None
    formatted: str | None = None
    given_name: str | None = None
    family_name: str | None = None
    emails: tuple[Email, ...] = ()


class User(Described, frozen=True, kw_only=True):
    """A user as its provider tells it."""

    user_name: str
    external_id: str | None = None
    active: bool | None = True
    """None where a whole body does not say: a new user is active then, one who is there stays as they are."""

    @property
    def shown(self) -> str:
        """What the user is called here."""
        whole = " ".join(part for part in (self.given_name, self.family_name) if part)
        return self.display_name or self.formatted or whole or self.user_name

    @property
    def address(self) -> str | None:
        """The address to show: the primary one, else the one at work, else the first."""
        best = sorted(self.emails, key=lambda each: (not each.primary, each.type != "work"))
        return best[0].value if best else None


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """What is to become of a group. `only` are all members it is to have before `add` and `remove`, None leaves those
    it has; `add` and `remove` have nothing in common. Ids are those of SCIM users, as they were sent.
    """

    display_name: str | None = None
    """None leaves the name."""
    external_id: str | msgspec.UnsetType | None = msgspec.UNSET
    only: frozenset[str] | None = None
    add: frozenset[str] = frozenset()
    remove: frozenset[str] = frozenset()

    @property
    def joining(self) -> frozenset[str]:
        """Everybody it names as a member."""
        return (self.only or frozenset()) - self.remove | self.add


def read(raw: bytes, kind: type[Body]) -> Body:
    """The body. Raises TooMany and InvalidSyntax."""
    if len(raw) > MAX_BYTES:
        raise TooMany(f"The request is longer than {MAX_BYTES} bytes.")
    if count_values(raw) > MAX_VALUES:
        raise TooMany(f"The request holds more than {MAX_VALUES} values; send the change in several requests.")
    try:
        return msgspec.convert(_spelled(msgspec.json.decode(raw), 0), kind)
    except msgspec.ValidationError as wrong:
        raise InvalidSyntax(f"Malformed request: {wrong}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InvalidSyntax("Malformed request: the body is not valid JSON.") from None
    except RecursionError:
        raise InvalidSyntax("Malformed request: the body is nested too deeply.") from None


def user_of(request: UserRequest) -> User:
    """The user that a whole body tells. Raises InvalidValue."""
    name = request.name
    return User(
        user_name=identifying(request.user_name, "userName"),
        external_id=_external_id(request.external_id),
        active=None if request.active is None else boolean(request.active, "active"),
        display_name=describing(request.display_name, "displayName"),
        formatted=None if name is None else describing(name.formatted, "name.formatted"),
        given_name=None if name is None else describing(name.given_name, "name.givenName"),
        family_name=None if name is None else describing(name.family_name, "name.familyName"),
        emails=emails_of(request.emails or ()),
    )


def group_of(request: GroupRequest) -> Group:
    """The group that a whole body tells; one without members has none. Raises InvalidValue and TooMany."""
    members = request.members or ()
    if len(members) > MAX_MEMBERS:
        raise TooMany(f"{len(members)} members; one request may hold {MAX_MEMBERS}.")
    for member in members:
        refuse_group(member.type)
    return Group(
        display_name=identifying(request.display_name, "displayName", longest=MAX_NAME),
        external_id=_external_id(request.external_id),
        only=frozenset(member_id(member.value) for member in members),
    )


def emails_of(bodies: Sequence[EmailBody]) -> tuple[Email, ...]:
    """Addresses, each once; those without a value are left out. Raises InvalidValue and TooMany."""
    if len(bodies) > MAX_EMAILS:
        raise TooMany(f"{len(bodies)} emails; a user may have {MAX_EMAILS}.")
    found: dict[tuple[str, str | None], Email] = {}
    for body in bodies:
        value, type = describing(body.value, "emails.value"), describing(body.type, "emails.type")
        if value is not None:
            primary = body.primary is not None and boolean(body.primary, "emails.primary")
            found[value.lower(), type] = Email(value=value, type=type, primary=primary)
    return one_primary(found.values())


def one_primary(emails: Iterable[Email]) -> tuple[Email, ...]:
    """The addresses, of which the last one that says so is the primary one: there is at most one (RFC 7643 section
    2.4), and who sets another takes it from the one before (RFC 7644 section 3.5.2).
    """
    told, there = [], False
    for each in reversed(tuple(emails)):
        told.append(replace(each, primary=False) if there and each.primary else each)
        there = there or each.primary
    return tuple(reversed(told))


def member_id(text: str) -> str:
    """The id of a member in the one spelling by which it is compared: whoever is added as `A…` and removed as `a…` is
    one user, and removed. What is no id of ours stays as it was sent.
    """
    try:
        return str(UUID(text))
    except ValueError:
        return text


def refuse_group(type: object) -> None:
    """Raise InvalidValue for a member that is a group: no provider sends one, and roles in roles are made by hand."""
    if isinstance(type, str) and type.lower() == "group":
        raise InvalidValue("Members are users; groups in groups are not supported.")


def _external_id(value: object) -> str | None:
    return None if value is None else identifying(value, "externalId")


def _spelled(value: Any, depth: int) -> Any:
    """The value with the names of attributes spelled as RFC 7643 does. Below the values of a patch they stay, since
    its paths are read in any letter case as well. Raises InvalidSyntax for one attribute that stands there twice.
    """
    if depth > 4:
        return value
    if isinstance(value, list):
        return [_spelled(each, depth + 1) for each in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for key, inner in value.items():
        name = _SPELLED.get(str(key).lower(), str(key))
        if name in found:
            raise InvalidSyntax(f"Malformed request: {name} stands there twice.")
        found[name] = _spelled(inner, depth + 1)
    return found
