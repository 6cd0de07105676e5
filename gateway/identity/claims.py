# SPDX-License-Identifier: Apache-2.0
"""Derive the user, the actor, the groups and the claims for policies from the claims of a token. Pure.

The caller has already verified the signature, the issuer and the audience. Only `payload_of` reads a token before
verification.

Identifying claims (subject, groups, actor) are read strictly: an invalid character rejects the token, because two
spellings of one identity would be two identities. Descriptive claims (name, email, kind) are read leniently: an invalid
value is cleaned or left out. No decision depends on them.

Row filters may use further claims of a verified token, whose paths are in the settings of its provider. Such a claim is
kept completely or not at all: with a part of its values, a filter could show more rows. A claim that is not kept has no
value, and every test with it is false.
"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import structlog

from gateway.identity.errors import AuthenticationFailed

Claims = Mapping[str, Any]
UserKind = Literal["human", "application"]

MAX_SUBJECT_CHARACTERS = 127
#: Longest accepted token.
MAX_TOKEN_BYTES = 16_384
_MAX_TEXT_CHARACTERS = 255
_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.(?P<payload>[A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+", re.ASCII)
_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")

NOT_AN_IDENTITY = frozenset(
    {"email", "preferred_username", "upn", "unique_name", "username", "name", "nickname", "phone_number"}
)
"""Claims that users can change, or that a provider can reassign to another user (OpenID Connect Core section 5.7). They
never identify a user.
"""


def payload_of(token: str) -> bytes:
    """Return the decoded payload of a signed JWT without verifying it.

    Raises `AuthenticationFailed` if the token is too long or no JWT. Opaque tokens are rejected, because the gateway
    does not use token introspection.
    """
    if len(token) > MAX_TOKEN_BYTES:
        raise AuthenticationFailed(f"the token is longer than {MAX_TOKEN_BYTES} bytes")
    matched = _COMPACT.fullmatch(token)
    if matched is None:
        raise AuthenticationFailed(
            "the token is not a signed JWT of three base64url parts; opaque tokens are not supported, so configure "
            "the identity provider to issue JWT access tokens"
        )
    payload = matched["payload"]
    try:
        return base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
    except binascii.Error:
        raise AuthenticationFailed("the token cannot be decoded as a signed JWT") from None


def find(claims: Claims, path: str) -> Any:
    """Return the value at `path`, or None if it is absent.

    If a claim has exactly this name, its value is returned, because names may contain dots. Otherwise `a.b.c` is the
    path through nested objects.
    """
    if path in claims:
        return claims[path]
    value: Any = claims
    for step in path.split("."):
        if not isinstance(value, Mapping) or step not in value:
            return None
        value = value[step]
    return value


def subject_of(claims: Claims, subject_claims: Sequence[str]) -> str:
    """Return the value of the first claim of `subject_claims` that is present.

    Raises `AuthenticationFailed` if none is present, or if the first one is malformed. A malformed claim is not
    skipped: otherwise a user could switch to a second identity by making a claim invalid.
    """
    for claim in subject_claims:
        if claims.get(claim) is not None:
            return checked_subject(claims[claim], f"the claim '{claim}'")
    raise AuthenticationFailed(f"the token has no subject: none of the claims {', '.join(subject_claims)} is present")


def checked_subject(value: object, where: str) -> str:
    """Return `value` if it is a valid subject. `where` names its source in the error message.

    A subject is text of 1 to 127 characters without control, format or line separator characters, and without blanks at
    its ends. Raises `AuthenticationFailed` for any other value.
    """
    if not isinstance(value, str) or not 0 < len(value) <= MAX_SUBJECT_CHARACTERS:
        raise AuthenticationFailed(f"{where} must be text of 1 to {MAX_SUBJECT_CHARACTERS} characters")
    if value != value.strip() or has_invisible(value):
        raise AuthenticationFailed(
            f"{where} must not contain control characters, invisible characters or blanks at its ends"
        )
    return value


def has_invisible(text: str) -> bool:
    """Return True if the text contains a control, format or line separator character."""
    # `isprintable` is the fast path: printable text has no invisible character, and a token can have many groups.
    return not text.isprintable() and any(_is_invisible(character) for character in text)


def _is_invisible(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] == "C" or category in ("Zl", "Zp")


def actor_of(claims: Claims, issuer: str) -> str | None:
    """Return the subject of the actor in the `act` claim (RFC 8693 section 4.1), or None without this claim.

    An actor uses the token on behalf of its subject. Only the outermost actor is read: that section calls the nested
    ones informational. Raises `AuthenticationFailed` if the claim is malformed, or if the actor has another issuer,
    whose subjects may collide with those of `issuer`.
    """
    act = claims.get("act")
    if act is None:
        return None
    if not isinstance(act, Mapping):
        raise AuthenticationFailed("the claim 'act' must be an object")
    if act.get("iss", issuer) != issuer:
        raise AuthenticationFailed("the actor in the claim 'act' must have the same issuer as the token")
    return checked_subject(act.get("sub"), "the subject of the claim 'act'")


def may_act_of(claims: Claims, issuer: str) -> str | None:
    """Return the subject of the only party that may act for the token's subject (claim `may_act`, RFC 8693 section
    4.4).

    Returns None without a `may_act` claim: then the provider sets no limit. Returns "" if the claim is malformed or
    names a party of another issuer: then no party may act. A malformed claim does not reject the token, because the
    claim restricts only actors.
    """
    if "may_act" not in claims:
        return None
    allowed = claims["may_act"]
    if not isinstance(allowed, Mapping) or allowed.get("iss", issuer) != issuer:
        return ""
    subject = allowed.get("sub")
    return subject if isinstance(subject, str) else ""


def groups_of(claims: Claims, path: str | None) -> tuple[str, ...]:
    """Return the groups at the configured `path`, sorted, without duplicates, in their original letter case.

    Returns () if no path is configured or the claim is absent. A single string is one group. Blank groups are left out.

    Raises `AuthenticationFailed` if a group is not text or contains invisible characters. Raises it also if the
    provider omitted the groups because there are too many (`_claim_names`, `hasgroups`): policies that deny by group
    would not apply.
    """
    if path is None:
        return ()
    claim_names = claims.get("_claim_names")
    overage = isinstance(claim_names, Mapping) and (path in claim_names or path.split(".")[0] in claim_names)
    if overage or (claims.get("hasgroups") is True and path == "groups"):
        raise AuthenticationFailed(
            "the token has more groups than the identity provider can put into it; configure the provider to send "
            "fewer groups"
        )
    value = find(claims, path)
    if value is None:
        return ()
    groups = [value] if isinstance(value, str) else value
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        raise AuthenticationFailed(f"the claim '{path}' must be text or a list of text")
    if any(has_invisible(group) for group in groups):
        raise AuthenticationFailed(f"the claim '{path}' must not contain control or invisible characters")
    return tuple(sorted({group for group in groups if group.strip()}))


def has_groups(claims: Claims, path: str | None) -> bool:
    """Return True if the token has the claim with the user's groups, or if no path of such a claim is configured.

    Many providers send the claim only to clients that request a scope for it. A token without the claim may belong to a
    user in groups, so it does not prove that the user is in none.
    """
    return path is None or find(claims, path) is not None


def scopes_of(claims: Claims) -> frozenset[str]:
    """Return the granted scopes of the claims `scope` and `scp`.

    Each is text with scopes separated by blanks (RFC 8693 section 4.2), or a list of scopes.
    """
    scopes: set[str] = set()
    for claim in ("scope", "scp"):
        value = claims.get(claim)
        if isinstance(value, str):
            scopes.update(value.split(" "))
        elif isinstance(value, list):
            scopes.update(item for item in value if isinstance(item, str))
    return frozenset(scopes - {""})


def client_id_of(claims: Claims) -> str | None:
    """Return the client to which the token was issued, for the audit record and for policies. It does not identify a
    user.
    """
    return _first_text(claims, "azp", "client_id", "appid", "cid")


def display_name_of(claims: Claims, template: str | None) -> str | None:
    """Return the display name of the user, from the first source that has a value. None if no source has one.

    The sources in order: `name`, given and family name, `app_displayname`, `preferred_username`, and the configured
    `template`.
    """
    first, last = _first_text(claims, "given_name", "first_name"), _first_text(claims, "family_name", "last_name")
    whole = " ".join(part for part in (first, last) if part) or None
    named = _first_text(claims, "name") or whole or _first_text(claims, "app_displayname", "preferred_username")
    return named or _from_template(claims, template)


def _from_template(claims: Claims, template: str | None) -> str | None:
    """Return `template` with each `{claim.path}` replaced by its claim, or None if one of the claims is missing."""
    if template is None:
        return None
    found = {path: _text(find(claims, path)) for path in _PLACEHOLDER.findall(template)}
    if not all(found.values()):
        return None
    return _text(_PLACEHOLDER.sub(lambda match: found[match[1]] or "", template))


def email_of(claims: Claims) -> str | None:
    """Return the claim `email` if the claim `email_verified` is true, else None.

    Administrators search for users by address and grant privileges to the user that they find. With an unverified
    address, an attacker could receive a grant that was meant for another user. `upn` and `preferred_username` are not
    used, because providers do not verify them.
    """
    text = _first_text(claims, "email")
    verified = claims.get("email_verified") in (True, "true")
    return text if verified and text is not None and "@" in text else None


def kind_of(claims: Claims, subject: str) -> UserKind:
    """Guess if the subject of a token is a human or an application. No decision may depend on the result.

    Providers have no common claim for it. These tokens belong to an application: Entra's `idtyp: app`, Auth0's
    `gty: client-credentials`, Keycloak's `service-account-…` user, and tokens with the client as their subject. Any
    other token with a name, an email address or a user name belongs to a human. One without belongs to an application.
    """
    if claims.get("idtyp") == "app" or claims.get("gty") == "client-credentials":
        return "application"
    username = claims.get("preferred_username")
    if isinstance(username, str) and username.startswith("service-account-"):
        return "application"
    if subject in (claims.get(claim) for claim in ("azp", "client_id", "appid", "cid")):
        return "application"
    personal = ("given_name", "family_name", "first_name", "last_name", "name", "email", "upn", "preferred_username")
    return "human" if any(_first_text(claims, claim) for claim in personal) else "application"


def _first_text(claims: Claims, *names: str) -> str | None:
    return next((text for name in names if (text := _text(claims.get(name))) is not None), None)


def _text(value: object) -> str | None:
    """Return `value` as one line of at most 255 characters. Return None if no visible character remains.

    Invisible characters are removed, and consecutive blanks become one.
    """
    if not isinstance(value, str):
        return None
    visible = "".join(
        " " if character.isspace() else character
        for character in value[:4096]
        if character.isspace() or not _is_invisible(character)
    )
    return " ".join(visible.split())[:_MAX_TEXT_CHARACTERS].strip() or None


_log = structlog.get_logger("identity.policy_claims")

PolicyClaims = tuple[tuple[str, tuple[str, ...]], ...]
"""Pairs of (path, values), sorted. The values of a claim are sorted and distinct, and there is at least one."""

MAX_VALUES: Final = 100
MAX_VALUE_BYTES: Final = 256
_MOST_BITS: Final = 128
_LARGEST_EXACT: Final = 2**53
"""Numbers with a decimal point are doubles. Larger ones are not exact."""

SELF_ASSERTED: Final = NOT_AN_IDENTITY | {
    "address",
    "birthdate",
    "family_name",
    "first_name",
    "gender",
    "given_name",
    "last_name",
    "locale",
    "middle_name",
    "picture",
    "profile",
    "unsafe_metadata",
    "user_metadata",
    "website",
    "zoneinfo",
}
"""Claims that most providers let users change (OpenID Connect Core section 5.1), and the members of these claims.

Filters must not depend on them. `user_metadata` and `unsafe_metadata` are those of Auth0, Supabase and Clerk.
"""


class _Unusable(ValueError):
    """The value of a claim cannot be kept. The message gives the reason without the value."""


def policy_claims_of(claims: Claims, paths: Sequence[str], idp_id: str) -> PolicyClaims:
    """Return those claims at `paths` that have values. `idp_id` identifies the provider in log lines.

    A text is one value; so is a number or a boolean, as JSON writes it. A list of these has several values. Any other
    claim is left out, and so is one that exceeds the limits. The log line about it does not contain its value.
    """
    found: dict[str, tuple[str, ...]] = {}
    for path in paths:
        value = find(claims, path)
        if value is None:
            continue
        try:
            found[path] = _values(value)
        except _Unusable as reason:
            _log.warning("claim.omitted", provider=idp_id, claim=path, reason=str(reason))
    return tuple(sorted((path, values) for path, values in found.items() if values))


def _values(value: object) -> tuple[str, ...]:
    several = value if isinstance(value, list) else [value]
    if len(several) > MAX_VALUES:
        raise _Unusable(f"it has more than {MAX_VALUES} values")
    return tuple(sorted({_claim_text(each) for each in several}))


def _claim_text(value: object) -> str:
    """Return a single value of a claim as text. Raises _Unusable."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            text = _number(value)
        case str():
            text = value
        case _:
            raise _Unusable("a value is null, an object or a list")
    if not text or has_invisible(text):
        raise _Unusable("a value is empty or contains control or invisible characters")
    if len(text.encode()) > MAX_VALUE_BYTES:
        raise _Unusable(f"a value has more than {MAX_VALUE_BYTES} bytes")
    return text


def _number(value: float) -> str:
    """Return the shortest decimal text of a number. Equal numbers have equal texts, so 1.0 is "1". Raises _Unusable."""
    if isinstance(value, int) and value.bit_length() <= _MOST_BITS:
        return str(value)
    if not abs(value) <= _LARGEST_EXACT:
        raise _Unusable("a number is too large")
    if value.is_integer():
        return str(int(value))
    text = repr(value)
    if "e" in text:
        raise _Unusable("a number is too small")
    return text
