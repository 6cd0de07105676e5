# SPDX-License-Identifier: Apache-2.0
"""Location of programs: configured ones come first, missing ones are an error that names the remedy."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from gateway import settings
from lakegate.local import install, toolchain
from lakegate.local.errors import ToolMissing
from lakegate.local.toolchain import GO_TOOLS, OPA, Cache


def _cache_with_everything(root: Path) -> Cache:
    kept = Cache(root)
    for path in (*map(kept.go_tool, GO_TOOLS), kept.nanoidp()):
        path.parent.mkdir(parents=True)
        path.touch()
    return kept


def _settings(root: Path, **more: str) -> settings.Settings:
    variables = {"CACHE_DIR": str(root)} | more
    return settings.load({f"LAKEGATE__EMBEDDED__{name}": value for name, value in variables.items()})


def test_cached_programs_are_found(tmp_path: Path) -> None:
    kept = _cache_with_everything(tmp_path)
    assert toolchain.locate(_settings(tmp_path)).opa == kept.go_tool(OPA)


def test_a_cached_program_of_another_version_is_not_used(tmp_path: Path) -> None:
    kept = _cache_with_everything(tmp_path)
    kept.go_tool(OPA).parent.rename(tmp_path / "tools" / "opa-v1.0.0")
    with pytest.raises(ToolMissing, match="opa is missing .*make setup"):
        toolchain.locate(_settings(tmp_path))


def test_a_configured_program_takes_precedence_and_must_exist(tmp_path: Path) -> None:
    _cache_with_everything(tmp_path)
    own = tmp_path / "own-opa"
    with pytest.raises(ToolMissing, match="LAKEGATE__EMBEDDED__OPA_BIN must be the path of a file"):
        toolchain.locate(_settings(tmp_path, OPA_BIN=str(own)))
    own.touch()
    assert toolchain.locate(_settings(tmp_path, OPA_BIN=str(own))).opa == own


def test_a_changed_lock_file_gives_another_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "shipped", lambda: tmp_path)
    lock = tmp_path / "requirements" / "idp.lock"
    lock.parent.mkdir()
    lock.write_text("a==1")
    first = Cache(tmp_path).environment("idp")
    lock.write_text("a==2")
    assert Cache(tmp_path).environment("idp") != first


def test_servers_come_from_the_cache_where_the_extra_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = _cache_with_everything(tmp_path)
    assert not toolchain.needs_servers(_settings(tmp_path))
    monkeypatch.setattr("lakegate.local.object_store.installed", lambda: None)
    monkeypatch.setattr("lakegate.local.postgres.is_installed", lambda: False)
    assert toolchain.needs_servers(_settings(tmp_path))
    with pytest.raises(ToolMissing, match="weed is missing .*lakegate setup"):
        toolchain.locate(_settings(tmp_path))
    kept.weed().parent.mkdir(parents=True)
    kept.weed().touch()
    found = toolchain.locate(_settings(tmp_path))
    assert (found.weed, found.postgres_directory) == (kept.weed(), str(kept.postgres()))


def test_the_servers_in_the_cache_have_the_versions_of_the_extra() -> None:
    root = Path(__file__).parents[3]
    extra = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]["embedded"]
    lines = (root / "requirements/servers.in").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == extra


@pytest.mark.parametrize(
    ("output", "version"),
    [("go version go1.26.8 linux/amd64", (1, 26)), ("go version go1.9 x/y", (1, 9)), ("no", None)],
)
def test_go_versions_are_compared_as_numbers(output: str, version: tuple[int, int] | None, tmp_path: Path) -> None:
    program = tmp_path / "go"
    program.write_text(f"#!/bin/sh\necho '{output}'\n")
    program.chmod(0o755)
    assert install.go_version(str(program)) == version
    assert version is None or (version >= toolchain.OLDEST_GO) is (version == (1, 26))


_GO = """#!/bin/sh
case "$1" in
version) echo "go version go1.26.8 linux/amd64" ;;
list) printf 'example.com/a\nexample.com/b\n' ;;
mod) test "$4" = "example.com/module@v1.2.3" && printf '{\n\t"Dir": "{directory}",\n\t"Sum": "h1:x"\n}\n' ;;
build) test "$4" = "-mod=mod" && cat "$3/go.mod" "$3/go.sum" > "$8" && echo "$9" >> "$8" ;;
esac
"""


def test_a_program_is_built_without_the_modules_it_does_not_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The module of the build keeps the versions, replacements and hashes of the program's own module."""
    program, module = tmp_path / "bin" / "go", tmp_path / "module"
    program.parent.mkdir()
    program.write_text(_GO.replace("{directory}", str(module)))
    program.chmod(0o755)
    module.mkdir()
    (module / "go.mod").write_text("module example.com/module\n\nrequire example.com/a v1.0.0\n")
    (module / "go.sum").write_text("example.com/a v1.0.0 h1:a\n")
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    kept = Cache(tmp_path / "cache")
    tool = toolchain.GoTool(
        "tool", "v1.2.3", "example.com/module/cmd/tool", without=(("modernc.org/sqlite", "sqlite"),)
    )
    install.build_go_tools([tool], kept, Console(stderr=True))
    substitute = Path(toolchain.__file__).parent / "go_substitutes" / "sqlite"
    assert kept.go_tool(tool).read_text().split("\n") == [
        "module lakegate.build",
        "",
        "require example.com/module v1.2.3",
        "",
        "require example.com/a v1.0.0",
        f"replace modernc.org/sqlite => {substitute}",
        "example.com/a v1.0.0 h1:a",
        "example.com/module/cmd/tool",
        "",
    ]


def test_another_way_to_build_is_another_program_in_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = toolchain.GoTool("tool", "v1.2.3", "example.com/module")
    small = replace(whole, without=(("modernc.org/sqlite", "sqlite"),))
    assert whole.build == "v1.2.3"
    assert small.build.startswith("v1.2.3-") and small.build != replace(small, without=()).build


_LOCKS = ("development", "serve", "embedded", "servers", "build", "idp", "go", "login", "helm", "sbom")


def test_bundled_files_are_found_in_a_checkout_and_in_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[3]
    assert toolchain.shipped() == root
    included = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    for source, target in included["force-include"].items():
        assert (root / source).exists()
        assert target == f"gateway/bundled/{source}"
    monkeypatch.setattr(toolchain, "_PACKAGE", tmp_path / "gateway")
    bundled = tmp_path / "gateway" / "bundled"
    bundled.mkdir(parents=True)
    assert toolchain.shipped() == bundled
    assert toolchain.tool_lock("idp") == bundled / "requirements/idp.lock"


@pytest.mark.parametrize("name", _LOCKS)
def test_every_locked_package_is_pinned_by_hash_and_names_no_index(name: str) -> None:
    lines = toolchain.tool_lock(name).read_text().splitlines()
    pins = [number for number, line in enumerate(lines) if line and line[0].isalnum()]
    assert pins
    for number in pins:
        assert "==" in lines[number] and lines[number + 1].startswith("    --hash=sha256:"), lines[number]
    assert not [line for line in lines if "://" in line or "index" in line]


def test_the_readme_names_the_versions_of_the_built_programs() -> None:
    page = (toolchain.shipped() / "README.md").read_text()
    for tool in GO_TOOLS:
        assert f"[{'OPA' if tool is OPA else 'OpenFGA'} {tool.version.removeprefix('v')}]({tool.releases})" in page
