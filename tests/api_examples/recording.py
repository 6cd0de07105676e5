# SPDX-License-Identifier: Apache-2.0
"""Record requests to the gateway and their answers while tests run: a plugin of pytest.

Each process appends to a file of its own in the directory that `LAKEGATE_RECORDED_ANSWERS` names. Only successful
requests with a JSON body or a JSON answer are recorded.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

import gateway.features.all_routes  # noqa: F401 - the import serves every operation
from gateway.access.operation import HttpOperation
from gateway.api.serves import SERVED

DIRECTORY: Final = "LAKEGATE_RECORDED_ANSWERS"

#: The largest recorded body, and the largest number of records of one operation in one process.
_BYTES: Final = 20_000
_RECORDS: Final = 60


def pytest_configure(config: pytest.Config) -> None:
    """Record every request that a client of httpx sends from now on."""
    file = Path(os.environ[DIRECTORY]) / f"{os.getpid()}.jsonl"
    patterns, recorded, send = _patterns(), Counter[str](), httpx.Client.send

    def recording(client: httpx.Client, request: httpx.Request, *, stream: bool = False, **more: Any) -> httpx.Response:
        answer = send(client, request, stream=stream, **more)
        if not stream and answer.is_success:
            name = _operation(patterns, request)
            if name is not None and recorded[name] < _RECORDS and (found := _record(name, request, answer)):
                recorded[name] += 1
                with file.open("a", encoding="utf-8") as written:
                    written.write(json.dumps(found) + "\n")
        return answer

    setattr(httpx.Client, "send", recording)  # noqa: B010 - every client of the tests


def _patterns() -> list[tuple[str, re.Pattern[str], str]]:
    """Return (method, pattern of the path, name) of each endpoint, those with the most fixed segments first."""
    found = []
    for operation in _named():
        method = operation.endpoint.split(" ", 1)[0]
        for path in operation.paths():
            fixed = len(re.sub(r"\{\w+\}", "", path))
            pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))
            found.append((fixed, method, re.compile(pattern), operation.__name__))
    return [each[1:] for each in sorted(found, key=lambda each: each[0], reverse=True)]


def _named() -> list[type[HttpOperation]]:
    """Return the operation that names each endpoint in the OpenAPI document."""
    named: dict[str, type[HttpOperation]] = {}
    for operation in SERVED:
        named.setdefault(operation.endpoint, operation)
    return list(named.values())


def _operation(patterns: list[tuple[str, re.Pattern[str], str]], request: httpx.Request) -> str | None:
    path = request.url.raw_path.decode().partition("?")[0]
    return next((name for method, each, name in patterns if method == request.method and each.fullmatch(path)), None)


def _record(name: str, request: httpx.Request, answer: httpx.Response) -> dict[str, Any] | None:
    if "content-encoding" in request.headers or max(len(request.content), len(answer.content)) > _BYTES:
        return None
    record: dict[str, Any] = {"operation": name}
    for key, message in (("request", request), ("response", answer)):
        kind = message.headers.get("content-type", "")
        if message.content and kind.endswith("json"):
            record[key] = json.loads(message.content)
        elif message.content and "form" in kind:
            record[key] = dict(httpx.QueryParams(message.content.decode()))
    return record if len(record) > 1 else None
