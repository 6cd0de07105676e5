# SPDX-License-Identifier: Apache-2.0
"""Draw the traces of one load and one commit: `python -m tests.trace_pictures` writes `docs/pictures/trace-*.svg`.

The traces are those of a gateway on an embedded stack, recorded after some requests of the same kind.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from tests.integration.conftest import _up
from tests.support.servers.otlp import attributes, collector
from tests.support.servers.toxic import second_gateway
from tests.support.stack.world import Person, World, unique

DIRECTORY = Path(__file__).parent.parent / "docs" / "pictures"
_CLIENT_SPAN = "b7ad6b7169203331"
_CALLERS = ("admin", "carol")
_WARM = 5
_WIDTH, _LABELS, _LINE, _TOP, _FOOT = 1100, 470, 22, 48, 26
_COLOURS = {
    "postgresql": "#33658a",
    "openfga": "#8a4f9e",
    "opa": "#2f855a",
    "store": "#b7791f",
    "audit": "#9b2c2c",
    "door": "#4a5568",
}
_REQUEST = "#1a202c"
#: Attributes in labels, and what follows their value.
_DETAILS = {"db.query.summary": "", "lakegate.outcome": "", "lakegate.bytes": " bytes"}


def picture(title: str, spans: Sequence[Any]) -> str:
    """Return an SVG of a trace: a line for each span, below its parent, with a bar for its time.

    `spans` are those of one request, in the order of their start.
    """
    (request,) = (span for span in spans if span.parent_span_id.hex() == _CLIENT_SPAN)
    lines = [(0, request), *_below(request, spans, 1)]
    height = _TOP + _LINE * len(lines) + _FOOT
    length = request.end_time_unix_nano - request.start_time_unix_nano
    scale = (_WIDTH - _LABELS - 90) / length
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        'font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="26" font-size="16" fill="{_REQUEST}">{escape(title)}</text>',
    ]
    parts += _axis(length / 1e6, scale * 1e6, height)
    for number, (depth, span) in enumerate(lines):
        parts += _line(
            span, depth, _TOP + number * _LINE, span.start_time_unix_nano - request.start_time_unix_nano, scale
        )
    return "\n".join([*parts, "</svg>", ""])


def _below(parent: Any, spans: Sequence[Any], depth: int) -> list[tuple[int, Any]]:
    """Return (depth, span) of all spans below `parent`, each before its own children."""
    found: list[tuple[int, Any]] = []
    for span in spans:
        if span.parent_span_id == parent.span_id:
            found += [(depth, span), *_below(span, spans, depth + 1)]
    return found


def _axis(milliseconds: float, scale: float, height: int) -> list[str]:
    """Return lines at round times. `scale` is the width of a millisecond."""
    step = next(each for each in (0.5, 1, 2, 5, 10, 20, 50, 100, 500, 1000) if milliseconds / each <= 8 or each == 1000)
    parts = []
    for number in range(int(milliseconds / step) + 1):
        x = _LABELS + number * step * scale
        parts += [
            f'<line x1="{x:.1f}" y1="{_TOP - 6}" x2="{x:.1f}" y2="{height - _FOOT + 4}" stroke="#e2e8f0"/>',
            f'<text x="{x:.1f}" y="{height - 8}" fill="#4a5568" text-anchor="middle">{number * step:g} ms</text>',
        ]
    return parts


def _line(span: Any, depth: int, y: int, after: int, scale: float) -> list[str]:
    """Return the label and the bar of a span that begins `after` nanoseconds of the request."""
    details = [f"{value}{_DETAILS[name]}" for name, value in attributes(span).items() if name in _DETAILS]
    label = span.name if not details else f"{span.name}: {', '.join(details)}"
    took = span.end_time_unix_nano - span.start_time_unix_nano
    x, width = _LABELS + after * scale, max(1.5, took * scale)
    colour = _COLOURS.get(span.name.partition(".")[0], _REQUEST)
    return [
        f'<text x="{12 + 16 * depth}" y="{y + 15}" fill="{colour}">{escape(_shortened(label, 66 - 2 * depth))}</text>',
        f'<rect x="{x:.1f}" y="{y + 4}" width="{width:.1f}" height="{_LINE - 8}" rx="2" fill="{colour}"/>',
        f'<text x="{x + width + 5:.1f}" y="{y + 15}" fill="#4a5568">{took / 1e6:.1f} ms</text>',
    ]


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def main() -> None:
    """Record both traces, and write both files."""
    DIRECTORY.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as scratch,
        _up() as ready,
        collector() as (received, address),
        second_gateway(
            ready,
            Path(scratch) / "gateway.log",
            TRACING__ENDPOINT=f"{address}/v1/traces",
            TRACING__TRUST_CLIENTS="true",
        ) as (base, _),
    ):
        world = World(ready)
        admin, carol = (Person(name, one.id, one.token, base) for name, one in world.people.items() if name in _CALLERS)
        namespace = unique("ns")
        assert admin.post(f"{world.root}/namespaces", {"namespace": [namespace]}).status_code == 200
        change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
        for number in range(_WARM + 1):
            table = world.table(namespace)
            world.grant("select", carol, "table", table.uuid)
            # The flag at the end: only the traces of the last round are recorded.
            sent = [f"00-{digit * 32}-{_CLIENT_SPAN}-0{int(number == _WARM)}" for digit in "12"]
            load = {"traceparent": sent[0], "x-iceberg-access-delegation": "vended-credentials"}
            assert carol.get(table.path, headers=load).status_code == 200
            assert admin.post(table.path, change, headers={"traceparent": sent[1]}).status_code == 200
        for digit, name, title in (
            ("1", "load", "GET table with credentials: first load after a grant"),
            ("2", "commit", "POST table: commit of a property, by the owner"),
        ):
            spans = received.trace(digit * 32, parent=_CLIENT_SPAN)
            (DIRECTORY / f"trace-{name}.svg").write_text(picture(title, spans))
        admin.http.close()
        carol.http.close()
        world.close()


if __name__ == "__main__":
    main()
