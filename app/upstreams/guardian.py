"""A process that outlives us, to end what we leave behind when we are killed.

A killed gateway's children die with it; what they have started does not. So the guardian waits beside us for the end
of a pipe that only we hold, and then sweeps. It is a small program of its own and no fork of ours: it holds nothing of
ours, neither sockets nor files nor memory, and can be replaced at any time.
"""

import asyncio
import logging
import os
import subprocess
import sys
from pathlib import Path

from app.upstreams import proc
from app.upstreams.sweep import run_tag
from app.upstreams.vigil import NAME
from app.upstreams.watch import Exit, Watch

log = logging.getLogger("viaduct")

_ROOT = str(Path(__file__).parents[2])
_PROGRAM = "import sys; sys.path.append(sys.argv[2]); from app.upstreams.vigil import keep; keep(sys.argv[3])"
_KEPT = ("LD_LIBRARY_PATH",)
"""Of our environment, what Python may need to be found; it gets nothing that may be secret."""
_TRIAL_SECONDS = 1.0
"""One that ends sooner may end again at once, so the next one waits: that long, then twice as long each time."""
_PAUSE_MAX_SECONDS = 60.0


class Guardian:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: Watch | None = None
        self._lifeline = -1
        self._started_at = 0.0
        self._is_wanted = True
        self._failures = 0
        """How many in a row could not run."""
        self._timer: asyncio.TimerHandle | None = None
        self._gone = asyncio.Event()
        self._gone.set()

    @property
    def pid(self) -> int | None:
        """None while there is none."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Where there is something to sweep: with the first process of a container everything else ends anyway."""
        self._timer = None
        if os.getpid() == 1 or not proc.pids():
            return
        try:
            self._process, self._lifeline = _started()
        except OSError as wrong:
            self._start_later(logging.WARNING, "no guardian", {"cause": str(wrong.strerror)})
            return
        self._started_at = self._loop.time()
        self._gone.clear()
        self._watch = Watch(self._process, self._ended, leaves_nothing=True)
        self._watch.start()

    async def end(self) -> None:
        """For a gateway that ends in order, and has swept itself."""
        self._is_wanted = False
        if self._timer is not None:
            self._timer.cancel()
        if self._process is not None:
            self._process.kill()
        await self._gone.wait()

    def _ended(self, status: Exit) -> None:
        assert self._watch is not None  # noqa: S101 - it is what calls
        self._watch.let_go()
        self._process = None
        os.close(self._lifeline)
        self._gone.set()
        if not self._is_wanted:
            return
        if self._loop.time() - self._started_at < _TRIAL_SECONDS:
            self._start_later(logging.ERROR, "the guardian cannot run", _how(status))
            return
        self._failures = 0
        log.warning("the guardian was ended, starting another", extra=_how(status))
        self.start()

    def _start_later(self, level: int, what: str, how: dict[str, str]) -> None:
        """It is said once in a row: what cannot be stays so for a while."""
        if not self._failures:
            log.log(level, "%s: a killed gateway may leave processes behind; it is tried again", what, extra=how)
        pause = min(_PAUSE_MAX_SECONDS, _TRIAL_SECONDS * 2.0**self._failures)
        self._failures = min(self._failures + 1, 60)
        self._timer = self._loop.call_later(pause, self.start)


def _started() -> tuple[subprocess.Popen[bytes], int]:
    """It, and our end of its pipe. Its name stands in its arguments, too, for those who list them."""
    theirs, ours = os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603 - an argv of ours
            [sys.executable, "-I", "-S", "-c", _PROGRAM, NAME, _ROOT, run_tag()],
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={name: os.environ[name] for name in _KEPT if name in os.environ},
            start_new_session=True,
        )
    except OSError:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return process, ours


def _how(status: Exit) -> dict[str, str]:
    return {"exit": status.describe()}
