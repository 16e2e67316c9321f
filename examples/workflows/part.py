"""A workflow as a step of another one: a part with a name and an input of its own, recorded as a child run.

OPENAI_BASE_URL=... python part.py "Bonjour"
"""

import sys

from agentloom import Workflow

translate = Workflow("translate")
translate.step("english", model="gpt-4o", prompt="Translate into English: {input}")
translate.step("checked", fn=lambda state: state.english.strip() or "(nothing)")

graph = Workflow("answer_mail")
graph.step("read", workflow=translate)
graph.step("reply", model="gpt-4o", prompt="Answer this mail in one sentence: {read}")
graph.step("send", workflow=translate, args=lambda state: state.reply)

if __name__ == "__main__":
    trace = graph.run(" ".join(sys.argv[1:]) or "Bonjour")
    print(trace.output)
    print(trace.replay())
