# SPDX-License-Identifier: Apache-2.0
"""Build responses for the gateway's web pages (Swagger UI, sign-in) and for their files.

The headers of a page allow only scripts and files of this server.
"""

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
#: Value of `Cross-Origin-Opener-Policy`: windows of other origins and the page cannot reference each other.
ALONE: Final = "same-origin"
#: Value of `Cross-Origin-Opener-Policy`: the page keeps a reference to windows that it opens, as Swagger UI needs for
#: the identity provider's window.
OPENS_WINDOWS: Final = "same-origin-allow-popups"


async def sign_in_of(ctx: Ctx) -> SignIn | None:
    """Return the sign-in endpoints; None if sign-in is not configured or the provider's metadata is unavailable."""
    return None if ctx.services.sign_in is None else await ctx.services.sign_in()


def page(text: str, *, sign_in: SignIn | None, styles: str, opener: str, scripts: str = "") -> Response[str]:
    """Return an HTML page. Its scripts may connect only to this server and to the origins of `sign_in`.

    `styles` is the `style-src` of the Content-Security-Policy, `scripts` are sources beside this server of its
    `script-src`, and `opener` is the `Cross-Origin-Opener-Policy`.
    """
    connections = " ".join(("'self'", *(() if sign_in is None else sign_in.origins())))
    scripts = " ".join(("'self'", *scripts.split()))
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src {styles}; img-src 'self' data:; "
        f"connect-src {connections}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {
        **_SAFE,
        "Cache-Control": "no-cache",
        "Content-Security-Policy": policy,
        "Cross-Origin-Opener-Policy": opener,
        "X-Frame-Options": "DENY",
    }
    return Response(text, media_type="text/html", headers=headers)


def static_file(
    content: bytes, media_type: str, *, cacheable: bool = False, immutable: bool = False
) -> Response[bytes]:
    """Return a file of a page.

    Browsers may cache it for an hour if it is `cacheable`, which means that it is part of a library's release. They
    may cache it for a year if it is `immutable`, which means that its address has a digest of the content.
    """
    cached = "public, max-age=31536000, immutable" if immutable else "public, max-age=3600" if cacheable else "no-cache"
    headers = {**_SAFE, "Cache-Control": cached, "Cross-Origin-Opener-Policy": ALONE}
    return Response(content, media_type=media_type, headers=headers)


def opened_page(content: bytes) -> Response[bytes]:
    """Return a page for a window that another page of this server has opened.

    It can access the window of the other page, may run scripts of this server, and cannot connect to any server.
    """
    headers = {
        **_SAFE,
        "Cache-Control": "no-cache",
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; base-uri 'none'; frame-ancestors 'none'",
        "Cross-Origin-Opener-Policy": "unsafe-none",
        "X-Frame-Options": "DENY",
    }
    return Response(content, media_type="text/html", headers=headers)
