"""What can go wrong, and what happens then.

    HoplingError
    |-- SettingsError    the user wrote something wrong    the command stops before it starts
    |   `-- DataError    a file holds a bad line           the same; names file, line and rule
    |-- WorldError       something did not answer          the episode ends unscored and is counted
    `-- ToolError        the policy asked amiss            the policy reads the message and plays on

Any other exception is our own mistake, and the run stops.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class HoplingError(Exception):
    """The root of every error that hopling raises on purpose."""


class SettingsError(HoplingError):
    """What the user wrote cannot be done; the message says what to write instead."""


class DataError(SettingsError):
    """A file holds something that cannot be read; the message names file, line and rule."""


class WorldError(HoplingError):
    """A graph, server or judge did not answer; nothing can be said about the policy."""


class ToolError(HoplingError):
    """A call that cannot be carried out; the policy reads the message."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the closest known name, or "" when none is close.

    >>> nearest("kl_coef", ["kl", "seed"])
    " Did you mean 'kl'?"
    """
    close = get_close_matches(name, list(known), n=1, cutoff=0.4)
    return f" Did you mean {close[0]!r}?" if close else ""
