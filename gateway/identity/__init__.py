# SPDX-License-Identifier: Apache-2.0
"""Authentication of callers: verify a bearer token and return a `VerifiedToken`.

`bearer` reads the token from the request, and `router` selects the provider that verifies it. `tokens` verifies OpenID
tokens, `kubernetes` those of service accounts, `delegated` the gateway's own. `keys` and `discovery` load the public
keys of a provider, and `fetch` sends the requests for them. `claims` derives the user and the groups from the claims.

joserfc verifies the signatures: Authlib 1.9 deprecates its own jose package in favour of joserfc. This package contains
authentication only. Authorization is in `gateway/access`.
"""
