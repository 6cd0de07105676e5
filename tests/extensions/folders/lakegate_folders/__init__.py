# SPDX-License-Identifier: Apache-2.0
"""Extensions of Lakegate that keep secrets and files in folders of the file system."""
