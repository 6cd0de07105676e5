# SPDX-License-Identifier: Apache-2.0
"""Settings from a directory of files: one file for each setting, as Kubernetes and Compose mount secrets.

A file `PG_ENCRYPTION_KEY` in the directory that `LAKEGATE__SETTINGS_DIRECTORY` names is the setting
`LAKEGATE__PG_ENCRYPTION_KEY`. A process that lists the environment of another one does not see its value. White space
around a value is removed, because many tools end a file with a newline, which no password contains.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gateway.settings.env import PREFIX, SettingsError

DIRECTORY: Final = f"{PREFIX}SETTINGS_DIRECTORY"


def with_files(source: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables in `source` and those in the files of its settings directory, if it names one.

    Raises:
        SettingsError: lists each file that cannot be read and each setting that has a variable and a file. A message
            contains no value.
    """
    if not source.get(DIRECTORY):
        return source
    read: dict[str, str] = {}
    problems: list[str] = []
    for file in _files(Path(source[DIRECTORY])):
        variable = PREFIX + file.name
        if variable in source:
            problems.append(f"{variable} is a variable and the file {file}; keep one of them")
            continue
        try:
            read[variable] = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            # The text of the second error contains bytes of the file.
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            problems.append(f"{variable}: the file {file} cannot be read: {reason}")
    if problems:
        raise SettingsError("\n".join(problems))
    return {**source, **read}


def _files(directory: Path) -> list[Path]:
    """Return the files of the directory by name. Kubernetes keeps its own copies under names that begin with a dot.

    Raises:
        SettingsError: the directory cannot be listed.
    """
    try:
        found = sorted(directory.iterdir())
    except OSError as error:
        raise SettingsError(f"{DIRECTORY}: {directory} cannot be listed: {error.strerror}") from None
    return [each for each in found if not each.name.startswith(".") and not each.is_dir()]
