# SPDX-License-Identifier: Apache-2.0
"""The relationship model builds as the weighted graph of OpenFGA, which its fast paths need.

`model_graph/` is a small program with OpenFGA's own package, in the version that the pinned OpenFGA uses. It is built
once and kept beside the other tools.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from gateway import settings as all_settings
from gateway.fga.compiled import compiled_model
from lakegate.local.install import go_program, locked_environment
from lakegate.local.programs import Steps, run
from lakegate.local.toolchain import cache

SOURCE = Path(__file__).parent / "model_graph"

Build = Callable[[object], "subprocess.CompletedProcess[str]"]


def program() -> Path:
    """Return the path of the program; build it if it is missing."""
    kept = cache(all_settings.load())
    content = b"".join((SOURCE / name).read_bytes() for name in ("go.mod", "go.sum", "main.go"))
    target = kept.root / "tools" / f"model-graph-{hashlib.sha256(content).hexdigest()[:12]}" / "model-graph"
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(prefix="part-", dir=target.parent) as part,
            Steps(Console(quiet=True), 1) as steps,
            go_program(kept, steps, lambda name, step: locked_environment(kept, name, step.notify)) as (
                go,
                environment,
            ),
        ):
            built = Path(part) / "model-graph"
            hint = "Check that the Go module proxy is reachable."
            run([go, "build", "-C", str(SOURCE), "-o", str(built), "."], environment, lambda _: None, hint)
            built.rename(target)
    return target


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Return a function that builds the graph of a model, and returns the finished process."""
    graph, file = program(), tmp_path_factory.mktemp("model") / "model.json"

    def built(model: object) -> subprocess.CompletedProcess[str]:
        file.write_text(json.dumps(model), encoding="utf-8")
        return subprocess.run([graph, file], capture_output=True, text=True, timeout=60, check=False)

    return built


def test_model_builds_as_a_weighted_graph(build: Build) -> None:
    done = build(compiled_model())
    assert done.returncode == 0, done.stderr
    assert "the weighted graph has" in done.stdout


def test_intersection_in_a_cycle_is_detected(build: Build) -> None:
    """Model 1.9 granted `enforcer` below warehouses so, and OpenFGA used none of its fast paths."""
    model = compiled_model()
    namespace = next(each for each in model["type_definitions"] if each["type"] == "namespace")
    above = {"computedUserset": {"relation": "can_grant_enforcer"}, "tupleset": {"relation": "parent"}}
    arms = [{"computedUserset": {"relation": "manages_grants"}}, {"tupleToUserset": above}]
    namespace["relations"]["can_grant_enforcer"] = {"intersection": {"child": arms}}
    done = build(model)
    assert done.returncode == 1
    assert "operands AND or BUT NOT cannot be involved in a cycle" in done.stderr
