"""Who is let in: a token in a header or a cookie, checked before anything else is looked at."""

import base64
import binascii
import ipaddress
import socket
import traceback
from collections.abc import Sequence
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

from raydp_sim.metrics.live.access import Grant, admitted
from raydp_sim.metrics.page.answers import DAMAGED, Watched

# Nothing but our own files is loaded, and no script or style stands in a page.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
REFUSED = "a valid token is needed"
ELSEWHERE = "this page is for this machine only: open it as localhost or 127.0.0.1"
_OPEN = ("/api/login", "/api/logout")
_UNCOUNTED = ("/api/events",)  # which lasts as long as somebody looks


def cookie_name(port: int | None) -> str:
    """Return the name of the cookie: browsers send it to all ports of a host, so each has its own.

    Example:
        >>> cookie_name(8800)
        'raydp-sim-8800'
    """
    return f"raydp-sim-{port or 80}"


def packed(token: str) -> str:
    """Return a token as a cookie can hold it.

    Example:
        >>> unpacked(packed("any text; even this"))
        'any text; even this'
    """
    return base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


def unpacked(value: str) -> str:
    """Return the token of a cookie; empty if it holds none."""
    try:
        return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).decode()
    except (binascii.Error, ValueError):
        return ""


def bearer(headers: Headers, port: int | None) -> str | None:
    """Return the token of a request as an authorization header has it; None if it has none."""
    given = headers.getlist("authorization")
    if given:
        return given[0] if len(given) == 1 else None
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(cookie_name(port))
    except CookieError:
        return None
    return None if found is None else f"Bearer {unpacked(found.value)}"


def is_here(host: str) -> bool:
    """Say whether a Host header names this machine.

    A stranger's name may be made to lead here, so that the stranger's page and this one are the
    same place to a browser.

    Example:
        >>> [is_here(host) for host in ("localhost:8800", "127.0.0.1", "[::1]:80", "evil.example")]
        [True, True, True, False]
    """
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name.lower() in ("localhost", socket.gethostname().lower()):
        return True
    try:
        return ipaddress.ip_address(name.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def from_elsewhere(headers: Headers) -> bool:
    """Say whether another site's page sent a request; programs that are no browser do not say."""
    if (said := headers.get("sec-fetch-site")) is not None:
        return said not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and origin.partition("//")[2] != headers.get("host")


class Door:
    """Lets requests for data in only with a token, and gives every answer its headers.

    Args:
        app: what is behind it.
        grants: of the tokens that there are.
        answering: is told of answers that are being made.
        here: whether only this machine is served, and so only under its own names.
    """

    def __init__(
        self, app: Any, grants: Sequence[Grant], answering: Watched, here: bool = False
    ) -> None:
        self.app, self.grants, self.answering, self.here = app, grants, answering, here

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        began = False

        async def sending(message: Any) -> None:
            nonlocal began
            began = True
            if message["type"] == "http.response.start":
                answered = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    answered[name] = value
                if "cache-control" not in answered:
                    answered["Cache-Control"] = "no-store"
            await send(message)

        path: str = scope["path"]
        headers = Headers(scope=scope)
        if self.here and not is_here(headers.get("host", "")):
            await JSONResponse({"error": ELSEWHERE}, 421)(scope, receive, sending)
            return
        if path in _OPEN and from_elsewhere(headers):
            # Nobody else's page signs anyone in or out.
            await JSONResponse({"error": "sent by another site"}, 403)(scope, receive, sending)
            return
        if path.startswith("/api/") and path not in _OPEN:
            port = (scope.get("server") or (None, None))[1]
            grant = admitted(self.grants, bearer(headers, port))
            if grant is None:
                # The same whatever was asked for: not even what exists is told.
                answer = JSONResponse({"error": REFUSED}, 401)
                await answer(scope, receive, sending)
                return
            scope.setdefault("state", {})["grant"] = grant
        counted = path not in _UNCOUNTED
        try:
            if counted:
                self.answering(1)
            await self.app(scope, receive, sending)
        except DAMAGED:
            if began:
                raise
            traceback.print_exc()
            await JSONResponse({"error": "the run cannot be read"}, 500)(scope, receive, sending)
        finally:
            if counted:
                self.answering(-1)
