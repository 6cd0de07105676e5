# SPDX-License-Identifier: Apache-2.0
"""Takes the bearer token out of the `Authorization` header.

The header is the only place a token is accepted in: RFC 6750 also knows the form body and the query string, both of
which end in logs.
"""

import re
from collections.abc import Sequence

from gateway.identity.errors import AuthenticationFailed, MissingAuthorizationHeader

# RFC 7235 section 2.1: credentials = auth-scheme 1*SP token68
_CREDENTIALS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9-]*) +(?P<token>[A-Za-z0-9\-._~+/]+=*)", re.ASCII)

# What clients send when the variable that should hold the token was never set. Named, because "malformed" would send
# people looking in the wrong place.
_UNSET = frozenset({"none", "null", "nil", "undefined", "false", "nan"})


def bearer_token(header_values: Sequence[str | bytes]) -> str:
    """Return the token of a request from *all* values of its `Authorization` header, in any order.

    Raises `MissingAuthorizationHeader` when there is none, `AuthenticationFailed` when there are several (a proxy
    and the gateway could each read a different one), when the scheme is not `Bearer` (any letter case) or when what
    follows is not exactly one token68.
    """
    if not header_values:
        raise MissingAuthorizationHeader
    if len(header_values) > 1:
        raise AuthenticationFailed(f"the Authorization header was sent {len(header_values)} times; send it once")
    value = header_values[0]
    # HTTP/1.1 field values are bytes; latin-1 maps each to one character, so nothing can hide behind a decoding error.
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    matched = _CREDENTIALS.fullmatch(text)
    if matched is None:
        raise AuthenticationFailed("the Authorization header is not of the form 'Bearer <token>'")
    if matched["scheme"].lower() != "bearer":
        raise AuthenticationFailed("only the 'Bearer' authorization scheme is supported")
    if matched["token"].lower() in _UNSET:
        raise AuthenticationFailed("the bearer token is the text of an unset variable; the client has no token")
    return matched["token"]
