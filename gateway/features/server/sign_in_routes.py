# SPDX-License-Identifier: Apache-2.0
"""Serve the console `/ui`: one page, and the modules that it loads.

The modules are files of the package, without a build. Users sign in at the identity provider by redirect (authorization
code with PKCE, state and nonce). The browser keeps the token for this tab only. The console reads all data from the
API with that token, so the API decides what it shows.
"""

from __future__ import annotations

import asyncio
import html

import msgspec
from litestar import Response

from gateway.access.operations.server import GetUiAsset, ShowUi
from gateway.api import pages
from gateway.api.context import Ctx
from gateway.api.errors import NoSuchRoute
from gateway.api.serves import serves
from gateway.features.server import console_files
from gateway.identity.sign_in import SignIn


class _PageData(msgspec.Struct, frozen=True, rename="camel"):
    """The configuration of the page.

    `set_up` is True if sign-in is configured. `sign_in` has its endpoints, if available. `interface` is True if Swagger
    UI is served.
    """

    set_up: bool
    sign_in: SignIn | None
    interface: bool


@serves(ShowUi)
async def show_ui(ctx: Ctx) -> Response[str]:
    """Return the page. Raises 404 if it is disabled."""
    _require_shown(ctx)
    sign_in = await pages.sign_in_of(ctx)
    page_data = msgspec.json.encode(
        _PageData(ctx.services.sign_in is not None, sign_in, ctx.services.swagger_ui)
    ).decode()
    text = (await asyncio.to_thread(console_files.read, "index.html")).decode()
    # The data is in an attribute, because the Content-Security-Policy forbids inline scripts (`script-src 'self'`).
    for name, value in (
        ("{{config}}", html.escape(page_data, quote=True)),
        ("{{digest}}", console_files.digest()),
        ("{{imports}}", console_files.import_map()),
    ):
        text = text.replace(name, value)
    return pages.page(
        text, sign_in=sign_in, scripts=console_files.import_map_source(), styles="'self'", opener=pages.ALONE
    )


@serves(GetUiAsset)
async def get_ui_asset(ctx: Ctx) -> Response[bytes]:
    """Return a file of the console. Raises 404 for an unknown name, and if the console is disabled.

    A tab that was opened before an update requests files by the old digest. It receives the new files, uncached.
    """
    name = str(ctx.path["file_path"]).lstrip("/")
    _require_shown(ctx)
    media_type = console_files.media_type(name)
    if media_type is None:
        raise NoSuchRoute("There is no such endpoint.")
    content = await asyncio.to_thread(console_files.read, name)
    return pages.static_file(content, media_type, immutable=ctx.path["digest"] == console_files.digest())


def _require_shown(ctx: Ctx) -> None:
    if not ctx.services.ui:
        raise NoSuchRoute("There is no such endpoint.")
