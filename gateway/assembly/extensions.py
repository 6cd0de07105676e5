# SPDX-License-Identifier: Apache-2.0
"""Re-export the functions that find extensions of installed packages, for the composition root (`gateway.app`)."""

from gateway.extensions import ExtensionGroup, NoSuchExtension, find_extension, names_of_extensions

__all__ = ["ExtensionGroup", "NoSuchExtension", "find_extension", "names_of_extensions"]
