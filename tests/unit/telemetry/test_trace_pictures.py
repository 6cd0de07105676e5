# SPDX-License-Identifier: Apache-2.0
"""Pictures of traces: a span lies below its parent, its bar at its time, and its text is escaped."""

from __future__ import annotations

from xml.etree import ElementTree

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.trace_pictures import DIRECTORY, picture

CLIENT = bytes.fromhex("b7ad6b7169203331")
SVG = "{http://www.w3.org/2000/svg}"


def _span(id: bytes, parent: bytes, name: str, start: int, end: int, **more: str) -> Span:
    found = [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in more.items()]
    return Span(
        span_id=id,
        parent_span_id=parent,
        name=name,
        start_time_unix_nano=start * 1_000_000,
        end_time_unix_nano=end * 1_000_000,
        attributes=found,
    )


def test_spans_are_drawn_below_their_parents_at_their_times() -> None:
    """The spans arrive by their start: a child of the first span must not lie below the second."""
    spans = [
        _span(b"a" * 8, CLIENT, "load_table", 0, 100),
        _span(b"b" * 8, b"a" * 8, "openfga.check", 10, 60),
        _span(b"c" * 8, b"a" * 8, "opa.decide", 20, 40),
        _span(b"d" * 8, b"b" * 8, "postgresql.statement", 30, 40, **{"db.query.summary": "SELECT <grants>"}),
    ]
    drawn = ElementTree.fromstring(picture("A & B", spans))  # noqa: S314 - our own text
    texts = [text.text for text in drawn.iter(f"{SVG}text")]
    names = [text for text in texts if text and text[0].isalpha() and text != "A & B"]
    assert names == ["load_table", "openfga.check", "postgresql.statement: SELECT <grants>", "opa.decide"]
    bars = [(float(bar.get("x", "0")), float(bar.get("width", "0"))) for bar in drawn.iter(f"{SVG}rect")][1:]
    (origin, length), check, statement, decide = bars
    assert [round((x - origin) / length, 3) for x, _ in (check, statement, decide)] == [0.1, 0.3, 0.2]
    assert [round(width / length, 3) for _, width in (check, statement, decide)] == [0.5, 0.1, 0.2]


def test_the_committed_pictures_are_complete() -> None:
    for name, spans in (
        ("load", ("openfga.http", "store.session")),
        ("commit", ("postgresql.transaction", "store.put")),
    ):
        drawn = ElementTree.parse(DIRECTORY / f"trace-{name}.svg").getroot()  # noqa: S314 - a file of the repository
        texts = " ".join(text.text or "" for text in drawn.iter(f"{SVG}text"))
        assert [each for each in spans if each not in texts] == []
