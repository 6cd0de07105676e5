# SPDX-License-Identifier: Apache-2.0
"""Our own OpenAPI documents and Swagger UI, from the package alone: the page loads nothing from anywhere else, and its
Content-Security-Policy would not let it.
"""

from __future__ import annotations

import asyncio
import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from litestar import Response

from gateway.access.operations.docs import GetApiAsset, GetApiDocument, ShowApi
from gateway.api.context import Ctx
from gateway.api.errors import NoSuchRoute
from gateway.api.openapi import is_catalog, openapi_document
from gateway.api.serves import serves

_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Lakegate</title>
<link rel="stylesheet" href="/swagger-ui/swagger-ui.css">
<link rel="icon" href="/swagger-ui/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/swagger-ui/swagger-ui-bundle.js"></script>
<script src="/swagger-ui/swagger-ui-standalone-preset.js"></script>
<script src="/swagger-ui/start.js"></script>
</body>
</html>
"""

#: The validator is a service elsewhere; no document is sent there. A token that was typed in is forgotten with the tab.
_START: Final = """SwaggerUIBundle({
  urls: [
    { name: "Iceberg REST catalog", url: "/api-docs/catalog/v1/openapi.json" },
    { name: "Management", url: "/api-docs/management/v1/openapi.json" }
  ],
  dom_id: "#swagger-ui",
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
  layout: "StandaloneLayout",
  validatorUrl: null,
  persistAuthorization: false
});
"""

#: What the wheel of Swagger UI carries and the page needs; nothing else of it is served.
_ASSETS: Final = {
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui-standalone-preset.js": "text/javascript",
    "favicon-32x32.png": "image/png",
}

_SAFE: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# Scripts come from this server's own files and never from the page's text. Styles may stand in it, because Swagger UI
# writes some; they can neither run nor, with the other rules, ask anybody anything.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@serves(ShowApi)
async def show_api(ctx: Ctx) -> Response[str]:
    """The page; 404 when it is switched off."""
    _require_shown(ctx)
    headers = {**_SAFE, "Content-Security-Policy": _POLICY, "X-Frame-Options": "DENY"}
    return Response(_PAGE, media_type="text/html", headers=headers)


@serves(GetApiAsset)
async def get_api_asset(ctx: Ctx, asset: str) -> Response[bytes]:
    """A file of the page, by a name of the list."""
    _require_shown(ctx)
    if asset == "start.js":
        return _file(_START.encode(), "text/javascript")
    if asset not in _ASSETS:
        raise NoSuchRoute("There is no such endpoint.")
    return _file(await asyncio.to_thread((_assets() / asset).read_bytes), _ASSETS[asset])


@serves(GetApiDocument)
async def get_api_document(ctx: Ctx, api: str) -> Response[bytes]:
    """The document; 404 when the page is switched off."""
    _require_shown(ctx)
    if api not in ("catalog", "management"):
        raise NoSuchRoute("There is no such endpoint.")
    return _file(await asyncio.to_thread(_document, api == "catalog"), "application/json")


def _require_shown(ctx: Ctx) -> None:
    if not ctx.parts.swagger_ui:
        raise NoSuchRoute("There is no such endpoint.")


def _file(content: bytes, media_type: str) -> Response[bytes]:
    return Response(content, media_type=media_type, headers={**_SAFE, "Cache-Control": "public, max-age=3600"})


@cache
def _document(catalog: bool) -> bytes:
    select = is_catalog if catalog else (lambda operation: not is_catalog(operation))
    return json.dumps(openapi_document(select)).encode()


@cache
def _assets() -> Path:
    """Where the wheel's files are; it is looked for and not imported, so what it is made for is not needed."""
    found = find_spec("flask_swagger_ui")
    if found is None or not found.submodule_search_locations:
        raise NoSuchRoute("Swagger UI is not installed.")
    return Path(next(iter(found.submodule_search_locations))) / "dist"
