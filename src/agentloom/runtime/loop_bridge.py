"""What a run's loop passes on to the outer loop under a guard that refuses nothing.

What comes through is not recorded: the trace is marked ("not replayable past"), and a replay stops where it is asked
for. Under ``guard="strict"`` there is no bridge, and the inner loop refuses these methods by name.
"""

from __future__ import annotations

from agentloom.runtime.loop_connections import Connections
from agentloom.runtime.loop_descriptors import Descriptors
from agentloom.runtime.loop_processes import Processes
from agentloom.runtime.loop_servers import Servers

__all__ = ["Bridge"]


class Bridge(Connections, Servers, Processes, Descriptors):
    """Takes over the methods of an inner loop that need the operating system."""
