# SPDX-License-Identifier: Apache-2.0
"""Serve the page `/ui`, on which users sign in, and see their identity and their visible projects and warehouses.

The page consists of files of the package, without a framework or a build. Users sign in at the identity provider by
redirect (authorization code with PKCE, state and nonce). The browser keeps the token for this tab only. The page reads
all data from the API with that token, so the API decides what it shows.
"""

from __future__ import annotations

import asyncio
import html
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
from litestar import Response

from gateway.access.operations.server import GetUiAsset, ShowUi
from gateway.api import pages
from gateway.api.context import Ctx
from gateway.api.errors import NoSuchRoute
from gateway.api.serves import serves
from gateway.identity.sign_in import SignIn

_FILES: Final = Path(__file__).parent / "ui_files"
_ASSETS: Final = {"ui.js": "text/javascript", "ui.css": "text/css", "mark.svg": "image/svg+xml"}


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
    # The data is in an attribute, because the Content-Security-Policy forbids inline scripts (`script-src 'self'`).
    text = (await asyncio.to_thread(_read, "ui.html")).decode().replace("{{told}}", html.escape(page_data, quote=True))
    return pages.page(text, sign_in=sign_in, styles="'self'", opener=pages.ALONE)


@serves(GetUiAsset)
async def get_ui_asset(ctx: Ctx) -> Response[bytes]:
    """Return a file of the page. Raises 404 for an unknown name, and if the page is disabled."""
    asset = ctx.path["asset"]
    _require_shown(ctx)
    if asset not in _ASSETS:
        raise NoSuchRoute("There is no such endpoint.")
    return pages.static_file(await asyncio.to_thread(_read, asset), _ASSETS[asset])


def _require_shown(ctx: Ctx) -> None:
    if not ctx.services.ui:
        raise NoSuchRoute("There is no such endpoint.")


@cache
def _read(name: str) -> bytes:
    return (_FILES / name).read_bytes()
