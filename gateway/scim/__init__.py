# SPDX-License-Identifier: Apache-2.0
"""PURE: what SCIM 2.0 says (RFC 7643, RFC 7644), as far as identity providers use it: bodies, filters and patches.

Our own and on msgspec: the living library (scim2-models) brings pydantic as a second system of wire types, and its
grammar of patches refuses what Entra ID sends.
"""
