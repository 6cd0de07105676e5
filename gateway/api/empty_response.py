# SPDX-License-Identifier: Apache-2.0
"""Answers without content: no body and no type of one, whatever their status."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from litestar import Response
from litestar.response.base import ASGIResponse


class EmptyResponse(Response[None]):
    """Send an empty body, where Litestar alone would send the four bytes `null` with status 200."""

    def render(self, content: Any, media_type: str, enc_hook: Any = None) -> bytes:
        """Return no bytes."""
        return b""

    def to_asgi_response(self, *arguments: Any, **options: Any) -> ASGIResponse:
        """Build the response without a content type."""
        answer = super().to_asgi_response(*arguments, **options)
        answer.headers.pop("content-type", None)
        return answer


def answers_nothing(handler: Callable[..., Any]) -> bool:
    """Whether the handler says of itself that it returns nothing."""
    return inspect.signature(handler).return_annotation in (None, "None", type(None))
