"""litellm, to a server that speaks OpenAI's protocol."""

import os

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or importing it fetches a list of prices

import litellm

answer = litellm.completion(
    model="openai/gpt-4o", messages=[{"role": "user", "content": "What does order 812 cost?"}]
)
print(answer.choices[0].message.content)
