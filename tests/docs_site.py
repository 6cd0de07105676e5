# SPDX-License-Identifier: Apache-2.0
"""Build the documentation as a site: `python -m tests.docs_site`, which `make docs` and `make check` call.

The pages are beside the code, for readers of the repository. The build copies the pages that `mkdocs.yml` names to one
directory, with the files that they link to, and runs Zensical on the copy. It fails on a broken link or anchor, on a
page without a place in the navigation, on Markdown that was rendered as plain text, and on a page that loads anything
from another server. The build needs the network once: for the script that draws the diagrams. It is in a package of
Maven Central with a pinned checksum, which stays in the cache of the tools.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import yaml

from gateway import settings
from lakegate.local import spark_jars, toolchain
from lakegate.local.errors import StackError
from lakegate.local.spark_jars import Archive

ROOT = Path(__file__).parent.parent
CONFIG = "mkdocs.yml"

MERMAID = Archive(
    "org.webjars.npm",
    "mermaid",
    "11.6.0",
    "b5431370e8cfa44471ec075f4a6002a1f9b9d97ee534c4e4d693c9c85a0ccba7",
    14,
)
"""The package with the script that draws the diagrams."""
SCRIPT = "assets/mermaid.min.js"
"""The script in the site. The theme uses it, because it defines `mermaid`, for which the theme looks first."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CODE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
#: Markdown that Python-Markdown left as text, because its block has no empty line before it or lacks four spaces.
_UNPARSED = re.compile(r"^\s*(?:[-*] |1\. |\|.*\||```)", re.MULTILINE)
#: A block inside of a list with fewer than four spaces: Python-Markdown ends the list there, other renderers do not.
_SHALLOW = re.compile(r"^ {1,3}(?:[-*] |\d+\. |\||```)")
_FENCE = re.compile(r"^ *(```|~~~)")
#: Tags that make a browser load the address in an attribute. Links are not among them.
_LOADS = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}


class BuildFailed(Exception):
    """The site cannot be built. The message lists every reason, one a line."""


def pages_of(nav: list[Any]) -> list[str]:
    """Return the paths of all pages of a navigation tree, in order."""
    found: list[str] = []
    for entry in nav:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            found += pages_of(value) if isinstance(value, list) else [value]
    return found


def without_navigation_entry(root: Path, pages: list[str]) -> list[str]:
    """Return the pages at the root and in `docs/` that the navigation does not name."""
    written = [path.relative_to(root).as_posix() for folder in (root, root / "docs") for path in folder.glob("*.md")]
    return sorted(set(written) - set(pages))


def linked_files(page: Path) -> Iterator[tuple[str, Path]]:
    """Yield (link, path) of each relative link of a page to a file that is no Markdown page."""
    for link in _LINK.findall(_CODE.sub("", page.read_text())):
        target = unquote(link.partition("#")[0])
        if target and "://" not in target and not target.startswith("mailto:") and not target.endswith(".md"):
            yield link, (page.parent / target).resolve()


def shallow_lines(text: str) -> list[int]:
    """Return the numbers of the lines that begin a block inside of a list with fewer than four spaces."""
    shallow: list[int] = []
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        opened = _FENCE.match(line)
        if not fence and _SHALLOW.match(line):
            shallow.append(number)
        if opened and (not fence or line.strip() == fence):
            fence = "" if fence else opened[1]
    return shallow


def stage(root: Path, pages: list[str], source: Path) -> None:
    """Copy the pages and the files that they link to into `source`. Raises BuildFailed."""
    shutil.rmtree(source, ignore_errors=True)
    faults = [f"{page}: add it to the navigation of {CONFIG}" for page in without_navigation_entry(root, pages)]
    for page in pages:
        if not (root / page).is_file():
            faults.append(f"{CONFIG}: {page} does not exist")
            continue
        _copied(root / page, source / page)
        if shallow := shallow_lines((root / page).read_text()):
            faults.append(f"{page}: indent blocks inside of lists by four spaces, lines {shallow}")
        for link, path in linked_files(root / page):
            if path.is_file() and path.is_relative_to(root):
                _copied(path, source / path.relative_to(root))
            else:
                faults.append(f"{page}: the link {link} leads to no file of the repository")
    if faults:
        raise BuildFailed("\n".join(faults))


def add_diagram_script(source: Path) -> None:
    """Write the script that draws the diagrams to `source`. It is fetched once. Raises BuildFailed."""
    kept = toolchain.cache(settings.load()).jars()
    archive = kept / MERMAID.file_name
    try:
        if not spark_jars.is_right(archive, MERMAID):
            environment = settings.tool_environment()
            archive = spark_jars.fetch(MERMAID, kept, java_home=settings.java_home(), environment=environment)
    except StackError as error:
        raise BuildFailed(str(error)) from None
    member = f"META-INF/resources/webjars/mermaid/{MERMAID.version}/dist/mermaid.min.js"
    (source / SCRIPT).parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive) as package:
        (source / SCRIPT).write_bytes(package.read(member))


class _Config(yaml.SafeLoader):
    """A reader of the configuration that returns the names of Python functions as text."""


_Config.add_multi_constructor("tag:yaml.org,2002:python/name:", lambda loader, name, node: name)


def configuration(root: Path = ROOT) -> dict[str, Any]:
    """Return the configuration of the site."""
    found: dict[str, Any] = yaml.load((root / CONFIG).read_text(), Loader=_Config)  # noqa: S506 - a safe loader
    return found


def _copied(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, to)


class _Rendered(HTMLParser):
    """A rendered page: resources loaded from other servers, and paragraphs that still contain Markdown."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.scripts: list[str] = []
        self.diagrams = 0
        self.unparsed: list[str] = []
        self._paragraph: list[str] | None = None
        self._code = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an address that a browser would load."""
        values = dict(attrs)
        address = values.get(_LOADS.get(tag, ""), "") or ""
        if address.startswith(("http://", "https://", "//")) and values.get("rel") != "canonical":
            self.loaded.append(address)
        if tag == "script" and address:
            self.scripts.append(address)
        self.diagrams += "mermaid" in (values.get("class") or "").split()
        if tag == "p":
            self._paragraph = []
        self._code += tag == "code"

    def handle_data(self, data: str) -> None:
        """Keep the text of a paragraph; code may look like Markdown. A fence in the text of a page opened no block."""
        self.unparsed += [line for line in data.splitlines() if _FENCE.match(line)]
        if self._paragraph is not None:
            self._paragraph.append("x" if self._code else data)

    def handle_endtag(self, tag: str) -> None:
        """Check a complete paragraph."""
        self._code -= tag == "code"
        if tag == "p" and self._paragraph is not None:
            text = "".join(self._paragraph)
            if _UNPARSED.search(text):
                self.unparsed.append(text)
            self._paragraph = None


def faults_of(html: str) -> list[str]:
    """Return the faults of one rendered page."""
    rendered = _Rendered()
    rendered.feed(html)
    without = rendered.diagrams and not any(address.endswith(SCRIPT) for address in rendered.scripts)
    diagrams = ["loads the script for diagrams from another server: it has none of its own"] if without else []
    return (
        [f"loads {address}" for address in rendered.loaded]
        + diagrams
        + [
            f"Markdown became text, an empty line or four spaces are missing: {text.strip()[:120]!r}"
            for text in rendered.unparsed
        ]
    )


def build(root: Path = ROOT) -> Path:
    """Build the site and return its directory. Raises BuildFailed."""
    config = configuration(root)
    stage(root, pages_of(config["nav"]), root / config["docs_dir"])
    if SCRIPT in config.get("extra_javascript", ()):
        add_diagram_script(root / config["docs_dir"])
    site = root / str(config["site_dir"])
    shutil.rmtree(site, ignore_errors=True)
    zensical = Path(sys.executable).with_name("zensical")
    ran = subprocess.run(
        [zensical, "build", "--clean", "--strict", "-f", str(root / CONFIG)],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        output = _COLOUR.sub("", ran.stdout + ran.stderr)
        # Zensical reports the faults and then ends with an unrelated traceback.
        raise BuildFailed(output.partition("Traceback (most recent call last)")[0].strip() or output)
    faults = [
        f"{page.relative_to(site)}: {fault}"
        for page in sorted(site.rglob("*.html"))
        for fault in faults_of(page.read_text())
    ]
    if faults:
        raise BuildFailed("\n".join(faults))
    return site


def main() -> int:
    """Build the site and print its directory, or the faults."""
    try:
        site = build()
    except BuildFailed as failed:
        print(failed, file=sys.stderr)
        return 1
    print(f"{site.relative_to(ROOT)}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
