# SPDX-License-Identifier: Apache-2.0
"""Tags: definitions, attachments to objects, and suggestions."""
