"""Programs that get Ctrl-C."""

import subprocess
import sys
import textwrap

# The call stands in a function: where a loop is the first statement of a `try`, CPython 3.11 looks up an interrupt at
# its backward jump one instruction before the range of the `try`, and the `except` never sees it.
PROGRAM = """
    import os, signal, sys, threading, time, penstock
    signal.signal(signal.SIGINT, signal.default_int_handler)
    begun = threading.Event()
    sent = []
    def send():
        begun.wait()
        time.sleep(0.3)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    {setup}
    def call():
        begun.set()
        {call}
    threading.Thread(target=send).start()
    try:
        call()
    except KeyboardInterrupt:
        print(time.monotonic() - sent[0])
        {after}
    else:
        print("finished before")
"""

SOON = 1.0
ATTEMPTS = 3


def interrupted(folder, setup, call, after="pass"):
    """What a process printed that got Ctrl-C during `call`, in words: the seconds it took to answer, then `after`'s."""
    code = textwrap.dedent(PROGRAM).format(setup=setup, call=call, after=after)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert not result.stdout.startswith("finished before"), "the call was over before it got Ctrl-C"
    return result.stdout.split()


def answers_ctrl_c(folder, setup, call, after="pass"):
    """Asserts that `call` answers Ctrl-C soon; the words that `after` printed. A busy machine may delay any one run, a
    call that does not answer is late in all of them."""
    taken = []
    for _ in range(ATTEMPTS):
        seconds, *words = interrupted(folder, setup, call, after)
        taken.append(float(seconds))
        if taken[-1] < SOON:
            return words
    raise AssertionError(f"Ctrl-C was answered after {taken} seconds")
