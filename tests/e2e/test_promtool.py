# SPDX-License-Identifier: Apache-2.0
"""The alert rules and the dashboard, checked by promtool: syntax, and the tests in which each alert fires or is silent.

Opt-in by `make test-observability`, which sets LAKEGATE_TEST_PROMTOOL: building promtool takes minutes. Checks that
need no promtool are in `tests/unit/deploy/test_observability.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from gateway import settings
from lakegate.local.install import build_go_tools
from lakegate.local.toolchain import GoTool, cache

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        not os.environ.get("LAKEGATE_TEST_PROMTOOL"), reason="needs promtool: run `make test-observability`"
    ),
]

PROMTOOL = GoTool("promtool", "v0.305.0", "github.com/prometheus/prometheus/cmd/promtool")
DIRECTORY = Path(__file__).resolve().parents[2] / "deploy" / "observability"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def promtool() -> Run:
    kept = cache(settings.load())
    build_go_tools([PROMTOOL], kept, Console(stderr=True))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(kept.go_tool(PROMTOOL)), *arguments], cwd=DIRECTORY, capture_output=True, text=True, timeout=120
        )

    return run


def test_the_rules_are_valid(promtool: Run) -> None:
    checked = promtool("check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_each_alert_fires_and_stays_silent_in_its_tests(promtool: Run) -> None:
    tested = promtool("test", "rules", "alerts_test.yaml")
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_a_wrong_rule_and_a_wrong_test_are_found(promtool: Run, tmp_path: Path) -> None:
    """Without this, a promtool that checks nothing would pass."""
    rules = (DIRECTORY / "alerts.yaml").read_text()
    broken = tmp_path / "broken.yaml"
    broken.write_text(rules.replace("sum by (job)", "sum by (job", 1))
    assert promtool("check", "rules", str(broken)).returncode != 0
    (tmp_path / "alerts.yaml").write_text(rules.replace("> 0.05", "> 5", 1))
    (tmp_path / "alerts_test.yaml").write_text((DIRECTORY / "alerts_test.yaml").read_text())
    assert promtool("test", "rules", str(tmp_path / "alerts_test.yaml")).returncode != 0


def test_each_expression_of_the_dashboard_is_valid(promtool: Run, tmp_path: Path) -> None:
    """Grafana replaces the variables before it sends an expression; promtool formats what it can parse."""
    panels = json.loads((DIRECTORY / "lakegate-dashboard.json").read_text())["panels"]
    expressions = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    assert len(expressions) > 20
    records = [
        {"record": f"panel:{number}", "expr": text.replace("$__rate_interval", "5m").replace("$job", ".+")}
        for number, text in enumerate(expressions)
    ]
    file = tmp_path / "panels.yaml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": records}]}))
    checked = promtool("check", "rules", str(file))
    assert checked.returncode == 0, checked.stdout + checked.stderr
