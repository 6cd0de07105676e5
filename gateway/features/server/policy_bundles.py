# SPDX-License-Identifier: Apache-2.0
"""Use case that serves the policies in a directory as bundles, the archives that OPA downloads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import structlog

from gateway.access.door.permit import Permit
from gateway.access.management_errors import PoliciesInvalid, PolicyBundleNotFound
from gateway.access.operations.server import GetPolicyBundle
from gateway.features.kit import Kit, UseCases
from gateway.opa.bundle import BundleName, PolicyBundle, policy_bundle
from gateway.opa.policy_files import policy_directory, policy_files
from gateway.opa.syntax import InvalidPolicies

_log = structlog.get_logger()

#: (path, modification time in nanoseconds, size, inode) of each file of the directory.
_Files = tuple[tuple[str, int, int, int], ...]


class PolicyBundles(UseCases):
    """The bundles of policies. Each is built at the first request after a change of the directory, then cached.

    `source` is the directory of the operator's policies, None for the policies of the package. `key` signs the bundles;
    None: they are not signed.
    """

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._source = kit.policy_source[0]
        self._key = kit.policy_source[1]
        self._built: dict[BundleName, tuple[_Files, PolicyBundle]] = {}
        self._building = asyncio.Lock()

    async def bundle(self, permit: Permit[GetPolicyBundle]) -> PolicyBundle:
        """Return the bundle with the name in the request. Raises PolicyBundleNotFound and PoliciesInvalid."""
        try:
            name = BundleName(permit.operation.bundle)
        except ValueError:
            names = " and ".join(BundleName)
            raise PolicyBundleNotFound(f"There is no bundle of this name. The bundles are {names}.") from None
        async with self._building:
            try:
                return await asyncio.to_thread(self._current, name)
            except (InvalidPolicies, OSError) as invalid:
                _log.error("policy_bundle.refused", bundle=name.value, reason=str(invalid))
                raise PoliciesInvalid(
                    "The policies in the gateway's directory are invalid, so no bundle is served. The log names the "
                    "file. OPA keeps the policies that it has."
                ) from None

    def _current(self, name: BundleName) -> PolicyBundle:
        files = tuple(self._seen())
        held = self._built.get(name)
        if held is not None and held[0] == files:
            return held[1]
        built = policy_bundle(policy_files(self._source), name, self._key)
        self._built[name] = (files, built)
        _log.info("policy_bundle.built", bundle=name.value, revision=built.revision)
        return built

    def _seen(self) -> Iterator[tuple[str, int, int, int]]:
        """Yield (path, modification time, size, inode) of each file of the directory, to detect changes. Policies of
        the package do not change.
        """
        if self._source is None:
            return
        # The walk starts at the folder itself, which can be a link: a walk from the directory above would not enter the
        # link.
        for file in sorted(policy_directory(self._source.directory).rglob("*")):
            about = file.stat()
            if file.is_file():
                yield str(file), about.st_mtime_ns, about.st_size, about.st_ino
