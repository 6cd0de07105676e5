# SPDX-License-Identifier: Apache-2.0
"""Opening verifiers from the settings: each kind, invalid settings, installed packages, and their health."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway import settings
from gateway.assembly.extensions import NoSuchExtension
from gateway.assembly.verifiers import open_verifiers
from gateway.settings import SettingsError
from gateway.settings.verifiers import BUILT_IN, verifier_problems
from gateway.telemetry.health import HealthMonitor
from gateway.telemetry.metrics import Metrics
from gateway.tls import trusted
from gateway.verification.panel import Panel
from gateway.verification.port import Approved, ChangeKind, Rejected
from tests.support.docs_commands import blocks
from tests.support.door.verified_changes import change, document, field
from tests.support.verifier_settings import SECRET, variables

TOY = """
class Toy:
    def __init__(self, name, options):
        self.name, self.options = name, options

    def concerns(self, change_kind, object_type):
        return True

    async def verify(self, change):
        from gateway.verification.port import Approved, Rejected
        return Rejected((self.options["why"],)) if change.name == "orders" else Approved()

    async def close(self):
        pass


def open_toy(name, options):
    return Toy(name, options)


def open_nothing(name, options):
    return object()


def open_broken(name, options):
    raise RuntimeError("not today")
"""


def opened(
    stack: AsyncExitStack,
    environment: dict[str, str],
    health: HealthMonitor | None = None,
    metrics: Metrics | None = None,
) -> Panel | None:
    read, watched = settings.load(environment), health or HealthMonitor()
    return open_verifiers(read, trusted(None, None), metrics or Metrics(), watched, stack)


async def test_without_settings_there_is_no_panel() -> None:
    async with AsyncExitStack() as stack:
        assert opened(stack, {}) is None


@pytest.mark.parametrize("kind", BUILT_IN)
async def test_each_kind_is_opened_and_has_its_health(kind: str, tmp_path: Path) -> None:
    more = {"CONTRACTS_DIR": str(tmp_path)} if kind == "contract" else {}
    health = HealthMonitor()
    async with AsyncExitStack() as stack:
        panel = opened(stack, variables(kind, "my_own", **more), health)
        assert panel is not None and panel.names == ("my-own",)
        # `schema` and `columns` judge only commits.
        assert panel.concerns(ChangeKind.COMMIT, "table")
        report = await health.check_now()
        assert [(each.name, each.status) for each in report.services["verifiers"]] == [("my-own", "ok")]


async def test_settings_reach_the_rules() -> None:
    environment = variables("columns", "b") | variables("schema", "a", ON_VIOLATION="pending")
    environment |= variables("properties", "c", WAREHOUSES="018f0000-0000-7000-8000-0000000000ff")
    environment |= variables("partitions", "d", CHANGES="create")
    async with AsyncExitStack() as stack:
        panel = opened(stack, environment)
        assert panel is not None
        before, after = document([field(1, "id")]), document([field(1, "key")])
        judgement = await panel.verify(change(before=before, after=after))
        assert judgement.verdict == Rejected(("b: protected column id (id 1) must not be renamed to key",))


async def test_questions_are_counted_by_outcome_and_failed_ones_logged() -> None:
    metrics, health = Metrics(), HealthMonitor()
    async with AsyncExitStack() as stack:
        logs = stack.enter_context(capture_logs())
        panel = opened(stack, variables("schema"), health, metrics)
        assert panel is not None
        await panel.verify(change(before=document([field(1, "id")]), after=document([])))
        assert (await panel.verify(change(before=document()))).unavailable
        report = await health.check_now()
        assert report.healthy and report.services["verifiers"][0].status == "error"
    shown = metrics.render().decode()
    for outcome in ("rejected", "failed"):
        assert f'lakegate_verifier_duration_seconds_count{{outcome="{outcome}",verifier="v"}} 1.0' in shown
    (failed,) = (each for each in logs if each["event"] == "verifier.failed")
    assert (failed["verifier"], failed["reason"]) == ("v", "the change has no document of the new state")


async def test_version_changes_with_each_rule_and_not_with_the_secret() -> None:
    found = set()
    for more in (
        {},
        {"SECRET": SECRET.replace("a2tr", "b2tr")},
        {"DOCUMENTS": "false"},
        {"URL": "https://other.example"},
    ):
        async with AsyncExitStack() as stack:
            panel = opened(stack, variables("webhook", **more))
            assert panel is not None
            found.add(panel.version)
    assert len(found) == 3


async def test_documented_settings_open_their_verifiers() -> None:
    (block,) = (block for block in blocks() if block.text.startswith("LAKEGATE__VERIFIERS__"))
    async with AsyncExitStack() as stack:
        panel = opened(stack, dict(line.split("=", 1) for line in block.text.splitlines()))
        assert panel is not None and panel.names == ("compatible", "owned", "review")


@pytest.mark.parametrize(
    ("kind", "more", "message"),
    [
        ("webhook", {"URL": "http://verifier.example"}, "URL must begin with https"),
        ("webhook", {"SECRET": "hidden"}, "the secret of a webhook must be whsec_"),
        ("columns", {"PROTECTED_COLUMNS": "#x"}, "'#x' must be the name of a column"),
        ("properties", {"REQUIRED_PROPERTIES": "a=("}, "the pattern of the property a"),
        ("partitions", {"PARTITION_TRANSFORMS": "days"}, "days must be one of"),
        ("contract", {"CONTRACTS_DIR": "/nowhere/at/all"}, "is no directory"),
    ],
)
async def test_invalid_setting_stops_the_start_by_its_name(kind: str, more: dict[str, str], message: str) -> None:
    async with AsyncExitStack() as stack:
        with pytest.raises(SettingsError, match=f"^LAKEGATE__VERIFIERS__MY_OWN: .*{message}") as refused:
            opened(stack, variables(kind, "my_own", **more))
        assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "more", "problem"),
    [
        ("webhook", {"SECRET": ""}, "SECRET must be set"),
        ("contract", {}, "CONTRACTS_DIR must be set"),
        ("schema", {"PROTECTED_COLUMNS": "id"}, "PROTECTED_COLUMNS is not used by the kind schema; remove it"),
        ("webhook", {"ON_VIOLATION": "pending"}, "ON_VIOLATION is not used by the kind webhook; remove it"),
        ("schema", {"OPTIONS": "a=b"}, "OPTIONS is not used by the kind schema; remove it"),
        ("schema", {"TIMEOUT": "30s"}, "TIMEOUT must be less than MAX_REQUEST_TIME"),
        ("schema", {"WAREHOUSES": "sales"}, "WAREHOUSES must contain ids, and 'sales' is none"),
    ],
)
def test_useless_or_missing_setting_is_a_problem(kind: str, more: dict[str, str], problem: str) -> None:
    read = settings.load(variables(kind, "my_own", **more))
    (line,) = verifier_problems(read.verifiers, read.max_request_time)
    assert line.startswith(f"LAKEGATE__VERIFIERS__MY_OWN__{problem}")


@pytest.mark.parametrize("kind", BUILT_IN)
def test_minimal_settings_have_no_problem(kind: str) -> None:
    read = settings.load(variables(kind, **({"CONTRACTS_DIR": "/c"} if kind == "contract" else {})))
    assert verifier_problems(read.verifiers, read.max_request_time) == []


def test_secret_is_in_no_text_of_the_settings() -> None:
    read = settings.load(variables("webhook"))
    assert SECRET not in f"{read!r} {read.verifiers['v'].public()}"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a package with entry points, as pip does."""
    (tmp_path / "toy_verifier.py").write_text(TOY)
    metadata = tmp_path / "toy_verifier-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy_verifier\nVersion: 1.0\n")
    names = [f"{name} = toy_verifier:open_{name}" for name in ("toy", "nothing", "broken")]
    (metadata / "entry_points.txt").write_text("\n".join(["[lakegate.verifiers]", *names]) + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("toy_verifier", None)


@pytest.mark.usefixtures("package")
async def test_verifier_of_a_package_is_asked_with_its_options() -> None:
    async with AsyncExitStack() as stack:
        panel = opened(stack, variables("toy", OPTIONS="why=the quarter is closed", CHANGES="drop"))
        assert panel is not None
        assert (await panel.verify(change(ChangeKind.DROP))).verdict == Rejected(("v: the quarter is closed",))
        assert (await panel.verify(change(ChangeKind.COMMIT))).verdict == Approved()


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("absent", r"Known names: broken, columns, contract, .*toy, webhook"),
        ("nothing", "returned no verifier with the name 'v'"),
        ("broken", "cannot be opened: RuntimeError: not today"),
    ],
)
async def test_package_that_provides_no_verifier_stops_the_start(kind: str, message: str) -> None:
    async with AsyncExitStack() as stack:
        with pytest.raises(NoSuchExtension, match=message):
            opened(stack, variables(kind))
