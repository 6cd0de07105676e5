# SPDX-License-Identifier: Apache-2.0
"""Answer pages and their files with headers that let them load and run files of this server alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from litestar import Response

from gateway.api.context import Ctx
from gateway.identity.sign_in import SignIn

_SAFE: Final[Mapping[str, str]] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
#: No other window can hold on to a page of ours, nor a page of ours to another window.
ALONE: Final = "same-origin"
#: A page of ours may open a window and hear from it, as Swagger UI does with the provider's.
OPENS_WINDOWS: Final = "same-origin-allow-popups"


async def sign_in_of(ctx: Ctx) -> SignIn | None:
    """Return the place where users sign in; None if it is not set up, or the provider's metadata is not available."""
    return None if ctx.services.sign_in is None else await ctx.services.sign_in()


def page(text: str, *, sign_in: SignIn | None, styles: str, opener: str) -> Response[str]:
    """A page; its scripts may ask this server and, to sign in, the provider's token endpoint.

    `styles` are the sources of styles beside this server, `opener` is the policy towards other windows.
    """
    asks = " ".join(("'self'", *(() if sign_in is None else sign_in.origins())))
    policy = (
        f"default-src 'none'; script-src 'self'; style-src {styles}; img-src 'self' data:; connect-src {asks}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {
        **_SAFE,
        "Cache-Control": "no-cache",
        "Content-Security-Policy": policy,
        "Cross-Origin-Opener-Policy": opener,
        "X-Frame-Options": "DENY",
    }
    return Response(text, media_type="text/html", headers=headers)


def file(content: bytes, media_type: str, *, fixed: bool = False) -> Response[bytes]:
    """A file of a page. `fixed`: it changes with the version of a library alone, so browsers may keep it a while."""
    cached = "public, max-age=3600" if fixed else "no-cache"
    headers = {**_SAFE, "Cache-Control": cached, "Cross-Origin-Opener-Policy": ALONE}
    return Response(content, media_type=media_type, headers=headers)


def opened_page(content: bytes) -> Response[bytes]:
    """Answer a page in a window that another page of this server opened: it must reach that page, and connects to
    nothing else.
    """
    headers = {
        **_SAFE,
        "Cache-Control": "no-cache",
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; base-uri 'none'; frame-ancestors 'none'",
        "Cross-Origin-Opener-Policy": "unsafe-none",
        "X-Frame-Options": "DENY",
    }
    return Response(content, media_type="text/html", headers=headers)
