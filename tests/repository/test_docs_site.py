# SPDX-License-Identifier: Apache-2.0
"""The documentation site (`tests/docs_site.py`): every fault of a page fails the build."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs_site import (
    CONFIG,
    MERMAID,
    ROOT,
    SCRIPT,
    BuildFailed,
    build,
    configuration,
    faults_of,
    pages_of,
    shallow_lines,
)

_CONFIG = """
site_name: test
docs_dir: build/source
site_dir: build/site
use_directory_urls: false
theme: {name: material, font: false}
validation: {invalid_links: true, invalid_link_anchors: true}
nav:
  - README.md
  - More: [docs/more.md]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a repository with two pages that link to each other and to a file."""
    (tmp_path / "mkdocs.yml").write_text(_CONFIG)
    (tmp_path / "docs").mkdir()
    (tmp_path / "code.py").write_text("pass\n")
    (tmp_path / "README.md").write_text("# Start\n\n[more](docs/more.md#a-part) [code](code.py) `[no](link)`\n")
    (tmp_path / "docs" / "more.md").write_text("# More\n\n## A part\n\n[back](../README.md)\n")
    return tmp_path


def test_a_site_holds_every_page_and_every_linked_file(root: Path) -> None:
    site = build(root)
    assert (site / "index.html").is_file()
    assert (site / "docs" / "more.html").is_file()
    assert (site / "code.py").read_text() == "pass\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[gone](docs/gone.md)", "README.md:3:8(?s:.*)page does not exist"),
        ("[gone](docs/more.md#gone)", "anchor does not exist"),
        ("[gone](#gone)", "anchor does not exist"),
        ("[gone](gone.py)", "README.md: the link gone.py leads to no file"),
        ("[out](../outside.py)", "README.md: the link ../outside.py leads to no file"),
        ("1. a step\n\n   ```\n   code\n   ```", "by four spaces, lines \\[5\\]"),
        ("A list:\n- an item", "index.html: Markdown became text"),
        ("![a picture](https://example.com/a.png)", "index.html: loads https://example.com/a.png"),
    ],
)
def test_a_faulty_page_fails_the_build(root: Path, text: str, fault: str) -> None:
    (root.parent / "outside.py").write_text("pass\n")
    (root / "README.md").write_text(f"# Start\n\n{text}\n")
    with pytest.raises(BuildFailed, match=fault):
        build(root)


def _with_extensions(root: Path) -> None:
    """Render the pages of a repository as the pages of Lakegate are."""
    shown = (ROOT / CONFIG).read_text()
    extensions = shown[shown.index("markdown_extensions:") : shown.index("validation:")]
    (root / "mkdocs.yml").write_text(_CONFIG + extensions)


def test_a_fence_that_opens_no_block_fails_the_build(root: Path) -> None:
    _with_extensions(root)
    request, answer = "```sh\nls\n```\n", "```json 200\n{}\n```\n"
    first = f"Text.\n\n{request}{answer}{request}```json 204\n```\n\n"
    (root / "docs" / "more.md").write_text(f"# More\n\n## A part\n\n{first}Text.\n\n{request}{answer}\n## B\n\ntext\n")
    with pytest.raises(BuildFailed, match="more.html: Markdown became text"):
        build(root)


def test_a_diagram_is_drawn_by_a_script_of_the_site(root: Path) -> None:
    _with_extensions(root)
    (root / "docs" / "more.md").write_text("# More\n\n## A part\n\n```mermaid\ngraph LR\n  a --> b\n```\n")
    site = build(root)
    page = (site / "docs" / "more.html").read_text()
    assert '<pre class="mermaid"><code>graph LR' in page and 'src="../assets/mermaid.min.js"' in page
    assert MERMAID.version in (site / SCRIPT).read_text()
    # The theme's own script draws these elements, and loads another one only without a global `mermaid`.
    [theme] = (site / "assets" / "javascripts").glob("bundle*.js")
    assert "pre.mermaid" in theme.read_text() and 'typeof mermaid=="undefined"' in theme.read_text()
    assert page.index("bundle") < page.index(SCRIPT) and "defer" not in page[page.index("bundle") :]


@pytest.mark.parametrize("page", ["NEW.md", "docs/new.md"])
def test_a_page_without_a_place_in_the_navigation_fails_the_build(root: Path, page: str) -> None:
    (root / page).write_text("# New\n")
    with pytest.raises(BuildFailed, match=f"{page}: add it to the navigation"):
        build(root)


def test_a_page_of_the_navigation_that_is_missing_fails_the_build(root: Path) -> None:
    (root / "docs" / "more.md").unlink()
    with pytest.raises(BuildFailed, match=r"docs/more.md does not exist"):
        build(root)


def test_the_readme_links_every_page_of_the_navigation() -> None:
    readme = (ROOT / "README.md").read_text()
    _, _, table = readme.partition("\n## Find your way\n")
    pages = pages_of(configuration()["nav"])
    assert [page for page in pages if f"]({page})" not in table and page not in ("README.md", "CHANGELOG.md")] == []


def test_the_page_of_operators_links_every_page_of_its_sections() -> None:
    text = (ROOT / "docs" / "operator.md").read_text()
    sections = {name: pages for entry in configuration()["nav"] for name, pages in entry.items()}
    pages = [Path(page).name for name in ("Warehouses and storage", "Operate") for page in pages_of(sections[name])]
    assert [page for page in pages if f"]({page})" not in text] == []


def test_pages_are_found_at_every_depth_of_the_navigation() -> None:
    assert pages_of([{"Start": "a.md"}, {"Part": ["b.md", {"Deep": [{"C": "c.md"}]}]}]) == ["a.md", "b.md", "c.md"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("- a\n  - b\n", [2]),
        ("1. a\n   | b |\n", [2]),
        ("- a\n    - b\n", []),
        ("```\n  - code\n```\n", []),
        ("- a\n\n  ```\n  - code\n  ```\n  - b\n", [3, 6]),
    ],
)
def test_a_block_inside_of_a_list_needs_four_spaces(text: str, lines: list[int]) -> None:
    assert shallow_lines(text) == lines


@pytest.mark.parametrize(
    ("html", "fault"),
    [
        ('<script src="https://cdn.example.com/x.js"></script>', "loads https://cdn.example.com/x.js"),
        ('<link rel="stylesheet" href="//fonts.example.com/x.css">', "loads //fonts.example.com/x.css"),
        (
            '<pre class="mermaid">graph</pre><script src="../x.js"></script>',
            "loads the script for diagrams from another server: it has none of its own",
        ),
    ],
)
def test_a_page_that_loads_from_another_server_has_a_fault(html: str, fault: str) -> None:
    assert faults_of(html) == [fault]


@pytest.mark.parametrize(
    "html",
    [
        '<a href="https://example.com">a link to click</a>',
        '<link rel="canonical" href="https://example.com/">',
        '<pre class="mermaid">graph</pre><script src="../assets/mermaid.min.js"></script>',
        "<p><code>- </code> is code</p>",
        "<p>the answer is\n404. The next sentence</p>",
    ],
)
def test_a_page_without_a_fault_has_none(html: str) -> None:
    assert faults_of(html) == []
