"""Ending with the process that started us, where it asked for that."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1

_PARENT = os.getppid()
"""Noted at import, which must be early: a parent that ends before is never seen."""


def stop_with_it() -> None:
    """Be told SIGTERM when it ends, or now if it has ended already. Only Linux can do the former."""
    prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != _PARENT:
        signal.raise_signal(signal.SIGTERM)
