"""Who may see what: bearer tokens, each with the streams that it opens.

Only digests of tokens leave the process that was given them.
"""

import hashlib
import hmac
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from raydp_sim.errors import InputError, bad_field
from raydp_sim.metrics.described import RELEASED, SIMULATION_ONLY, VISIBILITIES

VARIABLE = "RAYDP_SIM_TOKEN"
_SHORTEST = 16
_PREFIX = "Bearer "


class Grant(NamedTuple):
    """What one token opens.

    Attributes:
        digest: SHA-256 of the token.
        scopes: the marks of the streams: released, simulation-only, ledger.
        reader: if given, only streams that are this reader's own, and no others.
    """

    digest: str
    scopes: tuple[str, ...] = VISIBILITIES
    reader: str | None = None

    def opens(self, visibility: str, reader: str | None) -> bool:
        """Say whether a stream may be seen.

        Args:
            visibility: its mark.
            reader: whose it is, if only one reader's. Then that reader's tokens open it, and those
                of whoever runs the simulation and sees all of it.

        Example:
            >>> analyst = grant("a token that is long enough", [RELEASED], "alice")
            >>> [analyst.opens(RELEASED, whose) for whose in ("alice", "bob", None)]
            [True, False, False]
            >>> analyst.opens("simulation-only", "alice")
            False
            >>> anyone = grant("a token that is long enough", [RELEASED])
            >>> anyone.opens(RELEASED, None), anyone.opens(RELEASED, "alice")
            (True, False)
        """
        if visibility not in self.scopes:
            return False
        sees_all = self.reader is None and SIMULATION_ONLY in self.scopes
        return sees_all or self.reader == reader


def grant(token: str, scopes: Sequence[str] = VISIBILITIES, reader: str | None = None) -> Grant:
    """Return what a token opens, without the token."""
    return Grant(hashlib.sha256(token.encode()).hexdigest(), tuple(scopes), reader)


def admitted(grants: Sequence[Grant], header: str | None) -> Grant | None:
    """Return what the bearer of an authorization header may see; None if nothing.

    Every token is compared, and each in constant time: how long it takes says nothing.

    Args:
        grants: of all tokens there are.
        header: as `Bearer TOKEN`; None if there was none.

    Example:
        >>> known = [grant("the token of this run")]
        >>> admitted(known, "Bearer the token of this run") is known[0]
        True
        >>> [admitted(known, header) for header in (None, "", "Bearer ", "the token of this run")]
        [None, None, None, None]
    """
    given = header or ""
    token = given.removeprefix(_PREFIX) if given.startswith(_PREFIX) else ""
    digest, found = hashlib.sha256(token.encode()).hexdigest(), None
    for each in grants:
        if hmac.compare_digest(digest, each.digest):
            found = each
    return found


class Issued(NamedTuple):
    """Tokens for a run: what each opens, and those that were made for it, to be shown once."""

    grants: list[Grant]
    made: dict[str, str]


def issued(path: str | Path | None) -> Issued:
    """Return the tokens of a file, else that of the environment, else new ones.

    Args:
        path: a file with one token that opens everything, or a YAML list of `{token, scopes,
            reader}`; None: see `RAYDP_SIM_TOKEN`.

    Raises:
        InputError: names the file and what is wrong in it.
    """
    if path is not None:
        return Issued(_of_file(Path(path)), {})
    if given := os.environ.get(VARIABLE):
        return Issued([_checked({"token": given}, VARIABLE)], {})
    everything, analyst = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    grants = [grant(everything), grant(analyst, [RELEASED])]
    return Issued(grants, {"everything": everything, "released streams only": analyst})


def _of_file(path: Path) -> list[Grant]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = getattr(error, "strerror", None) or "it is not YAML"
        raise bad_field("metrics.tokens", str(path), f"{why}: give a file of tokens") from None
    entries = [{"token": document}] if isinstance(document, str) else document
    if not isinstance(entries, list) or not entries:
        remedy = "write one token, or a list such as - {token: ..., scopes: [released]}"
        raise InputError(f"{path}: there are no tokens in it; {remedy}")
    return [_checked(entry, str(path)) for entry in entries]


def _checked(entry: Any, source: str) -> Grant:
    if not isinstance(entry, dict) or not set(entry) <= {"token", "scopes", "reader"}:
        raise InputError(f"{source}: an entry is not a mapping of token, scopes and reader")
    token, scopes = entry.get("token"), entry.get("scopes", list(VISIBILITIES))
    if not isinstance(token, str) or len(token) < _SHORTEST:
        # The token itself is not repeated: messages end up in logs.
        raise InputError(f"{source}: a token has fewer than {_SHORTEST} characters; make it longer")
    if not isinstance(scopes, list) or not scopes or not set(scopes) <= set(VISIBILITIES):
        raise bad_field("scopes", scopes, f"choose among {', '.join(VISIBILITIES)}", source)
    reader = entry.get("reader")
    if reader is not None and not isinstance(reader, str):
        raise bad_field("reader", reader, "it must be the name of a reader", source)
    return grant(token, scopes, reader)
