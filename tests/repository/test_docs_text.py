# SPDX-License-Identifier: Apache-2.0
"""Check the documentation text: names exist, citations are available, actors have names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gateway.features.all_routes  # noqa: F401 - the import declares every operation
from gateway import settings
from gateway.access.operation import OPERATIONS
from tests.support.docs_commands import ROOT, inline, pages

#: Pages and parts that are generated from the code.
_GENERATED = {"docs/settings.md", "tests/access/matrix.md"}
_TABLE_OF_OPERATIONS = re.compile(r"^\| `\w+` \| (?:all|authenticated|self) \|.*$", re.MULTILINE)
_TESTS_OF_CASES = re.compile(r"`[\w/]+\.py::\w+`")

_PATH = re.compile(r"^[\w./-]+\.(?:py|md|fga|rego|toml|txt|json|yaml|yml|in|lock)$")
#: Directories that a path in the text may start from.
_ROOTS = (
    "",
    "gateway/",
    "tests/",
    "tests/contract/",
    "tests/integration/",
    "policies/",
    "fga_model/",
    "deploy/",
    "docs/",
)
#: File names that readers create, or that belong to an example.
_EXAMPLES = {
    "pipeline.json",
    "contractors.json",
    "shop.yaml",
    "shop-policies.yaml",
    "demo.yaml",
    "widened-model.txt",
    "widened-policies.txt",
    "ready.json",
    "/tmp/ready.json",
}

_SETTING = re.compile(r"LAKEGATE__\w+(?:<ID>\w*)*")
_REMOVED = {"LAKEGATE__TRUSTED_ENGINES__<ID>__IDENTITIES__<ID>__AUDIENCES"}
_REQUEST = re.compile(r"^(GET|HEAD|POST|PUT|PATCH|DELETE) (/(?:catalog|management|scim|lakekeeper|health)[^ `?]*)")
_METRIC = re.compile(r"lakegate_[a-z_]+(?=\{|$)")

_ACTORS = re.compile(
    r"\b(?:whoever|whomever|somebody|someone|nobody|everybody|everyone|anybody|anyone|oneself)\b", re.I
)
_PRIVATE = re.compile(
    r"\b(?:code-style|lakekeeper|infrastructure|iceberg-rest|design|plain-english)\.md\b"
    r"|\breference/|\bdecision \d+\b|section \d+ of the design|\breference system\b"
)
_FENCED = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)


def _written(page: str) -> str:
    """Return the text of a page outside of generated parts and blocks."""
    text = _FENCED.sub("", (ROOT / page).read_text())
    return _TESTS_OF_CASES.sub("", _TABLE_OF_OPERATIONS.sub("", text))


_WRITTEN_MANUALLY = [page for page in pages() if page not in _GENERATED]


#: Documents that are unavailable to readers of the source, by the names it would use.
_UNREADABLE = re.compile(
    r"\b(?:code-style|lakekeeper|infrastructure|iceberg-rest|design|plain-english)\.md\b"
    r"|\b(?:section|decision) \d+ of the design\b",
    re.I,
)


def test_the_source_cites_only_available_documents() -> None:
    own = Path(__file__)
    files = [each for room in ("gateway", "lakegate", "tests") for each in (ROOT / room).rglob("*.py") if each != own]
    assert len(files) > 900
    assert {each.name: found for each in files if (found := _UNREADABLE.findall(each.read_text()))} == {}


@pytest.mark.parametrize("page", _WRITTEN_MANUALLY)
def test_actors_have_names(page: str) -> None:
    text = re.sub(r"`[^`\n]*`", "", _written(page))
    if page == "CONTRIBUTING.md":
        # The rule names the words that it forbids.
        text = "".join(
            line for line in text.splitlines(keepends=True) if not line.startswith(("2. Actors", "    everybody"))
        )
    assert _ACTORS.findall(text) == []


@pytest.mark.parametrize("page", _WRITTEN_MANUALLY)
def test_only_available_documents_are_cited(page: str) -> None:
    assert _PRIVATE.findall(_written(page)) == []


@pytest.mark.parametrize("page", _WRITTEN_MANUALLY)
def test_every_named_file_exists(page: str) -> None:
    named = {code for of, code in inline() if of == page and _PATH.match(code)} - _EXAMPLES
    missing = {
        name
        for name in named
        if not any((ROOT / start / name).exists() for start in _ROOTS)
        and not ("/" not in name and any(ROOT.glob(f"gateway/*/{name}")) or list(ROOT.glob(f"policies/**/{name}")))
    }
    assert missing == set()


def test_every_named_setting_exists() -> None:
    known = {row.variable for row in settings.rows()} | _REMOVED
    named = {
        (page, name)
        for page in pages()
        for name in _SETTING.findall((ROOT / page).read_text())
        if not name.endswith("_")
    }
    unknown = {(page, name) for page, name in named if name not in known and not _of_a_provider(name, known)}
    assert {each for each in unknown if not any(full.startswith(f"{each[1]}__") for full in known)} == set()


def _of_a_provider(name: str, known: set[str]) -> bool:
    """Map `…__KEYCLOAK__URI` to the setting of a provider with the id `keycloak`."""
    return any(re.fullmatch(re.escape(each).replace("<ID>", "[A-Z0-9_]+"), name) for each in known if "<ID>" in each)


def test_every_named_request_is_served() -> None:
    served = {
        (operation.endpoint.split()[0], re.compile(re.sub(r"\\{[^/]*?\\}", "[^/]+", re.escape(path))))
        for operation in OPERATIONS.values()
        for path in (operation.endpoint.split()[1], *operation.also_at)
    }
    named = {
        (page, *found.groups())
        for page, code in inline()
        if (found := _REQUEST.match(code)) and "…" not in found[2] and "|" not in found[2]
    }
    assert len(named) > 20
    unknown = {
        (page, method, path)
        for page, method, path in named
        if not any(method == its and pattern.fullmatch(path) for its, pattern in served)
    }
    assert unknown == set()


def test_every_named_metric_is_exported() -> None:
    source = "".join(path.read_text() for path in (ROOT / "gateway" / "telemetry").glob("*.py"))
    named = {name for _, code in inline() for name in _METRIC.findall(code)}
    assert len(named) > 15
    assert {name for name in named if name.removesuffix("_total") not in source} == set()
