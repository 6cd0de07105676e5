# SPDX-License-Identifier: Apache-2.0
"""The page at `/ui`: sign in with a browser, see the own identity, and the visible projects and warehouses.

It is three files of the package, without a framework, a build or another server. The sign-in is a redirect and back
(authorization code with PKCE, state and nonce); the browser keeps the token for this tab alone. The page reads
everything from the API with that token, so it decides nothing itself.
"""

from __future__ import annotations

import asyncio
import html
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
from litestar import Response

from gateway.access.operations.ui import GetUiAsset, ShowUi
from gateway.api import pages
from gateway.api.context import Ctx
from gateway.api.errors import NoSuchRoute
from gateway.api.serves import serves
from gateway.identity.sign_in import SignIn

_FILES: Final = Path(__file__).parents[1] / "ui_files"
_ASSETS: Final = {"ui.js": "text/javascript", "ui.css": "text/css", "mark.svg": "image/svg+xml"}


class _Told(msgspec.Struct, frozen=True, rename="camel"):
    """The configuration of the page: whether sign-in is set up, where it is, and whether the API documentation is
    served.
    """

    set_up: bool
    sign_in: SignIn | None
    interface: bool


@serves(ShowUi)
async def show_ui(ctx: Ctx) -> Response[str]:
    """The page; 404 when it is switched off."""
    _require_shown(ctx)
    sign_in = await pages.sign_in_of(ctx)
    told = msgspec.json.encode(_Told(ctx.services.sign_in is not None, sign_in, ctx.services.swagger_ui)).decode()
    # In an attribute and not in a script: the page may run no text of its own (`script-src 'self'`).
    text = (await asyncio.to_thread(_read, "ui.html")).decode().replace("{{told}}", html.escape(told, quote=True))
    return pages.page(text, sign_in=sign_in, styles="'self'", opener=pages.ALONE)


@serves(GetUiAsset)
async def get_ui_asset(ctx: Ctx) -> Response[bytes]:
    """A file of the page, by a name of the list."""
    asset = ctx.path["asset"]
    _require_shown(ctx)
    if asset not in _ASSETS:
        raise NoSuchRoute("There is no such endpoint.")
    return pages.file(await asyncio.to_thread(_read, asset), _ASSETS[asset])


def _require_shown(ctx: Ctx) -> None:
    if not ctx.services.ui:
        raise NoSuchRoute("There is no such endpoint.")


@cache
def _read(name: str) -> bytes:
    return (_FILES / name).read_bytes()
