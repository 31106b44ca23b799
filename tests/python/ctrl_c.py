"""Programs that get Ctrl-C."""

import subprocess
import sys
import textwrap

PROGRAM = """
    import os, signal, sys, threading, time, penstock
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sent = []
    def send():
        time.sleep(0.3)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    {setup}
    threading.Thread(target=send).start()
    try:
        {call}
    except KeyboardInterrupt:
        print(time.monotonic() - sent[0])
        {after}
    else:
        print("finished before")
"""


def interrupted(folder, setup, call, after="pass"):
    """What a process printed that got Ctrl-C during `call`, in words: the seconds it took to answer, then `after`'s."""
    code = textwrap.dedent(PROGRAM).format(setup=setup, call=call, after=after)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=folder)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()
