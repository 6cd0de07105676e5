# SPDX-License-Identifier: Apache-2.0
"""Serve the OpenAPI documents and Swagger UI from files of the package.

The page loads nothing from other servers, and its Content-Security-Policy forbids that. If a public client is
configured, users can sign in from the page (authorization code with PKCE, `sign_in.py`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from litestar import Response

from gateway.access.operations.server import GetApiAsset, GetApiDocument, ShowApi
from gateway.api import pages
from gateway.api.context import Ctx
from gateway.api.errors import NoSuchRoute
from gateway.api.openapi import is_catalog, openapi_document
from gateway.api.openapi_shared import with_shared_parts
from gateway.api.serves import serves
from gateway.identity.sign_in import SignIn

_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Lakegate</title>
<link rel="stylesheet" href="/swagger-ui/swagger-ui.css">
<link rel="stylesheet" href="/swagger-ui/page.css">
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

#: Swagger UI's default validator is an external service, so it is disabled. The browser keeps a token for its tab only.
#: Its own filter compares names of tags only.
_START: Final = """const matches = (phrase) => (each) =>
  [each.get("path"), each.getIn(["operation", "summary"]), each.getIn(["operation", "operationId"])]
    .some((text) => text.toLowerCase().includes(phrase));
const opsFilter = (groups, text) => {
  const phrase = text.toLowerCase();
  const matching = (all) => all.filter(matches(phrase));
  return groups
    .map((group, tag) => tag.includes(phrase) ? group : group.update("operations", matching))
    .filter((group) => group.get("operations").size > 0);
};
const resolvesParts = {
  afterLoad() {
    const resolve = this.fn.resolveSubtree;
    this.fn.resolveSubtree = async (whole, path, options) => {
      const [kind, name] = path;
      return kind === "paths"
        ? resolve({ ...whole, paths: { [name]: whole.paths[name] } }, path, options)
        : { spec: whole[kind]?.[name], errors: [] };
    };
  }
};
const page = SwaggerUIBundle({
  urls: [
    { name: "Iceberg REST catalog", url: "/api-docs/catalog/v1/openapi.json" },
    { name: "Management", url: "/api-docs/management/v1/openapi.json" }
  ],
  dom_id: "#swagger-ui",
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
  layout: "StandaloneLayout",
  validatorUrl: null,
  deepLinking: true,
  docExpansion: "none",
  defaultModelsExpandDepth: -1,
  filter: true,
  plugins: [() => ({ fn: { opsFilter } }), () => resolvesParts],
  persistAuthorization: false,
  oauth2RedirectUrl: window.location.origin + "/swagger-ui/oauth2-redirect.html"
});
"""
_SIGN_IN: Final = """page.initOAuth({options});
"""

#: Hides the field for a client secret, which Swagger UI shows for every flow. The public client has no secret, and
#: users must not type another client's secret into a page.
_STYLE: Final = """div:has(> label[for^="client_secret_"]), label[for^="client_secret_"], [data-name="clientSecret"] {
  display: none !important;
}
"""

#: The published files of Swagger UI (see the README there). Only the files in `_ASSETS` and `_RETURN` are served.
_FILES: Final = Path(__file__).parent / "swagger_ui_files"
_ASSETS: Final = {
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui-standalone-preset.js": "text/javascript",
    "favicon-32x32.png": "image/png",
    "oauth2-redirect.js": "text/javascript",
}
#: The page to which the identity provider redirects after sign-in, in the window that Swagger UI opened.
_RETURN: Final = "oauth2-redirect.html"

# Inline styles are allowed, because Swagger UI uses them. Styles cannot run code, and the other directives prevent
# styles from loading anything from other servers.
_STYLES: Final = "'self' 'unsafe-inline'"


@serves(ShowApi)
async def show_api(ctx: Ctx) -> Response[str]:
    """Return the page of Swagger UI. Raises 404 if it is disabled."""
    _require_shown(ctx)
    sign_in = await pages.sign_in_of(ctx)
    opener = pages.ALONE if sign_in is None else pages.OPENS_WINDOWS
    return pages.page(_PAGE, sign_in=sign_in, styles=_STYLES, opener=opener)


@serves(GetApiAsset)
async def get_api_asset(ctx: Ctx) -> Response[bytes]:
    """Return a file of the page. Raises 404 for an unknown name, and if the page is disabled."""
    asset = ctx.path["asset"]
    _require_shown(ctx)
    if asset == "start.js":
        return pages.static_file(_start(await pages.sign_in_of(ctx)), "text/javascript")
    if asset == "page.css":
        return pages.static_file(_STYLE.encode(), "text/css")
    if asset == _RETURN and ctx.services.sign_in is not None:
        return pages.opened_page(await asyncio.to_thread((_FILES / _RETURN).read_bytes))
    if asset not in _ASSETS:
        raise NoSuchRoute("There is no such endpoint.")
    return pages.static_file(await asyncio.to_thread((_FILES / asset).read_bytes), _ASSETS[asset], cacheable=True)


@serves(GetApiDocument)
async def get_api_document(ctx: Ctx) -> Response[bytes]:
    """Return an OpenAPI document. Raises 404 for an unknown name, and if the page is disabled."""
    api = ctx.path["api"]
    _require_shown(ctx)
    if api not in ("catalog", "management"):
        raise NoSuchRoute("There is no such endpoint.")
    sign_in = await pages.sign_in_of(ctx)
    return pages.static_file(await asyncio.to_thread(_document, api == "catalog", sign_in), "application/json")


def _require_shown(ctx: Ctx) -> None:
    if not ctx.services.swagger_ui:
        raise NoSuchRoute("There is no such endpoint.")


def _start(sign_in: SignIn | None) -> bytes:
    """Return the start script of the page.

    It has no client secret: the client is public, and PKCE binds the authorization code to the page that requested it.
    """
    if sign_in is None:
        return _START.encode()
    options = {
        "clientId": sign_in.client_id,
        "scopes": sign_in.scope,
        "usePkceWithAuthorizationCodeGrant": True,
    }
    return (_START + _SIGN_IN.format(options=json.dumps(options))).encode()


@lru_cache(maxsize=4)
def _document(catalog: bool, sign_in: SignIn | None) -> bytes:
    select = is_catalog if catalog else (lambda operation: not is_catalog(operation))
    document = with_shared_parts(openapi_document(select))
    return json.dumps(document if sign_in is None else _with_sign_in(document, sign_in)).encode()


def _with_sign_in(document: dict[str, Any], sign_in: SignIn) -> dict[str, Any]:
    """Return the document with sign-in as a second security scheme."""
    scopes: Mapping[str, str] = dict.fromkeys(sign_in.scope.split(), "")
    flow = {
        "authorizationUrl": sign_in.authorization_endpoint,
        "tokenUrl": sign_in.token_endpoint,
        "scopes": scopes,
    }
    schemes = document["components"]["securitySchemes"]
    schemes["sign-in"] = {
        "type": "oauth2",
        "description": "Sign in at the identity provider with a browser (authorization code with PKCE, no secret).",
        "flows": {"authorizationCode": flow},
    }
    return {**document, "security": [*document["security"], {"sign-in": list(scopes)}]}
