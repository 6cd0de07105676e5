# SPDX-License-Identifier: Apache-2.0
"""Log lines: one JSON object each, with request context, and without forgery by clients."""

import ast
import asyncio
import io
import json
import logging
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import structlog

import gateway
from gateway.telemetry.logs import add_to_context, configure_logging, get_logger, request_context

TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJlc2lnbmF0dXJl"


class Log(io.BytesIO):
    """The logged lines."""

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.getvalue().splitlines()]


@pytest.fixture
def log() -> Iterator[Log]:
    """Redirect all logging of the process here during a test."""
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    stream = Log()
    configure_logging(level="info", stream=stream)
    yield stream
    logging.captureWarnings(False)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    root.handlers, root.level = before


def test_an_event_is_one_line_of_json(log: Log) -> None:
    get_logger("gateway.catalog").info("table.committed", table="t-1", updates=3)
    (line,) = log.lines
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "table.committed",
        "level": "info",
        "source": "gateway.catalog",
        "table": "t-1",
        "updates": 3,
    }


async def test_url_of_a_webhook_is_in_no_line(log: Log) -> None:
    """The path of a webhook is often its secret. The client would also write a line for each event."""
    transport = httpx2.MockTransport(lambda _: httpx2.Response(204))
    async with httpx2.AsyncClient(transport=transport) as client:
        await client.post("https://hooks.example.com/services/hunter22")
    assert log.lines == []


def test_library_log_lines_have_the_same_format(log: Log) -> None:
    logging.getLogger("aiohttp.access").warning("GET %s took %d s", "/x", 3)
    logging.getLogger("some.library").debug("not shown")
    (line,) = log.lines
    assert (line["event"], line["level"], line["source"]) == ("GET /x took 3 s", "warning", "aiohttp.access")


def test_python_warnings_have_the_same_format(log: Log) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        # pytest's recorder would intercept it; this is the function that captureWarnings installs.
        warnings.showwarning = logging._showwarning  # type: ignore[attr-defined]  # typeshed leaves it out
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert [line["source"] for line in log.lines] == ["py.warnings"]


@pytest.mark.parametrize("source", ["ours", "library"])
def test_a_logged_exception_keeps_its_traceback_without_secrets(log: Log, source: str) -> None:
    try:
        try:
            raise KeyError(f"password={TOKEN}")
        except KeyError as inner:
            raise RuntimeError(f"Authorization: Bearer {TOKEN}") from inner
    except RuntimeError:
        if source == "ours":
            get_logger("x").exception("request.failed")
        else:
            logging.getLogger("x").exception("failed with %s", TOKEN)
    (line,) = log.lines
    assert "RuntimeError" in line["exception"]
    assert "KeyError" in line["exception"]
    assert "test_logs.py" in line["exception"]
    assert TOKEN[10:] not in log.getvalue().decode()


@pytest.mark.parametrize(
    "evil",
    [
        'x\n{"event":"user.granted"}',
        "x\r\nforged",
        'x","level":"critical',
        "x\u2028y",
        "x\x1b[2Jy",
        "x\x9b2Jy",
        "x\u202ey",
        "x\ud800y",
        "x\x00y",
        "\x85",
    ],
)
def test_client_text_cannot_forge_a_log_line_or_control_a_terminal(log: Log, evil: str) -> None:
    get_logger("x").info("table.created", name=evil, **{evil: 1})
    logging.getLogger("lib").warning("name %s", evil)
    raw = log.getvalue()
    assert raw.count(b"\n") == 2
    assert len(raw.decode().splitlines()) == 2
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\ud800-\udfff]", raw.decode())
    ours, library = log.lines
    assert (ours["event"], ours["level"], library["level"]) == ("table.created", "info", "warning")
    if "\ud800" not in evil:
        assert ours["name"] == evil, "the name must be escaped and not removed"


async def test_log_context_of_concurrent_requests_is_separate(log: Log) -> None:
    async def handle(number: int) -> None:
        with request_context(request_id=f"r-{number}"):
            await asyncio.sleep(0)
            add_to_context(operation="LoadTable", actor=f"oidc~{number}")
            await asyncio.sleep(0)
            get_logger("x").info("table.loaded", number=number)
            logging.getLogger("lib").warning("number %d", number)

    await asyncio.gather(*(handle(number) for number in range(20)))
    for line in log.lines:
        number = line.get("number", line["event"].removeprefix("number "))
        assert (line["request_id"], line["actor"], line["operation"]) == (f"r-{number}", f"oidc~{number}", "LoadTable")


def test_log_context_is_cleared_after_a_request(log: Log) -> None:
    with request_context(request_id="r-1"):
        add_to_context(operation="LoadTable", actor="oidc~alice")
    get_logger("x").info("outbox.drained")
    assert log.lines[0].keys() == {"event", "level", "source", "timestamp"}


def test_a_malformed_library_log_call_is_logged_as_a_lost_record(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    # Passed to our handler only: pytest's handlers raise for such a record.
    (ours,) = [handler for handler in logging.getLogger().handlers if type(handler).__module__.startswith("gateway.")]
    ours.handle(logging.makeLogRecord({"name": "lib", "levelname": "WARNING", "msg": "%d", "args": (TOKEN,)}))
    assert [(line["event"], line["source"], line["reason"]) for line in log.lines] == [
        ("record.lost", "lib", "TypeError")
    ]
    assert capsys.readouterr() == ("", "")


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="log level"):
        configure_logging(level="verbose")


EVENT_NAME = re.compile(
    r"([a-z][a-z_]*\.)+[a-z_]*(ed|en|wn|gan|gun|lost|sent|found|shut|ran|left|kept|held|made|built|set)(_[a-z]+)*"
)
LOG_CALLS = {"debug", "info", "warning", "error", "critical", "exception"}


def test_every_event_is_named_noun_then_past_tense() -> None:
    root = Path(gateway.__file__).parents[1]
    wrong = []
    for source in (*root.glob("gateway/**/*.py"), *root.glob("lakegate/**/*.py")):
        for call in ast.walk(ast.parse(source.read_text())):
            if (
                not isinstance(call, ast.Call)
                or not isinstance(call.func, ast.Attribute)
                or call.func.attr not in LOG_CALLS
            ):
                continue
            if not isinstance(call.func.value, ast.Name) or call.func.value.id not in ("log", "_log", "logger"):
                continue
            name = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
            if not isinstance(name, str) or EVENT_NAME.fullmatch(name) is None:
                wrong.append(f"{source.relative_to(root)}:{call.lineno}: {name!r}")
    assert wrong == [], "log events must be literals like 'table.committed'; variable parts belong in fields"
