# SPDX-License-Identifier: Apache-2.0
"""Parse request bodies of SCIM, with limits on their size.

The letter case of attribute names is ignored (RFC 7643, section 2.1). Attribute values are validated too: identifying
text is checked strictly, and descriptive text is cleaned.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec
from msgspec.structs import replace

from gateway.iceberg.limits import count_values
from gateway.scim.errors import InvalidSyntax, InvalidValue, TooMany
from gateway.scim.wire import EmailBody, GroupRequest, UserRequest
from lakegate.value_messages import in_words

MAX_TEXT: Final = 512
#: Maximum length of a group name in characters, as in directory services.
MAX_NAME: Final = 256
_BOOLEANS: Final = {"true": True, "false": False}


def identifying(value: object, attribute: str, *, longest: int = MAX_TEXT) -> str:
    """Return the text if it is suitable to identify a user or group.

    Raises InvalidValue if it is empty or too long, has blanks at its ends, or contains control, format, line separator
    or paragraph separator characters. With these, two names could look the same.
    """
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        raise InvalidValue(f"{attribute} must be text of 1 to {longest} characters.")
    if value != value.strip() or any(_is_invisible(each) for each in value):
        raise InvalidValue(f"{attribute} must not have blanks at its ends, nor control or invisible characters.")
    return value


def describing(value: object, attribute: str) -> str | None:
    """Return text for display, cleaned and cut to a maximum length. Return None if nothing remains. Raises InvalidValue
    for another type.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidValue(f"{attribute} must be text.")
    shown = "".join(" " if each.isspace() else each for each in value[:4096] if each.isspace() or not _is_bad(each))
    return " ".join(shown.split())[:MAX_TEXT].strip() or None


def boolean(value: Any, attribute: str) -> bool:
    """Return a boolean. Accept the texts of booleans too, which Entra ID sends. Raises InvalidValue."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _BOOLEANS:
        return _BOOLEANS[value.lower()]
    raise InvalidValue(f"{attribute} must be true or false.")


def _is_bad(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs", "Co", "Cn")


def _is_invisible(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] == "C" or category in ("Zl", "Zp")


MAX_BYTES: Final = 2 * 1024 * 1024
#: Maximum number of JSON values in one body.
MAX_VALUES: Final = 60_000
#: Maximum number of members that one request adds or removes.
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
    """One email address of a user, for display."""

    value: str
    type: str | None = None
    primary: bool = False


class Described(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Descriptive attributes of a user, stored for display and for responses to the provider."""

    display_name: str | None = None
    formatted: str | None = None
    given_name: str | None = None
    family_name: str | None = None
    emails: tuple[Email, ...] = ()


class User(Described, frozen=True, kw_only=True):
    """A user as its provider describes it."""

    user_name: str
    external_id: str | None = None
    active: bool | None = True
    """None if a complete body omits it: a new user is then active, an existing user keeps its state."""

    @property
    def shown(self) -> str:
        """Return the name for display: the display name, else the full name, else the user name."""
        whole = " ".join(part for part in (self.given_name, self.family_name) if part)
        return self.display_name or self.formatted or whole or self.user_name

    @property
    def address(self) -> str | None:
        """Return the email for display: the primary one, else the one of type `work`, else the first. None if there is
        no email.
        """
        best = sorted(self.emails, key=lambda each: (not each.primary, each.type != "work"))
        return best[0].value if best else None


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of a group.

    `only`: all members of the group before `add` and `remove` apply; None keeps the current members. `add` and
    `remove` are disjoint. Members are ids of SCIM users in the spelling of `member_id`.
    """

    display_name: str | None = None
    """None keeps the name."""
    external_id: str | msgspec.UnsetType | None = msgspec.UNSET
    only: frozenset[str] | None = None
    add: frozenset[str] = frozenset()
    remove: frozenset[str] = frozenset()

    @property
    def joining(self) -> frozenset[str]:
        """Return the ids of all users that the change makes members."""
        return (self.only or frozenset()) - self.remove | self.add


def read(raw: bytes, kind: type[Body]) -> Body:
    """Parse a JSON body into an object of type `kind`. Raises TooMany and InvalidSyntax."""
    if len(raw) > MAX_BYTES:
        raise TooMany(f"The request body must have at most {MAX_BYTES} bytes. Send the change in several requests.")
    if count_values(raw) > MAX_VALUES:
        raise TooMany(f"The request body must have at most {MAX_VALUES} values. Send the change in several requests.")
    try:
        return msgspec.convert(_spelled(msgspec.json.decode(raw), 0), kind)
    except msgspec.ValidationError as wrong:
        raise InvalidSyntax(f"Malformed request: {in_words(wrong, kind)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InvalidSyntax("Malformed request: the body is not valid JSON.") from None
    except RecursionError:
        raise InvalidSyntax("Malformed request: the body is nested too deeply.") from None


def user_of(request: UserRequest) -> User:
    """Return the user that a complete body describes. Raises InvalidValue and TooMany."""
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
    """Return the group that a complete body describes, by default without members. Raises InvalidValue and TooMany."""
    members = request.members or ()
    if len(members) > MAX_MEMBERS:
        raise TooMany(
            f"The request has {len(members)} members; at most {MAX_MEMBERS} are allowed. Send the change in several "
            "requests."
        )
    for member in members:
        refuse_group(member.type)
    return Group(
        display_name=identifying(request.display_name, "displayName", longest=MAX_NAME),
        external_id=_external_id(request.external_id),
        only=frozenset(member_id(member.value) for member in members),
    )


def emails_of(bodies: Sequence[EmailBody]) -> tuple[Email, ...]:
    """Return the emails that have a value, without duplicates. Raises InvalidValue and TooMany."""
    if len(bodies) > MAX_EMAILS:
        raise TooMany(f"The request has {len(bodies)} emails; a user can have at most {MAX_EMAILS}.")
    found: dict[tuple[str, str | None], Email] = {}
    for body in bodies:
        value, type = describing(body.value, "emails.value"), describing(body.type, "emails.type")
        if value is not None:
            primary = body.primary is not None and boolean(body.primary, "emails.primary")
            found[value.lower(), type] = Email(value=value, type=type, primary=primary)
    return one_primary(found.values())


def one_primary(emails: Iterable[Email]) -> tuple[Email, ...]:
    """Return the emails. If several are marked as primary, only the last one stays so.

    At most one email is primary (RFC 7643, section 2.4). A new primary email replaces the earlier one (RFC 7644,
    section 3.5.2).
    """
    values, there = [], False
    for each in reversed(tuple(emails)):
        values.append(replace(each, primary=False) if there and each.primary else each)
        there = there or each.primary
    return tuple(reversed(values))


def member_id(text: str) -> str:
    """Return a member id in its canonical spelling: a UUID in lower case with hyphens. Other text is not changed.

    Ids are compared as text. A member that is added as `A…` must be removable as `a…`.
    """
    try:
        return str(UUID(text))
    except ValueError:
        return text


def refuse_group(type: object) -> None:
    """Raise InvalidValue for a member that is a group.

    Providers send no such members. Administrators assign roles to roles through the management API.
    """
    if isinstance(type, str) and type.lower() == "group":
        raise InvalidValue("A member must be a user. Groups as members of groups are not supported.")


def _external_id(value: object) -> str | None:
    return None if value is None else identifying(value, "externalId")


def _spelled(value: Any, depth: int) -> Any:
    """Return the value with attribute names spelled as in RFC 7643.

    Names deep in the values of a patch are not changed, because patches ignore the letter case of names. Raises
    InvalidSyntax if an object contains an attribute twice.
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
            raise InvalidSyntax(f"Malformed request: the attribute {name} is given twice.")
        found[name] = _spelled(inner, depth + 1)
    return found
