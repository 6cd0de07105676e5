# SPDX-License-Identifier: Apache-2.0
"""Tags: their definitions, their attachments to objects, and suggestions."""
