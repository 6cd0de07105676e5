# SPDX-License-Identifier: Apache-2.0
"""Log lines: one JSON object each, of our own events and of every library, through one chain.

Events are named `noun.past_tense` (`table.committed`, `credentials.vended`), so that they can be counted; everything
that varies goes into fields. Use::

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

from gateway.telemetry.redaction import redact_fields

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

# In JSON a line break is escaped, but these still move the cursor, hide or reorder text on an operator's terminal:
# DEL, the C1 controls, zero-width characters, line and paragraph separators, bidirectional controls, the byte order
# mark (all in UTF-8).
_DECEPTIVE = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\x8b-\x8f\xa8-\xae]|\xe2\x81[\xa0-\xa9]|\xef\xbb\xbf")

_encode = msgspec.json.Encoder(decimal_format="string").encode


def get_logger(name: str) -> FilteringBoundLogger:
    """A logger whose lines carry `source: name`. Cheap; may be made at module level, before `configure_logging` ran."""
    return cast(FilteringBoundLogger, structlog.get_logger(source=name))


@contextmanager
def request_context(*, request_id: str, client_request_id: str | None = None) -> Iterator[None]:
    """Add the request's ids to every line logged inside, also by libraries; on leaving, all context of the request is
    gone. `client_request_id` is what the caller sent, if anything.
    """
    context = {"request_id": request_id, "operation": None, "actor": None}
    if client_request_id is not None:
        context["client_request_id"] = client_request_id
    with structlog.contextvars.bound_contextvars(**context):
        yield


def add_to_context(*, operation: str | None = None, actor: str | None = None) -> None:
    """Add what became known after the request began; inside `request_context` only. `actor` is an id, never a token."""
    known = {"operation": operation, "actor": actor}
    structlog.contextvars.bind_contextvars(**{name: value for name, value in known.items() if value is not None})


def configure_logging(*, level: str = "INFO", stream: BinaryIO | None = None) -> None:
    """Send all lines of `level` and above to `stream` (standard output when None). Called once by each process.

    `level` is one of `LEVELS` in any letter case; raises `ValueError` otherwise. Replaces the handlers of the root
    logger, so that a library cannot print beside the chain; warnings of Python come through it too.
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
        cache_logger_on_first_use=False,  # module-level loggers are made before this runs
    )
    root = logging.getLogger()
    root.handlers = [_LibraryHandler(chain, sink())]
    root.setLevel(name)
    logging.captureWarnings(True)


def processors() -> list[Processor]:
    """The chain, in order. Redaction comes after the exception became text and right before the encoder."""
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _redact,
        _render,
    ]


def _redact(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return redact_fields({name: value for name, value in event.items() if value is not None})


def _render(_logger: object, _method: str, event: MutableMapping[str, Any]) -> bytes:
    """One line of JSON. Text chosen by clients cannot start a new line, close a string or drive a terminal."""
    return _DECEPTIVE.sub(_escape, _encode(event))


def _escape(match: re.Match[bytes]) -> bytes:
    return f"\\u{ord(match[0].decode()):04x}".encode()


class _LibraryHandler(logging.Handler):
    """Takes the records of the standard library's logging through the same chain."""

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
            # Logging never raises into its caller. Not `handleError`: it prints the arguments as they are, past the
            # fence.
            with suppress(Exception):
                self._write("error", event="record.lost", source=record.name, reason=type(error).__name__)

    def _write(self, level: str, **event: Any) -> None:
        line: Any = event
        for processor in self._chain:
            line = processor(None, level, line)
        self._sink.msg(line)
