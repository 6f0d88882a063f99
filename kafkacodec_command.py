"""The script ``kafkacodec``. Importing it takes no time, and ends the time in which an interrupt prints a traceback.

It is outside the package, because importing that is most of what happens before `main`.
"""

import _signal  # type: ignore[import-not-found]  # the module signal without its enumerations

# Until `main` can report an interrupt, it ends the process. One that is ignored stays ignored.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def main() -> None:
    """Run the command with the arguments of the process, and exit."""
    from kafkacodec.cli.__main__ import main as run

    run()
