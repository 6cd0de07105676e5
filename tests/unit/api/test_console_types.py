# SPDX-License-Identifier: Apache-2.0
"""The tools that check the types of the console are pinned, and no user needs them. A request has the path as named."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gateway.apply.source import read_source
from gateway.features.server.console_files import FILES, LIBRARIES
from tests.console import check

_TOOLS = Path(check.__file__).parent


def test_types_are_those_of_the_vendored_libraries() -> None:
    pinned = json.loads((_TOOLS / "package.json").read_text())["devDependencies"]
    vendored = {each.name: each.version for each in LIBRARIES}
    assert {name: version for name, version in pinned.items() if name in vendored} == {
        name: version for name, version in vendored.items() if name in pinned
    }
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in pinned.values())


def test_lock_file_has_the_integrity_of_every_package_and_names_no_registry() -> None:
    text = (_TOOLS / "package-lock.json").read_text()
    packages = {name: each for name, each in json.loads(text)["packages"].items() if name}
    assert len(packages) > 20
    assert all(each["integrity"].startswith("sha512-") for each in packages.values())
    assert "resolved" not in text and "registry" not in text


def test_without_node_the_check_is_skipped_with_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check.main() == 0
    assert "SKIPPED" in capsys.readouterr().err


_REQUESTS = """
globalThis.document = { body: { dataset: {} } };
globalThis.window = { location: { origin: "https://lake.example" } };
globalThis.sessionStorage = { getItem: () => JSON.stringify({ token: "t", ends: Date.now() + 1e6 }) };
const sent = [];
globalThis.fetch = async (path) => { sent.push(path); return new Response("{}"); };
const { change, path } = await import("./api.js");
const refused = [];
for (const name of process.argv.slice(2)) {
  const at = "/management/v1/table/t" + path`/column/${name}/tags` + "/pii";
  await change("DELETE", at).catch((error) => refused.push(error.message));
}
console.log(JSON.stringify([sent, refused]));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_a_column_named_by_dots_never_becomes_its_table(tmp_path: Path) -> None:
    for name in ("api", "session", "config"):
        shutil.copy(FILES / "core" / f"{name}.js", tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "requests.js").write_text(_REQUESTS)
    names = ["..", ".", "a/../b", "%2e%2e", "a.b", "é '!()*~?#&"]
    done = subprocess.run(
        ["node", "requests.js", *names], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=True
    )
    sent, refused = json.loads(done.stdout)
    assert len(refused) == 2 and "Rename the object" in refused[0]
    encoded = ["a%2F..%2Fb", "%252e%252e", "a.b", "%C3%A9%20'!()*~%3F%23%26"]
    assert sent == [f"/management/v1/table/t/column/{each}/tags/pii" for each in encoded]


_YAML = """
globalThis.document = { body: { dataset: {} } };
globalThis.window = { location: { origin: "https://lake.example" } };
const { yaml } = await import("./apply-file.js");
console.log(JSON.stringify(JSON.parse(process.argv[2]).map((value) => yaml(value).trimStart() + "\\n")));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_an_apply_file_has_every_text_as_it_is(tmp_path: Path) -> None:
    for file in (FILES / "core").glob("*.js"):
        shutil.copy(file, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "file.js").write_text(_YAML)
    texts = [
        "oidc~a\x85b",
        "a\u2028--- b",
        "\x7f\x9b\ufeff\ufffe",
        "yes",
        "~",
        "0x1f",
        "- a",
        "a: b",
        "#a",
        "!!a",
        "*a",
        "é",
        "\n",
    ]
    values = [{"user": text, text: [text]} for text in texts]
    done = subprocess.run(
        ["node", "file.js", json.dumps(values)], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=True
    )
    assert [read_source("file", each).value for each in json.loads(done.stdout)] == values
