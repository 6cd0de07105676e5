# SPDX-License-Identifier: Apache-2.0
"""Write the log lines of the gateway and of every library. One chain of processors writes each as a JSON object.

Event names have the form `noun.past_tense` (`table.committed`, `credentials.vended`), so that events can be counted.
Variable data is in fields. Use::

    log = get_logger("gateway.vending")
    with request_context(request_id=...):
        add_to_context(operation="LoadTable", actor="oidc~alice")
        log.info("credentials.vended", table=table_id, expires_at=...)
"""

import logging
import re
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, cast

import msgspec
import structlog
from structlog.types import FilteringBoundLogger, Processor

from gateway.spans import current_trace_id
from gateway.telemetry.redaction import redact_fields

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

# JSON escapes line breaks, but not these characters (here in UTF-8), which move the cursor, hide or reorder text on a
# terminal: DEL, the C1 controls, zero-width characters, line and paragraph separators, bidirectional controls, the byte
# order mark.
_DECEPTIVE = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\x8b-\x8f\xa8-\xae]|\xe2\x81[\xa0-\xa9]|\xef\xbb\xbf")

_encode = msgspec.json.Encoder(decimal_format="string").encode


def get_logger(name: str) -> FilteringBoundLogger:
    """Return a logger whose lines have the field `source: name`. Modules may call it before `configure_logging`."""
    return cast(FilteringBoundLogger, structlog.get_logger(source=name))


@contextmanager
def request_context(*, request_id: str, client_request_id: str | None = None) -> Iterator[None]:
    """Context manager. Add the ids of the request to every line that is logged in the block, including lines of
    libraries.

    On exit it removes all context of the request. `client_request_id` is the id that the client sent, if any.
    """
    context = {"request_id": request_id, "operation": None, "actor": None}
    if client_request_id is not None:
        context["client_request_id"] = client_request_id
    with structlog.contextvars.bound_contextvars(**context):
        yield


def add_to_context(*, operation: str | None = None, actor: str | None = None) -> None:
    """Add the operation or actor to log lines. Works only inside `request_context`. `actor` is an id, never a token."""
    known = {"operation": operation, "actor": actor}
    structlog.contextvars.bind_contextvars(**{name: value for name, value in known.items() if value is not None})


def configure_logging(*, level: str = "INFO", stream: BinaryIO | None = None) -> None:
    """Write all lines of `level` and above to `stream` (standard output if None). Each process calls it once.

    `level` is one of `LEVELS` in any letter case; other text raises `ValueError`. The handlers of the root logger are
    replaced, so that libraries cannot bypass the chain. Python warnings also pass through the chain.
    """
    name = level.upper()
    if name not in LEVELS:
        raise ValueError(f"the log level must be one of {', '.join(LEVELS)}, not {level!r}")
    sink = structlog.BytesLoggerFactory(stream if stream is not None else sys.stdout.buffer)
    chain = processors()
    structlog.configure(
        processors=chain,
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[name]),
        logger_factory=sink,
        cache_logger_on_first_use=False,  # modules create loggers before this call
    )
    root = logging.getLogger()
    root.handlers = [_LibraryHandler(chain, sink())]
    root.setLevel(name)
    # httpx2 logs each request with its whole URL at INFO. The path or query of a webhook may be a secret.
    logging.getLogger("httpx2").setLevel(max(root.level, logging.WARNING))
    logging.captureWarnings(True)


def processors() -> list[Processor]:
    """Return the processors in order. Redaction is the last before the encoder, so that it sees formatted exceptions
    too.
    """
    return [
        structlog.contextvars.merge_contextvars,
        _add_trace,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _redact,
        _render,
    ]


def _add_trace(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add the id of the current trace. It is read only here, so that a request without a log line has no cost."""
    trace_id = current_trace_id()
    if trace_id is not None:
        event["trace_id"] = trace_id
    return event


def _redact(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return redact_fields({name: value for name, value in event.items() if value is not None})


def _render(_logger: object, _method: str, event: MutableMapping[str, Any]) -> bytes:
    """Encode an event as one line of JSON. Client text cannot start a line, end a string or control a terminal."""
    return _DECEPTIVE.sub(_escape, _encode(event))


def _escape(match: re.Match[bytes]) -> bytes:
    return f"\\u{ord(match[0].decode()):04x}".encode()


class _LibraryHandler(logging.Handler):
    """Handler that sends records of the standard library's logging through the same chain of processors."""

    def __init__(self, chain: list[Processor], sink: structlog.BytesLogger) -> None:
        super().__init__()
        self._chain = chain
        self._sink = sink

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._write(
                record.levelname.lower(), event=record.getMessage(), source=record.name, exc_info=record.exc_info
            )
        except Exception as error:
            # Logging never raises an exception to its caller. `handleError` is not used: it prints the arguments
            # without redaction.
            with suppress(Exception):
                self._write("error", event="record.lost", source=record.name, reason=type(error).__name__)

    def _write(self, level: str, **event: Any) -> None:
        line: Any = event
        for processor in self._chain:
            line = processor(None, level, line)
        self._sink.msg(line)
