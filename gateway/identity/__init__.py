# SPDX-License-Identifier: Apache-2.0
"""Who is calling: OIDC bearer tokens in, one `VerifiedToken` out.

`bearer` takes the token out of the request, `tokens` verifies it, `keys` and `discovery` hold the provider's public
keys, `claims` reads a person out of a claim set, `fetch` is the one way to the outside. The signatures are judged by
joserfc, the successor of `authlib.jose` by the same author (Authlib 1.9 deprecates its own jose package in its
favour). Nothing in this room decides what a caller may do.
"""
