# SPDX-License-Identifier: Apache-2.0
"""Read the blocks and commands of the documentation, so that tests can run or parse every one of them.

`tests/repository/test_docs_commands.py` parses all shell commands. `tests/contract/test_docs_requests.py` sends the
requests to a gateway, and `tests/e2e/test_docs_clients.py` runs the blocks for PyIceberg and DuckDB. `docs/guide.md`
has its own test (`tests/contract/test_guide.py`).
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.docs_site import configuration, pages_of

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL
)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_ASSIGNMENT = re.compile(r"\w+=")
_SEPARATORS = frozenset(";|&()\n")
#: Programs that identify a block without a language as shell commands.
_PROGRAMS = ("make", "lakegate", "python", "opa", "curl", ".venv/bin/")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page. `line` is the line of its fence."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def script(self) -> str:
        """Return its shell commands, empty if there are none. In a terminal session, commands are the text after a
        prompt.
        """
        if self.language == "console":
            return _typed(self.text)
        if self.language == "sh" or (not self.language and self.text.startswith(_PROGRAMS)):
            return self.text
        return ""


def _typed(session: str) -> str:
    lines: list[str] = []
    continued = False
    for line in session.splitlines():
        if line.startswith("$ ") or continued:
            lines.append(line.removeprefix("$ "))
            continued = line.endswith("\\")
    return "".join(f"{line}\n" for line in lines)


@cache
def pages() -> tuple[str, ...]:
    """Return the paths of all pages of the site."""
    return tuple(pages_of(configuration()["nav"]))


@cache
def blocks() -> tuple[Block, ...]:
    """Return the fenced blocks of all pages. Indented ones lose their indentation."""
    found = []
    for page in pages():
        text = (ROOT / page).read_text()
        for block in _BLOCK.finditer(text):
            indent = block["indent"]
            lines = (line.removeprefix(indent) for line in block["text"].splitlines(keepends=True))
            line = text[: block.start()].count("\n") + 1
            found.append(Block(page, line, block["language"], "".join(lines)))
    return tuple(found)


def block(page: str, holding: str) -> Block:
    """Return the only block of a page that contains this text."""
    [found] = [each for each in blocks() if each.page == page and holding in each.text]
    return found


@cache
def inline() -> tuple[tuple[str, str], ...]:
    """Return (page, code) of all code in the running text."""
    return tuple(
        (page, code) for page in pages() for code in _INLINE.findall(_BLOCK.sub("", (ROOT / page).read_text()))
    )


def run_python(text: str, **names: Any) -> Any:
    """Run an example with these variables and return the value of its last line."""
    *before, last = text.rstrip().splitlines()
    exec(compile("\n".join(before), "documentation", "exec"), names)  # noqa: S102 - the repository's own text
    return eval(last, names)  # noqa: S307 - text of our own documents


def commands(script: str) -> list[list[str]]:
    """Return the simple commands of a script as words, without leading assignments, redirections and comments."""
    lexer = shlex.shlex(script.replace("\\\n", " "), posix=True, punctuation_chars=";|&()<>\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    redirected = False
    for word in _words(lexer):
        if word and set(word) <= _SEPARATORS:
            found.append([])
            redirected = False
        elif word and set(word) <= set("<>"):
            redirected = True
        elif redirected:
            redirected = False
        elif found[-1] or not _ASSIGNMENT.match(word):
            found[-1].append(word)
    return [each for each in found if each]


def _words(lexer: shlex.shlex) -> list[str]:
    # shlex drops the newline after a comment, which would join two commands.
    lexer.commenters = ""
    words: list[str] = []
    comment = False
    for word in lexer:
        if word.startswith("#"):
            comment = True
        if "\n" in word and set(word) <= _SEPARATORS:
            comment = False
        if not comment:
            words.append(word)
    return words
