# SPDX-License-Identifier: Apache-2.0
"""Give the composition root the functions that find extensions of installed packages."""

from gateway.extensions import ExtensionGroup, NoSuchExtension, find_extension, names_of_extensions

__all__ = ["ExtensionGroup", "NoSuchExtension", "find_extension", "names_of_extensions"]
