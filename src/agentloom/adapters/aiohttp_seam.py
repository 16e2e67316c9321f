"""The seam of aiohttp's client: its sockets stay on the outer loop, and the run gets what came through them.

A session stays as it is (redirects, cookies, middlewares, traces, time limits); what is replaced, for every connector,
is ``connect``: inside a run it gives a connection without a socket (`agentloom.adapters.aiohttp_inner`). What the
client writes to it is taken together to one request; where the client waits for the answer a host call is made, which
a session on the outer loop performs (`agentloom.adapters.aiohttp_outer`).
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, cast

from agentloom.adapters.aiohttp_inner import Seam
from agentloom.adapters.releases import needed
from agentloom.runtime.passed import passes

__all__ = ["install"]


def install(module: ModuleType) -> None:
    """Patch the connectors of ``aiohttp``. Idempotent; outside a run they connect as before.

    Raises ``NotSupported`` when this release does not have what the seam stands on.
    """
    aiohttp = cast(Any, module)
    if getattr(aiohttp, "__agentloom__", False):
        return
    needed(module, "BaseConnector", "connect")
    needed(module, "BaseConnector", "close")
    needed(module, "client_proto.ResponseHandler", "read")
    needed(module, "client_proto.ResponseHandler", "set_response_params")
    needed(module, "StreamReader", "_wait")
    seam = Seam(aiohttp)
    connect, close = aiohttp.BaseConnector.connect, aiohttp.BaseConnector.close

    @functools.wraps(connect)
    async def connect_in_run(self: Any, req: Any, traces: Any, timeout: Any) -> Any:  # noqa: ASYNC109 - aiohttp's
        if passes("aiohttp.ClientSession", req.url.host or ""):
            return await connect(self, req, traces, timeout)
        return seam.connection(self, req, timeout)

    @functools.wraps(close)
    def close_both(self: Any, *args: Any, **kwargs: Any) -> Any:
        seam.outer.close(self)
        return close(self, *args, **kwargs)

    aiohttp.BaseConnector.connect = connect_in_run
    aiohttp.BaseConnector.close = close_both
    aiohttp.__agentloom__ = True
