"""Finds the scenarios of a folder of scripts and plays them, several at a time, restarts included."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.differential.scenario import Scenario, Server, Stop

HERE = Path(__file__).parent
Script = Callable[[Scenario], Any]


def scenarios(folder: str) -> Iterator[tuple[str, Script]]:
    """The public functions of the scripts in a folder, as FILE.FUNCTION; as FILE-WORD.FUNCTION of FOLDER-WORD."""
    folder, hyphen, word = folder.partition("-")
    for found in pkgutil.iter_modules([str(HERE / folder)]):
        module = importlib.import_module(f"tests.differential.{folder}.{found.name}")
        for name, made in vars(module).items():
            if inspect.isfunction(made) and not name.startswith("_") and made.__module__ == module.__name__:
                yield f"{found.name}{hyphen}{word}.{name}", made


class Playing:
    """A scenario that is being played. A script that is a generator yields where the broker is to be restarted.

    Attributes:
        restarts: the script has a restart of the broker.
        answers: by step.
        failed: why it could not go on, where that is not an answer of the broker.
    """

    def __init__(self, server: Server, title: str, script: Script) -> None:
        self._server, self._title, self._script = server, title, script
        self.restarts = inspect.isgeneratorfunction(script)
        self._rest: Iterator[Any] | None = None
        self.answers: dict[str, Any] = {}
        self.failed = ""

    def goes_on(self) -> bool:
        """Play up to the next restart; False at the end."""
        try:
            if self._rest is None:
                self.scenario = Scenario(self._server, self._title)  # now: its times are those of the present
                self.answers = self.scenario.answers
                made = self._script(self.scenario)
                self._rest = made if inspect.isgenerator(made) else iter(())
            next(self._rest)
        except StopIteration:
            return False
        except Stop as stop:
            if stop.is_answer:
                self.scenario.note("stopped", str(stop))
            else:
                self.failed = str(stop)
            return False
        except Exception as error:  # whatever a broker does to one scenario, the others go on
            self.failed = f"{type(error).__name__}: {error}"
            return False
        finally:
            self.scenario.disconnect()
        return True


def play(
    server: Server, folder: str, restart: Callable[[], None], *, only: str = "", jobs: int = 12
) -> dict[str, Playing]:
    """Play all scenarios of a folder whose name has `only`; by their titles.

    Those with a restart come first, and `restart` restarts the broker when all of them have come to theirs, before
    sessions of their groups end. The others are played beside what they do afterwards.
    """
    played = {title: Playing(server, title, script) for title, script in scenarios(folder) if only in title}
    left = [one for one in played.values() if one.restarts]
    others = [one for one in played.values() if not one.restarts]
    with ThreadPoolExecutor(jobs) as pool:
        while left or others:
            goes_on = list(pool.map(Playing.goes_on, left))
            left = [one for one, more in zip(left, goes_on, strict=True) if more]
            if left:
                restart()
            left, others = left + others, []
    return played
