"""The stream helper of the anthropic SDK: text as it comes, and the message at the end."""

import anthropic

client = anthropic.Anthropic()
with client.messages.stream(
    model="claude-sonnet-4-5",
    max_tokens=200,
    messages=[{"role": "user", "content": "What does order 812 cost?"}],
) as stream:
    for text in stream.text_stream:
        print(text, end="")
    print()
    print(stream.get_final_message().usage.output_tokens, "tokens")
