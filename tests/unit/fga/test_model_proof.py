# SPDX-License-Identifier: Apache-2.0
"""The solver's verdict on two models agrees with brute force, and the real OpenFGA confirms a synthesized world."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings

from gateway.cli import main
from gateway.cli.common import DIFFERS
from gateway.fga.compiled import compiled_model
from gateway.fga.model_diff import compare_models
from gateway.fga.model_proof import Bounds, gained
from tests.support.docs_commands import ROOT
from tests.support.model_edits import Edited, above, computed, edited_models

SHIPPED = compiled_model()
OPEN = {"union": {"child": [computed("manage_grants"), computed("ownership"), above("manages_grants")]}}


def test_equal_models_are_proven() -> None:
    assert gained(SHIPPED, SHIPPED, Bounds()) is None


def test_narrower_model_is_proven_and_its_reverse_is_not() -> None:
    narrower = Edited().rule("table", "selects", {"union": {"child": [computed("select"), above("selects")]}}).model
    assert gained(SHIPPED, narrower, Bounds()) is None
    world = gained(narrower, SHIPPED, Bounds())
    assert world is not None
    assert {each.relation for each in world.tuples} & {"modify", "ownership"}


def test_dropped_exclusion_has_a_world_with_managed_access() -> None:
    world = gained(SHIPPED, Edited().rule("table", "manages_grants", OPEN).model, Bounds())
    assert world is not None
    assert {"managed_access", "ownership"} <= {each.relation for each in world.tuples}


def test_too_small_bounds_hide_a_gain_that_larger_ones_show() -> None:
    """Only the namespace above a namespace gives the right, so a world needs two."""
    model = Edited()
    next(each for each in model.model["type_definitions"] if each["type"] == "namespace")["relations"]["far"] = above(
        "create"
    )
    wider = model.also("table", "can_drop", above("far")).rule("warehouse", "create_here", computed("create")).model
    namespace = next(each for each in wider["type_definitions"] if each["type"] == "namespace")
    namespace["relations"]["far"] = above("far_source")
    namespace["relations"]["far_source"] = {"intersection": {"child": [computed("create"), above("can_create_table")]}}
    namespace["metadata"]["relations"] |= {"far": {}, "far_source": {}}
    assert gained(SHIPPED, wider, Bounds(namespaces=2)) is None
    assert gained(SHIPPED, wider, Bounds(namespaces=3)) is not None


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(edited_models())
def test_verdict_agrees_with_the_implications_of_both_models(after: Mapping[str, Any]) -> None:
    """The implications are compared with brute force in `test_model_diff.py`; a proof and a difference exclude each
    other.
    """
    widened = [each for each in compare_models(SHIPPED, after, 2).widened if each.relation.startswith("can_")]
    world = gained(SHIPPED, after, Bounds(namespaces=2, roles=1))
    assert (world is None) == (not widened), (world, widened)
    if world is not None:
        type = world.object.partition(":")[0]
        assert (type, world.relation) in {(each.type, each.relation) for each in widened}


def test_command_prints_the_world_and_names_the_missing_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    done = CliRunner().invoke(main, ["model", "prove", "packaged", str(ROOT / "fga_model")])
    assert (done.exit_code, done.stdout.startswith("proven: no principal gains a right (within 2 namespaces")) == (
        0,
        True,
    )
    monkeypatch.setattr(sys.modules["gateway.cli.model_prove"], "named_model", lambda name: VARIANTS[name])
    done = CliRunner().invoke(main, ["model", "prove", "shipped", "wider"])
    assert done.exit_code == DIFFERS
    assert "describe table:0" in done.stdout
    assert "(searched within 2 namespaces, 2 roles, one user and one object of each other type" in done.stdout
    monkeypatch.setitem(sys.modules, "z3", None)
    monkeypatch.delitem(sys.modules, "gateway.fga.model_proof")
    done = CliRunner().invoke(main, ["model", "prove", "shipped", "wider"])
    assert (done.exit_code, "pip install 'lakegate[prove]'" in done.stderr) == (1, True)


VARIANTS = {"shipped": SHIPPED, "wider": Edited().also("table", "can_read_data", computed("describe")).model}
