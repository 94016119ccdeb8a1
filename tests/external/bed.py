"""What the checks with real programs share: commands that are run and shown, and checks that are told line by line."""

import pathlib
import subprocess

RUN_SECS_MAX = 120
"""The longest that a command may take."""


def run(words, cwd, env, show=False, code=0):
    """What a command writes to stdout and to stderr. It has to end with `code`; none is any."""
    words = [str(word) for word in words]
    done = subprocess.run(
        words, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_SECS_MAX
    )
    if show:
        shown = " ".join([pathlib.Path(words[0]).name, *words[1:]])
        print(f"$ {shown}", *(done.stdout + done.stderr).splitlines(), sep="\n  ")
    told = f"{words} ended with {done.returncode}: {done.stdout[-800:]}{done.stderr[-800:]}"
    assert code is None or done.returncode == code, told
    return done.stdout, done.stderr


def failures(checks, *given, prefix=""):
    """Makes the checks, tells a line `ok NAME` or `FAIL NAME: WHY` of each, and counts those that failed."""
    failed = 0
    for check in checks:
        name = prefix + check.__name__
        try:
            check(*given)
            print(f"ok   {name}", flush=True)
        except Exception as error:
            failed += 1
            print(f"FAIL {name}: {type(error).__name__}: {error}".replace("\n", " "), flush=True)
    return failed
