# SPDX-License-Identifier: Apache-2.0
"""The configuration of the pipeline: refused values, and secrets that are never printed."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from lakegate.spark.config import PipelineConfig, RestCatalog, StatementsConfig, parse_config, read_config
from lakegate.spark.errors import ConfigError

TOKEN = "tok-3f9a"


def document(**catalog: object) -> dict[str, object]:
    rest = {"type": "rest", "uri": "http://127.0.0.1:1/catalog", "warehouse": "w", "token": TOKEN}
    return {"catalog": rest | catalog, "engine": {"jars": [], "work_dir": "/nowhere"}}


def written(directory: Path, content: object, mode: int = 0o600) -> Path:
    path = directory / "pipeline.json"
    path.write_text(json.dumps(content))
    path.chmod(mode)
    return path


def test_a_private_file_is_read(tmp_path: Path) -> None:
    config = read_config(str(written(tmp_path, document())), io.BytesIO(), PipelineConfig)
    assert isinstance(config.catalog, RestCatalog)
    assert config.catalog.token == TOKEN


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_credential_file_readable_by_other_users_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(ConfigError, match="0600"):
        read_config(str(written(tmp_path, document(), mode)), io.BytesIO(), PipelineConfig)


def test_the_error_names_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.json"):
        read_config(str(tmp_path / "absent.json"), io.BytesIO(), PipelineConfig)


def test_a_dash_reads_standard_input() -> None:
    stdin = io.BytesIO(json.dumps(document(), indent=2).encode())
    assert read_config("-", stdin, PipelineConfig).engine.cores == 2


@pytest.mark.parametrize(
    "catalog",
    [
        {"token": None},
        {"credential": "id:secret-77", "token_endpoint": "http://idp/token"},
        {"token": None, "credential": "id:secret-77"},
    ],
    ids=["no identity", "two identities", "credential without a token endpoint"],
)
def test_exactly_one_identity_is_accepted(catalog: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(json.dumps(document(**catalog)).encode(), PipelineConfig)
    assert TOKEN not in str(caught.value)
    assert "secret-77" not in str(caught.value)


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(ConfigError, match="tokn"):
        parse_config(json.dumps(document(tokn="x")).encode(), PipelineConfig)


def test_the_error_names_a_missing_jar() -> None:
    content = document() | {"engine": {"jars": ["/nowhere/iceberg.jar"], "work_dir": "/nowhere"}}
    with pytest.raises(ConfigError, match=r"/nowhere/iceberg\.jar"):
        parse_config(json.dumps(content).encode(), PipelineConfig)


def test_neither_token_nor_credential_is_printed() -> None:
    catalog = RestCatalog(uri="http://c", warehouse="w", credential="id:secret-77", token_endpoint="http://idp")
    config = parse_config(json.dumps(document()).encode(), PipelineConfig)
    assert TOKEN not in repr(config)
    assert "secret-77" not in repr(catalog)


def test_a_statement_configuration_accepts_no_identity() -> None:
    content = {"uri": "http://c", "warehouse": "w", "engine": {"jars": [], "work_dir": "/nowhere"}}
    assert parse_config(json.dumps(content).encode(), StatementsConfig).warehouse == "w"
    with pytest.raises(ConfigError, match="token"):
        parse_config(json.dumps(content | {"token": TOKEN}).encode(), StatementsConfig)
