# SPDX-License-Identifier: Apache-2.0
"""Count the requests that get 401, for the audit log.

No operation of such a request is decided, so no other audit record contains it.
"""

from __future__ import annotations

from typing import Any

from litestar import Request, Response

from gateway.api.errors import answer_error
from gateway.api.latch import REQUEST_ID
from gateway.api.services import Services
from gateway.identity.errors import NotAuthenticated, Refusal


def answer_and_count(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Return the error response for an exception, and count it if it is a refused login.

    This is the exception handler of Litestar. It counts nothing while `AUDIT__REFUSED_LOGINS` is 0.
    """
    response = answer_error(request, error)
    if response.status_code == 401:
        _count(request, error)
    return response


def _count(request: Request[Any, Any, Any], error: Exception) -> None:
    services: Services | None = request.app.state.get("services")
    if services is None or services.refused_logins is None:
        return
    services.refused_logins.add(
        address=request.client.host if request.client is not None else None,
        reason=_reason(error).value,
        request_id=request.scope["state"][REQUEST_ID],
    )


def _reason(error: Exception) -> Refusal:
    """Return the violated rule. If the token endpoint raised an OAuth error, use the authentication error that caused
    it.
    """
    for each in (error, error.__context__):
        if isinstance(each, NotAuthenticated):
            return each.reason
    return Refusal.MISSING
