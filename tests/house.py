# SPDX-License-Identifier: Apache-2.0
"""Measure the structure of the code: `make house` prints the figures, and `--write` puts them into ARCHITECTURE.md.

Lines are measured in the tree, files of a change in the commits of the worked examples of CONTRIBUTING.md. The
functions of a request and the minutes of the stages come from the records of the last runs in `.lakegate/tests/`.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import subprocess
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.console.sizes import first_load, own_lines

ROOT = Path(__file__).parent.parent
RECORDS = ROOT / ".lakegate" / "tests"
BEGIN, END = "<!-- house: begin -->", "<!-- house: end -->"
STAGES = "| stage | minutes |"

#: Lines of a module, at least and at most.
SHORTEST, LONGEST = 50, 400
#: The property of a test that holds the functions of a load (`record_property`).
FRAMES = "loadTable functions"

#: Modules under 50 lines that are neither a noun of several rooms nor a table of the schema, with the reason.
SMALL: Mapping[str, str] = {
    "gateway/db/credentials/secret_moves.py": "statements of one task",
    "gateway/api/early_refusal.py": "the only check of requests before routing",
    "gateway/access/door/_mint.py": "only the door may import it; the import contract names the file",
    "gateway/access/audit/audited_inputs.py": "records and the code that builds their inputs share these types",
    "gateway/access/decisions/engine_trust.py": "one rule of security, read alone",
    "gateway/access/demand.py": "each operation imports it, and it imports no operation",
    "gateway/access/dependency_errors.py": "errors of the decision engines, raised by adapters",
    "gateway/access/bodies.py": "types that the bodies of all nouns share",
    "gateway/features/all_routes.py": "the import of all routes",
    "gateway/events/log.py": "each sink has a module of its own, with its own imports",
    "gateway/features/contents/containers.py": "namespaces and warehouses share it",
    "gateway/storage/proof_keys.py": "keys of proofs, which no builder may use",
    "gateway/storage/s3/r2/scope.py": "a builder, with which its proof shares no code",
    "gateway/fga/model_text.py": "the language of OpenFGA, pure, which the use case does not know",
    "gateway/offloading.py": "the only place that moves work to a thread",
    "gateway/access/results.py": "use cases and the answers of routes share it",
    "lakegate/local/pg_ready.py": "a program of its own, run by a child process",
    "lakegate/spark/classes.py": "setup uses it, where PySpark may be missing",
    "gateway/identity/bearer.py": "the form of a header (RFC 6750)",
    "gateway/scope/location_bounds.py": "the check that tables and views share",
    "gateway/telemetry/worker_metrics.py": "metrics of the worker processes of a server",
}

#: The worked examples of CONTRIBUTING.md by the trailer of their commits, with the limits for the files of `gateway/`
#: that such a change creates and changes.
EXAMPLES: Mapping[str, tuple[int, int]] = {
    "A new object type": (6, 6),
    "A new operation": (1, 5),
    "A new field of warehouses": (1, 4),
    "A new kind of obligation": (1, 4),
    "A new provider of storage": (6, 6),
}


@dataclass(frozen=True)
class Lines:
    """Count the lines of files by what they hold. `prose` is docstrings and comments; `code` is what is left."""

    files: int = 0
    total: int = 0
    blank: int = 0
    imports: int = 0
    prose: int = 0

    @property
    def code(self) -> int:
        """Return the lines that are neither blank nor imports nor prose."""
        return self.total - self.blank - self.imports - self.prose

    def __add__(self, other: Lines) -> Lines:
        return Lines(
            self.files + other.files,
            self.total + other.total,
            self.blank + other.blank,
            self.imports + other.imports,
            self.prose + other.prose,
        )


def count(source: str) -> Lines:
    """Return the lines of one module."""
    lines = source.splitlines()
    blank = {number for number, line in enumerate(lines, 1) if not line.strip()}
    prose = _docstrings(ast.parse(source)) | _comments(source)
    imports = {
        number
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return Lines(1, len(lines), len(blank), len(imports - prose - blank), len(prose - blank))


def _docstrings(tree: ast.Module) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def _comments(source: str) -> set[int]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {
        token.start[0]
        for token in tokens
        if token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip()
    }


def modules(root: Path = ROOT) -> list[Path]:
    """Return the modules of `gateway/` and `lakegate/`, relative to the root of the checkout."""
    return sorted(
        path.relative_to(root) for package in ("gateway", "lakegate") for path in (root / package).rglob("*.py")
    )


def rooms(root: Path = ROOT) -> dict[str, Lines]:
    """Return the lines of each room; modules beside the rooms are `gateway/*.py`."""
    found: dict[str, Lines] = defaultdict(Lines)
    for path in modules(root):
        room = f"{path.parts[1]}/" if len(path.parts) > 2 else "*.py"
        found[f"{path.parts[0]}/{room}"] += count((root / path).read_text())
    return dict(sorted(found.items()))


def too_long(root: Path = ROOT) -> list[str]:
    """Return the modules with more lines than allowed."""
    return [str(path) for path in modules(root) if len((root / path).read_text().splitlines()) > LONGEST]


def too_short(root: Path = ROOT) -> list[str]:
    """Return the modules under 50 lines that need a reason in `SMALL`.

    A module needs none if its name is a noun of two rooms or more, the routes of a noun, a table in `db/schema/`, or a
    migration.
    """
    nouns: dict[str, set[str]] = defaultdict(set)
    for path in modules(root):
        nouns[path.stem].add("operations" if "operations" in path.parts else path.parts[1])
    return [
        str(path)
        for path in modules(root)
        if len((root / path).read_text().splitlines()) < SHORTEST
        and path.name not in {"__init__.py", "routes.py"}
        and len(nouns[path.stem]) == 1
        and not {"schema", "migrations"} & set(path.parts)
    ]


@dataclass(frozen=True)
class Touched:
    """The files of `gateway/` that the commit of a worked example creates and changes."""

    commit: str
    new: Sequence[str]
    changed: Sequence[str]


def examples(root: Path = ROOT) -> dict[str, Touched]:
    """Return the worked examples that the history of the checkout contains, by the trailer of their commits."""
    found = {}
    for name in EXAMPLES:
        shown = _git(
            root, "log", "-1", "--format=%h", "--name-status", "--no-renames", f"--grep=^Worked-example: {name}$"
        )
        commit, *lines = shown.split("\n") if shown else [""]
        touched = [line.split("\t") for line in lines if "\tgateway/" in line]
        if commit:
            new = [path for status, path in touched if status == "A"]
            found[name] = Touched(commit, new, [path for status, path in touched if status != "A"])
    return found


def _git(root: Path, *arguments: str) -> str:
    """Return the output of a command of git, empty outside a checkout."""
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def recorded(records: Path = RECORDS) -> dict[str, float]:
    """Return the minutes of each recorded stage."""
    return {
        path.stem: round(json.loads(path.read_text())["seconds"] / 60, 1)
        for name in ("repository", "unit", "policies", "services", "generated", "servers", "engines", "chaos")
        if (path := records / f"{name}.json").is_file()
    }


def frames(records: Path = RECORDS) -> list[str]:
    """Return the functions that a load passes from the socket to PostgreSQL, from the last run of its test."""
    for record in sorted(records.glob("*.json")):
        if passed := json.loads(record.read_text()).get("properties", {}).get(FRAMES):
            return str(passed).split(" > ")
    return []


def tables(root: Path = ROOT, records: Path = RECORDS) -> str:
    """Return the figures as Markdown."""
    lines = [
        "| room | files | lines | code | docstrings and comments | imports | blank |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    found = rooms(root)
    for name, each in [*found.items(), ("**all**", sum(found.values(), Lines()))]:
        cells = (each.files, each.total, each.code, each.prose, each.imports, each.blank)
        label = name if name.startswith("*") else f"`{name}`"
        lines.append(f"| {label} | " + " | ".join(f"{cell:,}" for cell in cells) + " |")
    lines += ["", "| change | new files of `gateway/` | limit | changed files | limit |", "|---|--:|--:|--:|--:|"]
    for name, touched in examples(root).items():
        most_new, most_changed = EXAMPLES[name]
        lines.append(f"| {name} | {len(touched.new)} | {most_new} | {len(touched.changed)} | {most_changed} |")
    lines += [
        "",
        f"The console has {sum(own_lines().values()):,} lines, and its first page loads {first_load() / 1000:.0f} kB.",
    ]
    if passed := frames(records):
        way = ", ".join(f"`{each}`" for each in passed)
        lines += ["", f"A load passes {len(passed)} functions from the socket to PostgreSQL: {way}."]
    if minutes := recorded(records):
        lines += ["", STAGES, "|---|--:|", *(f"| {name} | {spent} |" for name, spent in minutes.items())]
    return "\n".join(lines) + "\n"


def written(page: str, figures: str) -> str:
    """Return the page with the figures between its two marks. Raise ValueError if a mark is missing.

    Without records of stages, the minutes of the page are kept.
    """
    before, begin, rest = page.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} and {END} around the figures")
    if STAGES not in figures and STAGES in old:
        figures = f"{figures}\n{old[old.index(STAGES) :].strip()}\n"
    return f"{before}{BEGIN}\n\n{figures}\n{END}{after}"


def faults(root: Path = ROOT) -> list[str]:
    """Return a sentence for each rule of the house that the tree breaks."""
    short = set(too_short(root))
    return [
        *(f"{path} has more than {LONGEST} lines: find the idea inside that wants out" for path in too_long(root)),
        *(
            f"{path} has less than {SHORTEST} lines: merge it, or give a reason in tests/house.py"
            for path in short - set(SMALL)
        ),
        *(f"{path} needs no reason in tests/house.py" for path in set(SMALL) - short),
        *_examples_beyond(examples(root)),
    ]


def _examples_beyond(found: Mapping[str, Touched]) -> Iterable[str]:
    for name, each in found.items():
        for word, files, most in zip(("creates", "changes"), (each.new, each.changed), EXAMPLES[name], strict=True):
            if len(files) > most:
                yield f"{name}: commit {each.commit} {word} {len(files)} files of gateway/, at most {most} are allowed"


def main(arguments: Sequence[str]) -> int:
    """Print the figures; return 1 if the tree breaks a rule of the house."""
    parser = argparse.ArgumentParser(prog="python -m tests.house", description="Measure the structure of the code.")
    parser.add_argument("--write", action="store_true", help="put the figures into ARCHITECTURE.md")
    given = parser.parse_args(arguments)
    figures = tables()
    print(figures)
    if given.write:
        page = ROOT / "ARCHITECTURE.md"
        page.write_text(written(page.read_text(), figures))
    broken = faults()
    for fault in broken:
        print(fault, file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
