# SPDX-License-Identifier: Apache-2.0
"""Endpoint of the bundles of policies."""

from __future__ import annotations

from litestar import Response

from gateway.access.operations.policy_bundles import GetPolicyBundle
from gateway.access.request import Header
from gateway.api.answers import cached_file
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.catalog import etags


@serves(GetPolicyBundle, reads=(Header("if-none-match"),))
async def get_policy_bundle(ctx: Ctx) -> Response[bytes | None]:
    """Return a bundle; 304 if the client has it. Authorization comes first: the tag gives no right."""
    permit = await ctx.admit(await ctx.read(GetPolicyBundle))
    bundle = await ctx.services.policy_bundles.bundle(permit)
    known = etags.parse_if_none_match(ctx.header("if-none-match"))
    return cached_file(bundle.content, f'"{bundle.entity_tag}"', "application/gzip", known)
