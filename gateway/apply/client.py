# SPDX-License-Identifier: Apache-2.0
"""A client of the gateway's HTTP API for one caller: JSON, pages, retries, and errors that tell the remedy."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote
from uuid import uuid4

from gateway.apply import ApplyError

if TYPE_CHECKING:
    import ssl

    import httpx2

_SECONDS = 60.0
_ATTEMPTS = 5
_LONGEST_WAIT = 5.0
_RETRIED = frozenset({429, 503})
_UNAUTHORIZED = 401
_OK, FORBIDDEN, NOT_FOUND = 200, 403, 404

_ERROR_ID = "Error ID: "

_REMEDIES = {
    0: " Check that the gateway runs, and its address in --gateway or LAKEGATE__BASE_URI.",
    _UNAUTHORIZED: " Log in again with `lakegate login`, or renew the token in LAKEGATE_TOKEN.",
    FORBIDDEN: " Request the right with `lakegate request`, or run the command as a user who has it.",
}


RESTRICTED = "the policy restricts you too: without `exempt` you get no credentials of these tables"

#: Texts for the headers by which responses to changes describe an effect on the caller.
_NOTES = {
    ("x-lakegate-restricts", "caller"): RESTRICTED,
    ("x-lakegate-restricts", "unknown"): "it is not known whether the policy restricts you too: OpenFGA did not answer",
    ("x-lakegate-exempt", "caller"): "you are exempt too: the policy does not restrict you any more",
}


def notes_of(headers: Mapping[str, str]) -> list[str]:
    """Return texts about the caller, from the headers of a response."""
    return [text for (name, value), text in _NOTES.items() if headers.get(name) == value]


class ApiError(ApplyError):
    """The gateway returned an error or did not respond; `status` is 0 then, and after a response of another server.

    `id` is the error id, by which the log of the gateway has the request.
    """

    def __init__(self, method: str, path: str, status: int, message: str, id: str | None = None) -> None:
        answered = f"{method} {path} was answered with {status}" if status else f"{method} {path} got no answer"
        end = "" if message.endswith(".") else "."
        shown = f"\n  Error id: {id}" if id else ""
        super().__init__(f"{answered}: {message}{end}{remedy(status)}{shown}")
        self.status = status


class NotAGateway(ApiError):
    """Another server than a gateway responded."""

    def __init__(self, method: str, path: str, status: int) -> None:
        super().__init__(method, path, status, "the answer is not one of the gateway. Check the address.")
        self.status = 0


def transport_text(error: Exception) -> str:
    """Return the text about a failed connection, with the remedy for an untrusted certificate."""
    text = f"{str(error) or type(error).__name__}."
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return f"{text} If it is a certificate of your own, name the file of its authority in SSL_CERT_FILE."
    if "WRONG_VERSION_NUMBER" in text:
        return f"{text} The server may not use TLS: try http:// in the address."
    return text


def remedy(status: int) -> str:
    """Return the text that says what the user can do after an error, with a space before it; empty if there is none."""
    return _REMEDIES.get(status, "")


def error_id(error: Mapping[str, Any]) -> str | None:
    """Return the id in the member `error` of an error response; None if it has none."""
    found = (str(each).partition(_ERROR_ID) for each in error.get("stack", ()))
    return next((id for before, _, id in found if not before and id), None)


class Api:
    """Send the requests of one caller. Each may take `seconds`. `transport` replaces the network in tests."""

    def __init__(
        self,
        base: str,
        token: str,
        *,
        tls: ssl.SSLContext | bool = True,
        seconds: float | None = None,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        import httpx2

        #: Texts about the caller from the headers of responses (`notes_of`).
        self.notes: list[str] = []
        self._http = httpx2.Client(
            base_url=base.rstrip("/"),
            headers={"Authorization": f"Bearer {token}"},
            timeout=seconds or _SECONDS,
            verify=tls,
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def get(self, path: str, *, project: str | None = None, query: Mapping[str, str] | None = None) -> Any:
        """Return the JSON response of a GET request. Raises ApiError."""
        return self._send("GET", path, project=project, query=query)

    def find(self, path: str, *, project: str | None = None) -> Any | None:
        """Return the JSON response of a GET request, or None for 404. Raises ApiError."""
        try:
            return self.get(path, project=project)
        except ApiError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def pages(
        self, path: str, member: str, *, project: str | None = None, query: Mapping[str, str] | None = None
    ) -> Iterator[Any]:
        """Yield the entries of a list, from all of its pages. Raises ApiError."""
        for page in self.answers(path, project=project, query=query):
            yield from self._member(path, page, member)

    def list(
        self, path: str, member: str, *, project: str | None = None, query: Mapping[str, str] | None = None
    ) -> Any:
        """Return the entries of a list that has one page. Raises ApiError."""
        return self._member(path, self.get(path, project=project, query=query), member)

    def _member(self, path: str, answer: Any, member: str) -> Any:
        """Return a member that every response of a gateway has. Raises NotAGateway if it is missing."""
        if not isinstance(answer, dict) or member not in answer:
            raise NotAGateway("GET", path, _OK)
        return answer[member]

    def answers(
        self, path: str, *, project: str | None = None, query: Mapping[str, str] | None = None
    ) -> Iterator[Any]:
        """Yield one response for each page of a list. Raises ApiError."""
        asked = dict(query or {})
        while True:
            page = self.get(path, project=project, query=asked)
            yield page
            if not (token := page.get("next-page-token")):
                return
            asked["pageToken"] = token

    def change(self, method: str, path: str, body: Any = None, *, project: str | None = None) -> Any:
        """Send a change with an idempotency key. Return the decoded response, None if it is empty. Raises ApiError."""
        return self._send(method, path, project=project, body=body, key=str(uuid4()))

    def ask(self, path: str, body: Any, *, project: str | None = None) -> Any:
        """Return the JSON response of a POST request that changes nothing. Raises ApiError."""
        return self._send("POST", path, project=project, body=body)

    def _send(
        self,
        method: str,
        path: str,
        *,
        project: str | None = None,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        key: str | None = None,
    ) -> Any:
        import httpx2

        headers = {"x-project-id": project} if project else {}
        if key is not None:
            headers["Idempotency-Key"] = key
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                answer = self._http.request(method, path, params=query, json=body, headers=headers)
            except httpx2.TransportError as error:
                raise ApiError(method, path, 0, transport_text(error)) from None
            if answer.status_code not in _RETRIED or attempt == _ATTEMPTS:
                break
            time.sleep(_wait(answer.headers.get("retry-after"), attempt))
        # A redirect is not followed, and is an error: the change was not made.
        if not answer.is_success:
            raise _error(method, path, answer)
        self.notes += notes_of(answer.headers)
        if not answer.content:
            return None
        try:
            return answer.json()
        except ValueError:
            raise NotAGateway(method, path, answer.status_code) from None


def segment(text: str) -> str:
    """Return a text as one segment of a path.

    The segments `.` and `..` are encoded too. Otherwise the HTTP client would resolve them, and the request would reach
    another object: grants on a column `..` would be grants on its table. The gateway refuses the encoded ones.
    """
    return text.replace(".", "%2E") if text in (".", "..") else quote(text, safe="")


def _wait(retry_after: str | None, attempt: int) -> float:
    """Return the number of seconds to wait before the next attempt."""
    given = float(retry_after) if retry_after is not None and retry_after.isdigit() else 0.25 * 2**attempt
    return min(given, _LONGEST_WAIT)


def _error(method: str, path: str, answer: httpx2.Response) -> ApiError:
    """Return the error for an error response."""
    try:
        error = answer.json()["error"]
        # Only the member `stack` contains the reasons of a failed storage check.
        details = [line for line in error.get("stack", ()) if not line.startswith(_ERROR_ID.rstrip(": "))]
        text = "\n  ".join((f"{error['type']}: {error['message']}", *details))
        return ApiError(method, path, answer.status_code, text, error_id(error))
    except (ValueError, KeyError, TypeError, AttributeError):
        return NotAGateway(method, path, answer.status_code)
