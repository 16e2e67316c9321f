"""Run a command with a stand-in for OpenAI on this machine, which answers from a script: no key is needed.

python examples/scripts/without_key.py agentloom run examples/scripts/refund.py -- "refund order 812"
"""

import os
import subprocess
import sys

from agentloom.testing import FakeProvider, Says, Wants

ANSWERS = [
    Says(tools=[Wants("lookup_order", {"order_id": 812})], usage=(85, 0, 17, 0)),
    Says(tools=[Wants("issue_refund", {"order_id": 812, "amount": 40})], usage=(117, 0, 22, 0)),
    Says("Refunded order 812: $40.00", usage=(148, 0, 11, 0)),
]

if __name__ == "__main__":
    with FakeProvider(ANSWERS) as fake:  # fake.env(): OPENAI_BASE_URL and the like
        sys.exit(subprocess.run(sys.argv[1:], env=os.environ | fake.env(), check=False).returncode)
