# SPDX-License-Identifier: Apache-2.0
"""PURE: reads a person or a program out of the claims of a token whose signature, issuer and audience were already
found good.

Two kinds of rules live here. What identifies (subject, groups, actor) is strict: one odd character refuses the
token, because two spellings of one identity are two identities. What only describes (name, email, kind) is lenient:
an odd value is cleaned or left out, and decides nothing.
"""

import base64
import binascii
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from gateway.identity.errors import AuthenticationFailed

Claims = Mapping[str, Any]
UserKind = Literal["human", "application"]

MAX_SUBJECT_CHARACTERS = 127
#: Longest token that is looked at.
MAX_TOKEN_BYTES = 16_384
_MAX_TEXT_CHARACTERS = 255
_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.(?P<payload>[A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+", re.ASCII)
_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")

NOT_AN_IDENTITY = frozenset(
    {"email", "preferred_username", "upn", "unique_name", "username", "name", "nickname", "phone_number"}
)
"""Claims that a person may change or that are given to the next person (OpenID Connect Core 5.7): never a user's id."""


def payload_of(token: str) -> bytes:
    """The middle part of a signed JWT, unverified. Raises `AuthenticationFailed`.

    Opaque tokens are refused here: nobody is asked about them.
    """
    if len(token) > MAX_TOKEN_BYTES:
        raise AuthenticationFailed(f"the token is longer than {MAX_TOKEN_BYTES} bytes")
    matched = _COMPACT.fullmatch(token)
    if matched is None:
        raise AuthenticationFailed(
            "the token is not a signed JWT of three base64url parts; opaque tokens are looked up nowhere: ask the "
            "provider for access tokens that are JWTs"
        )
    payload = matched["payload"]
    try:
        return base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
    except binascii.Error:
        raise AuthenticationFailed("the token is not a signed JWT that can be decoded") from None


def find(claims: Claims, path: str) -> Any:
    """Value at `path`: a claim of exactly that name (they may contain dots), else `a.b.c` walked through objects;
    None when absent.
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
    """The first of `subject_claims` that is present. A present one that is malformed refuses the token and is never
    skipped, else a user could choose between two identities by breaking a claim. Raises `AuthenticationFailed`.
    """
    for claim in subject_claims:
        if claims.get(claim) is not None:
            return checked_subject(claims[claim], f"the claim '{claim}'")
    raise AuthenticationFailed(f"the token names no subject: none of the claims {', '.join(subject_claims)} is present")


def checked_subject(value: object, where: str) -> str:
    """`value` if it may be a subject: text of 1 to 127 characters, no control, format or separator characters, no
    blank at either end.
    """
    if not isinstance(value, str) or not 0 < len(value) <= MAX_SUBJECT_CHARACTERS:
        raise AuthenticationFailed(f"{where} must be text of 1 to {MAX_SUBJECT_CHARACTERS} characters")
    if value != value.strip() or _has_invisible(value):
        raise AuthenticationFailed(f"{where} contains control characters, invisible characters or blanks at its ends")
    return value


def _has_invisible(text: str) -> bool:
    # Printable text has none of them, and a hundred groups are looked at for each new token.
    return not text.isprintable() and any(_is_invisible(character) for character in text)


def _is_invisible(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] == "C" or category in ("Zl", "Zp")


def actor_of(claims: Claims, issuer: str) -> str | None:
    """Subject of the party that uses the token on behalf of its subject (RFC 8693 section 4.1); None without an
    `act` claim.

    Only the outermost actor counts; earlier links of a chain are history by that section. Raises
    `AuthenticationFailed` when the claim is malformed or names an actor of another issuer, whose subjects are not
    ours to tell apart.
    """
    act = claims.get("act")
    if act is None:
        return None
    if not isinstance(act, Mapping):
        raise AuthenticationFailed("the claim 'act' must be an object")
    if act.get("iss", issuer) != issuer:
        raise AuthenticationFailed("the actor of the token comes from another issuer than the token")
    return checked_subject(act.get("sub"), "the subject of the claim 'act'")


def may_act_of(claims: Claims, issuer: str) -> str | None:
    """Subject of the only party that the provider lets act for the token's subject (RFC 8693 section 4.4); None without
    a `may_act` claim, "" when it is nobody that could be known here.

    It says nothing about the token itself, so a malformed one does not refuse it.
    """
    if "may_act" not in claims:
        return None
    allowed = claims["may_act"]
    if not isinstance(allowed, Mapping) or allowed.get("iss", issuer) != issuer:
        return ""
    subject = allowed.get("sub")
    return subject if isinstance(subject, str) else ""


def groups_of(claims: Claims, path: str | None) -> tuple[str, ...]:
    """Groups at the configured `path`, sorted and without duplicates, letter case kept; () when no path is
    configured or the claim is absent.

    One string is one group. Raises `AuthenticationFailed` for anything that is no text, and when the provider left
    the groups out because they were too many (`_claim_names`, `hasgroups`): a rule that denies by group would
    silently not apply.
    """
    if path is None:
        return ()
    claim_names = claims.get("_claim_names")
    overage = isinstance(claim_names, Mapping) and (path in claim_names or path.split(".")[0] in claim_names)
    if overage or (claims.get("hasgroups") is True and path == "groups"):
        raise AuthenticationFailed(
            "the token does not carry its groups because they are too many; limit the groups the provider sends"
        )
    value = find(claims, path)
    if value is None:
        return ()
    groups = [value] if isinstance(value, str) else value
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        raise AuthenticationFailed(f"the claim '{path}' must be text or a list of text")
    if any(_has_invisible(group) for group in groups):
        raise AuthenticationFailed(f"the claim '{path}' contains control or invisible characters")
    return tuple(sorted({group for group in groups if group.strip()}))


def scopes_of(claims: Claims) -> frozenset[str]:
    """Granted scopes from `scope` (RFC 8693 section 4.2: one text, blanks between) and `scp` (also a list with some
    providers).
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
    """The client the token was issued to, for the audit record and for policies; describes and identifies nobody."""
    return _first_text(claims, "azp", "client_id", "appid", "cid")


def display_name_of(claims: Claims, subject: str, template: str | None) -> str:
    """A name to show: `name`; given and family name; `app_displayname`; `preferred_username`; the configured
    template; else the subject.
    """
    first, last = _first_text(claims, "given_name", "first_name"), _first_text(claims, "family_name", "last_name")
    whole = " ".join(part for part in (first, last) if part) or None
    named = _first_text(claims, "name") or whole or _first_text(claims, "app_displayname", "preferred_username")
    return named or _from_template(claims, template) or f"Nameless App with ID {subject}"


def _from_template(claims: Claims, template: str | None) -> str | None:
    """`template` with each `{claim.path}` replaced; None as soon as one of them is missing."""
    if template is None:
        return None
    found = {path: _text(find(claims, path)) for path in _PLACEHOLDER.findall(template)}
    if not all(found.values()):
        return None
    return _text(_PLACEHOLDER.sub(lambda match: found[match[1]] or "", template))


def email_of(claims: Claims) -> str | None:
    """Return the claim `email` if the provider says by `email_verified` that it is verified, else None.

    An administrator looks for a colleague by address and grants to what is found. An address that users may set
    themselves would turn that into a grant to a stranger. `upn` and `preferred_username` are verified by nobody.
    """
    text = _first_text(claims, "email")
    verified = claims.get("email_verified") in (True, "true")
    return text if verified and text is not None and "@" in text else None


def kind_of(claims: Claims, subject: str) -> UserKind:
    """Guess whether a person or a program holds the token. Nothing may be decided by it: providers have no common
    claim for this.

    A program: Entra's `idtyp: app`, Auth0's `gty: client-credentials`, Keycloak's `service-account-…` user, or a
    subject that is the client itself. Otherwise whoever carries a person's claims is a person.
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
    """`value` as one line to show: invisible characters out, runs of blanks to one, at most 255 characters; None
    when nothing is left.
    """
    if not isinstance(value, str):
        return None
    visible = "".join(
        " " if character.isspace() else character
        for character in value[:4096]
        if character.isspace() or not _is_invisible(character)
    )
    return " ".join(visible.split())[:_MAX_TEXT_CHARACTERS].strip() or None
