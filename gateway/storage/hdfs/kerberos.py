# SPDX-License-Identifier: Apache-2.0
"""Get a Kerberos ticket before the library of HDFS needs one.

The library gets the first ticket while it holds Python's lock. A key distribution centre that does not answer would
stop the whole process for as long. The call here releases the lock, and its ticket is kept where the library finds it:
in the ticket cache.
"""

from __future__ import annotations

import ctypes
import time
from typing import Any, Final

__all__ = ["require_ticket"]

_LIBRARY: Final = "libgssapi_krb5.so.2"  # the name under which the library of HDFS loads it
_INITIATE: Final = 1  # RFC 2744, section 5.2, GSS_C_INITIATE
_INDEFINITE: Final = 0xFFFFFFFF
_AT_ONCE_SECONDS: Final = 2.0


def require_ticket() -> None:
    """Get a ticket of the default principal if none is cached. Raises TimeoutError if that failed after some seconds.

    A failure at once means that no principal is configured. Then the library needs no ticket either, or it reports the
    missing one itself.
    """
    try:
        gssapi = ctypes.CDLL(_LIBRARY)  # Calls of a CDLL release Python's lock.
    except OSError:
        return
    began = time.monotonic()
    if not _acquired(gssapi) and time.monotonic() - began > _AT_ONCE_SECONDS:
        raise TimeoutError


def _acquired(gssapi: Any) -> bool:
    """Return True if there is a credential. To ask for its lifetime gets the ticket; to acquire it does not (MIT
    krb5).
    """
    minor, credential, seconds = ctypes.c_uint32(), ctypes.c_void_p(), ctypes.c_uint32()
    answer = gssapi.gss_acquire_cred(
        ctypes.byref(minor), None, ctypes.c_uint32(_INDEFINITE), None, _INITIATE, ctypes.byref(credential), None, None
    )
    if answer:
        return False
    answer = gssapi.gss_inquire_cred(ctypes.byref(minor), credential, None, ctypes.byref(seconds), None, None)
    gssapi.gss_release_cred(ctypes.byref(minor), ctypes.byref(credential))
    return not answer
