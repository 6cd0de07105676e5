# SPDX-License-Identifier: Apache-2.0
"""Read tables of a Lakegate catalog in a trusted Python process, and apply `read-restrictions` to each record batch.

Only trusted code may run in the process: code in the same process can read the raw rows from memory. The package needs
the extra `lakegate[reader]`.
"""

from lakegate.reader.apply import BoundRestrictions, apply, bind
from lakegate.reader.catalog import LoadFailed
from lakegate.reader.failures import ReadFailed
from lakegate.reader.session import ExchangeFailed, Reader
from lakegate.reader.table import RestrictedTable
from lakegate.restrictions.actions import Action
from lakegate.restrictions.wire import ReadRestrictions, RestrictionNotSupported, decode

__all__ = [
    "Action",
    "BoundRestrictions",
    "ExchangeFailed",
    "LoadFailed",
    "ReadFailed",
    "ReadRestrictions",
    "Reader",
    "RestrictedTable",
    "RestrictionNotSupported",
    "apply",
    "bind",
    "decode",
]
