# SPDX-License-Identifier: Apache-2.0
"""Export the functions that find extensions of installed packages, for the modules of the composition root."""

from gateway.extensions import ExtensionGroup, NoSuchExtension, find_extension, names_of_extensions

__all__ = ["ExtensionGroup", "NoSuchExtension", "find_extension", "names_of_extensions"]
