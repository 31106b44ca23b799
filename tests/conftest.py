"""What all of pytest's tests rely on: that Ctrl-C is answered.

A shell without job control has what it starts in the background ignore SIGINT and SIGQUIT, and so do all processes that
this starts in turn. Tests that send such a signal to themselves, or to a program of theirs, would wait for ever.
"""

from __future__ import annotations

import signal

for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)
