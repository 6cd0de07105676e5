# SPDX-License-Identifier: Apache-2.0
"""Lock 10: a storage provider is one folder and one line of the registry; no other module names it.

The import contracts (lock 7) keep modules from importing a provider. This test keeps provider names and terms out of
their text, so that a new provider needs no change there and providers stay independent.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.scope.profile import STRICTEST
from gateway.storage.provider import ClientOptions, StorageClient
from gateway.storage.registry import PROVIDERS

GATEWAY = Path(__file__).parents[2] / "gateway"
STORAGE = GATEWAY / "storage"

#: Terms that only the provider may use. Common words, such as "local", count only as JSON values.
WORDS = {
    "s3": r"(?<![A-Za-z])(?:[sS]3|[aA]ws|AWS|[bB]oto(?:core|3)?|[mM]inio|arn|ARN)(?![a-z0-9])",
    "gcs": r"(?<![A-Za-z])(?:[gG]cs|GCS|Google|gs://|CEL)(?![a-z0-9])",
    "adls": r"(?<![A-Za-z])(?:[aA]dls|ADLS|Azure|azure_identity|abfss?|wasbs?|SAS(?!L))(?![a-z0-9])",
    "local": r"[\"']local[\"']|`local`|file:/|LocalProfile|LocalFiles|LocalAccess",
    "hdfs": r"(?<![A-Za-z])(?:[hH]dfs|HDFS|KRB5)",
}

#: Terms of several providers.
SHARED: dict[tuple[str, ...], str] = {("s3", "gcs"): r"(?<![A-Za-z])(?:[sS]ts|STS|[bB]uckets?)(?![a-z0-9])"}

#: Modules that use a term, and why. An unnecessary line fails.
ALLOWED = {
    "access/operations/credentials.py": "paths that clients know",
    "access/shares/shares.py": "token buckets of principals",
    "access/shares/fair_slots.py": "as above",
    "fga/pacing.py": "as above",
    "access/operations/server.py": "a field of GET /info that clients know",
    "api/openapi_texts.py": "examples in the published document",
    "features/server/servers.py": "a field of GET /info that clients know",
    "iceberg/types.py": "the partition transform of the specification",
    "scope/endpoint.py": "the addresses of metadata services, whose clouds are named for the reader",
    "settings/process_environment.py": "the variables of Hadoop and Kerberos, which the embedded stack passes on",
    "settings/stores.py": "a setting tells which fields and profiles it is about",
    "settings/system_identities.py": "as above",
    "storage/registry.py": "the registry",
    "telemetry/otlp_metrics.py": "the steps of histograms",
    "telemetry/metrics.py": "the published name of a metric, and the steps of histograms",
    "verification/builtin/partition_evolution.py": "the partition transform of the specification",
    "vending/remote_signing.py": "the paths that clients know",
    "telemetry/redaction.py": "logs are redacted before any provider is opened, and whatever provider a secret is of",
}

#: Migrations read stored profiles.
ROOMS = ("db/migrations/",)


def _modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(GATEWAY.rglob("*.py")):
        yield path.relative_to(GATEWAY).as_posix(), path


def _folders() -> dict[str, Path]:
    return {each.name: each for each in STORAGE.iterdir() if (each / "__init__.py").exists()}


def test_each_folder_is_a_registered_provider_with_listed_terms() -> None:
    assert set(_folders()) == {provider.tag for provider in PROVIDERS} == set(WORDS)
    assert len({name for provider in PROVIDERS for name in provider.scheme.names}) == sum(
        len(provider.scheme.names) for provider in PROVIDERS
    )


def test_no_module_outside_a_provider_names_it() -> None:
    named: dict[str, set[str]] = {}
    for name, path in _modules():
        for providers, words in (*(((provider,), words) for provider, words in WORDS.items()), *SHARED.items()):
            if name.startswith((*(f"storage/{provider}/" for provider in providers), *ROOMS)):
                continue
            found = {each.group() for each in re.finditer(words, path.read_text())}
            if found:
                named.setdefault(name, set()).update(found)
    assert {name: words for name, words in named.items() if name not in ALLOWED} == {}
    assert set(ALLOWED) - set(named) == set(), "these entries of ALLOWED are unused"


def test_providers_are_imported_by_the_registry_alone() -> None:
    knowing: set[tuple[str, str]] = set()
    for name, path in _modules():
        for module in _imported(path):
            provider = module.removeprefix("gateway.storage.").partition(".")[0]
            if module.startswith("gateway.storage.") and provider in _folders():
                knowing.add((name, provider))
    outside = {(name, provider) for name, provider in knowing if not name.startswith(f"storage/{provider}/")}
    assert outside == {("storage/registry.py", provider) for provider in _folders()}


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.tag)
def test_a_provider_implements_the_storage_interface(provider: object) -> None:
    each = next(known for known in PROVIDERS if known is provider)
    assert each.profile.provider == each.tag
    client = each.open(ClientOptions(rules=STRICTEST))
    assert isinstance(client, StorageClient)
    client.close()
