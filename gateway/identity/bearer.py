# SPDX-License-Identifier: Apache-2.0
"""Read the bearer token from the `Authorization` header.

A token is accepted in this header only. RFC 6750 also allows the form body and the query string, but query strings and
bodies are often logged.
"""

import re
from collections.abc import Sequence

from gateway.identity.errors import AuthenticationFailed, MissingAuthorizationHeader

# RFC 7235 section 2.1: credentials = auth-scheme 1*SP token68
_CREDENTIALS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9-]*) +(?P<token>[A-Za-z0-9\-._~+/]+=*)", re.ASCII)

# Texts that clients send when the variable for the token is not set. They get an error message of their own, because
# the cause is in the client's configuration and not in the form of the token.
_UNSET = frozenset({"none", "null", "nil", "undefined", "false", "nan"})


def bearer_token(header_values: Sequence[str | bytes]) -> str:
    """Return the bearer token of a request. `header_values` are all values of its `Authorization` header.

    Raises `MissingAuthorizationHeader` if there is no value. Raises `AuthenticationFailed` if there are several,
    because a proxy and the gateway could each read a different one. Raises it also if the scheme is not `Bearer` (in
    any letter case), or if the scheme is not followed by exactly one token68.
    """
    if not header_values:
        raise MissingAuthorizationHeader
    if len(header_values) > 1:
        raise AuthenticationFailed(f"the Authorization header was sent {len(header_values)} times; send it once")
    value = header_values[0]
    # HTTP/1.1 field values are bytes. latin-1 maps each byte to one character, so decoding cannot fail or lose a byte.
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    matched = _CREDENTIALS.fullmatch(text)
    if matched is None:
        raise AuthenticationFailed("the Authorization header must have the form 'Bearer <token>'")
    if matched["scheme"].lower() != "bearer":
        raise AuthenticationFailed("the Authorization header must use the scheme 'Bearer'")
    if matched["token"].lower() in _UNSET:
        raise AuthenticationFailed(
            "the bearer token is a placeholder such as 'null' or 'undefined'; configure a token in the client"
        )
    return matched["token"]
