# SPDX-License-Identifier: Apache-2.0
"""The documented configuration is accepted by the gateway, the pipeline and the engines."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from gateway import settings
from gateway.settings.env import PREFIX
from gateway.storage.registry import decode_profile
from gateway.storage.s3.profile import S3Profile
from lakegate.local import bootstrap, engines, object_store
from lakegate.local.ports import FIRST_CHOICES
from lakegate.spark.config import PipelineConfig, RestCatalog, parse_config
from lakegate.spark.session import catalog_options
from tests.support.docs_commands import ROOT, Block, block, blocks

_PREFIX = "spark.sql.catalog."
_OWN = ("uri", "warehouse", "token")


def _properties(text: str) -> dict[str, str]:
    """Parse lines of a name and a value, separated by `=` or spaces."""
    return dict(re.split(r"\s*=\s*|\s+", line, maxsplit=1) for line in text.strip().splitlines())


def _without_own(properties: dict[str, str], catalog: str) -> dict[str, str]:
    """Return the properties of a catalog that do not depend on the stack and its user."""
    own = {f"{_PREFIX}{catalog}.{name}" for name in _OWN}
    return {
        name.replace(f"{_PREFIX}{catalog}", _PREFIX): value for name, value in properties.items() if name not in own
    }


_FIELDS = {"catalog": f"http://127.0.0.1:{FIRST_CHOICES.gateway}/catalog", "warehouse": bootstrap.WAREHOUSE}
_STORE = {"endpoint": f"http://127.0.0.1:{FIRST_CHOICES.s3}", "region": object_store.REGION}
_CATALOG = engines.catalog_properties(**_FIELDS, **_STORE) + engines.CACHES_OFF + engines.STATISTICS_OFF


def test_the_readme_shows_the_spark_settings_that_lakegate_up_prints() -> None:
    shown = _properties(block("README.md", "spark.sql.extensions").text)
    assert shown == _properties(engines.SPARK.format(**_FIELDS).replace("<bearer token>", "<bearer-token>"))


@pytest.mark.parametrize(
    ("holding", "printed"), [("load_catalog", engines.PYICEBERG), ("CREATE SECRET", engines.DUCKDB)]
)
def test_the_readme_contains_what_lakegate_up_prints(holding: str, printed: str) -> None:
    shown = block("README.md", holding).text
    assert set(printed.format(**_FIELDS).splitlines()) <= set(shown.splitlines())


def test_the_readme_shows_the_catalog_of_trino_that_lakegate_up_prints() -> None:
    written = engines.catalog_properties(**_FIELDS, **_STORE, renewal=engines.RENEWING)
    written += engines.CACHES_OFF + engines.STATISTICS_OFF
    assert _properties(block("README.md", "connector.name=iceberg").text) == _properties(written)


def test_the_page_of_trino_starts_opa_with_the_options_of_lakegate_up() -> None:
    shown = shlex.split(block("docs/trino.md", "opa run --server").text)
    assert set(engines.OPA_OPTIONS) <= set(shown)
    assert f"--addr={engines.BRIDGE.removeprefix('http://')}" in shown


def test_lakegate_up_sets_documented_variables_of_the_bridge() -> None:
    client = engines.BridgeClient(token_endpoint="e", client_id="i", client_secret="s")
    page = (ROOT / "docs" / "trino.md").read_text()
    for name in engines.bridge_variables("http://g", {"ice": "w"}, client, "key"):
        assert f"`{name}`" in page or f"`…{name.removeprefix('LAKEGATE_BRIDGE')}`" in page


def test_the_example_for_spark_has_the_settings_that_the_pipeline_runs_with() -> None:
    text = block("docs/data-engineer.md", "SparkSession").text
    compile(text, "documentation", "exec")
    shown = {
        f"{_PREFIX}lake{name}": value
        for name, value in re.findall(r'^    (?:f"\{lake\}|lake)([\w.-]*)"?: "([^"]*)",', text, re.MULTILINE)
    }
    used = catalog_options(RestCatalog(uri="u", warehouse="w", token="t"))
    prefix = next(name for name, value in used.items() if value.endswith("SparkCatalog"))
    expected = {
        f"{_PREFIX}lake{name.removeprefix(prefix)}": value for name, value in used.items() if name.startswith(prefix)
    }
    assert _without_own(shown, "lake") == _without_own(expected, "lake")


@pytest.mark.parametrize(
    ("page", "holding", "tested"),
    [
        ("docs/trino.md", "access-control.name=opa", engines.access_control_properties(key="…")),
        ("docs/trino.md", "iceberg.rest-catalog.security", _CATALOG),
        ("docs/trino.md", "iceberg.rest-catalog.oauth2.credential", engines.RENEWING),
    ],
)
def test_trino_tests_use_the_documented_properties(page: str, holding: str, tested: str) -> None:
    assert _properties(block(page, holding).text).items() <= _properties(tested).items()


def _settings() -> list[Block]:
    return [each for each in blocks() if each.text.startswith(PREFIX)]


@pytest.mark.parametrize("shown", _settings(), ids=str)
def test_documented_settings_are_accepted(shown: Block) -> None:
    settings.load(_properties(shown.text))


def test_the_documentation_has_settings_blocks() -> None:
    assert len(_settings()) == 10


def test_the_documented_pipeline_configuration_is_accepted(tmp_path: Path) -> None:
    text = block("docs/data-engineer.md", '"work_dir"').text
    for jar in json.loads(text)["engine"]["jars"]:
        (tmp_path / Path(jar).name).touch()
    parse_config(text.replace("/path", str(tmp_path)).encode(), PipelineConfig)


def test_the_documented_storage_profile_is_accepted() -> None:
    profile = decode_profile(block("deploy/README.md", '"sts-role-arn"').text.encode())
    assert isinstance(profile, S3Profile) and profile.sts_enabled


@pytest.mark.parametrize("shown", [each for each in blocks() if each.language in ("json", "yaml")], ids=str)
def test_every_block_of_json_or_yaml_can_be_parsed(shown: Block) -> None:
    if shown.language == "yaml":
        assert yaml.safe_load(shown.text)
    elif shown.text.strip():
        json.loads(shown.text)


@pytest.mark.parametrize("shown", [each for each in blocks() if each.language == "python"], ids=str)
def test_every_block_of_python_can_be_compiled(shown: Block) -> None:
    compile(shown.text, str(shown), "exec")
