# SPDX-License-Identifier: Apache-2.0
"""Check that the dashboard and the alert rules use only metrics, labels and runbooks that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
DIRECTORY = ROOT / "deploy" / "observability"
#: Labels that Prometheus adds to every series.
TARGET_LABELS = {"job", "instance"}
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


def exported() -> dict[str, set[str]]:
    """Return the labels of each series that a scrape contains, by its name."""
    series: dict[str, set[str]] = {}
    for line in (ROOT / "tests/access/goldens/metrics.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) < 3 or cells[1] not in SUFFIXES:
            continue
        for suffix in SUFFIXES[cells[1]]:
            labels = {label.strip() for label in cells[2].split(",") if label.strip()}
            series[cells[0] + suffix] = labels | TARGET_LABELS | ({"le"} if suffix == "_bucket" else set())
    return series


def faults(expression: str, series: dict[str, set[str]]) -> list[str]:
    """Return the names in a PromQL expression that no series has. Groupings may name labels of its series only."""
    found = []
    used: set[str] = set()
    for name, selector in re.findall(r"\b(lakegate_\w+)(?:\{([^}]*)\})?", expression):
        if name not in series:
            found.append(name)
            continue
        used |= series[name]
        matched = re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", selector)
        found += [f"{name}{{{label}}}" for label in matched if label not in series[name]]
    for grouping in re.findall(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", expression):
        found += [label for label in re.split(r"[,\s]+", grouping) if label and label not in used]
    return found


def rules() -> list[dict[str, Any]]:
    """Return all alert rules."""
    groups = yaml.safe_load((DIRECTORY / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    """Return the dashboard."""
    parsed: dict[str, Any] = json.loads((DIRECTORY / "lakegate-dashboard.json").read_text())
    return parsed


def expressions() -> list[str]:
    """Return every PromQL expression of the dashboard and of the rules."""
    panels = [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", ())]
    return [*panels, *(rule["expr"] for rule in rules())]


def test_every_expression_names_exported_metrics_and_their_labels() -> None:
    series = exported()
    assert len(series) > 20
    assert {text: wrong for text in expressions() if (wrong := faults(text, series))} == {}


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("rate(lakegate_http_requests[5m])", "lakegate_http_requests"),
        ("sum(lakegate_nothing)", "lakegate_nothing"),
        ('lakegate_outbox_pending{queue="x"}', "lakegate_outbox_pending{queue}"),
        ("sum by (route) (rate(lakegate_http_requests_total[5m]))", "route"),
    ],
)
def test_wrong_metric_or_label_is_found(expression: str, wrong: str) -> None:
    assert faults(expression, exported()) == [wrong]


def test_every_exported_metric_has_a_panel() -> None:
    shown = " ".join(expressions())
    metrics = {re.sub(r"_(?:total|bucket|sum|count)$", "", name) for name in exported()}
    absent = {name for name in metrics if not re.search(rf"\b{name}(?:_total|_bucket|_count)?\b", shown)}
    assert absent == {
        "lakegate_drift_last_checked_timestamp_seconds",
        "lakegate_scope_oldest_verdict_timestamp_seconds",
    }


def test_every_alert_is_complete_and_its_runbook_exists() -> None:
    headings = re.findall(r"^## (\w+)$", (ROOT / "docs/alerts.md").read_text(), re.MULTILINE)
    assert sorted(rule["alert"] for rule in rules()) == sorted(headings)
    for rule in rules():
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"]["runbook"] == f"docs/alerts.md#{rule['alert'].lower()}"
        assert rule["annotations"]["summary"] and rule["annotations"]["description"]


def test_every_alert_is_tested_firing_and_silent() -> None:
    tests = yaml.safe_load((DIRECTORY / "alerts_test.yaml").read_text())["tests"]
    cases = [(case["alertname"], bool(case["exp_alerts"])) for test in tests for case in test["alert_rule_test"]]
    assert sorted(cases) == sorted((rule["alert"], fires) for rule in rules() for fires in (True, False))


def test_panels_have_distinct_ids_and_do_not_overlap() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
