"""The worked example of the specification: a run of one tool call, every digest spelled out."""

from __future__ import annotations

import hashlib
import hmac

from spec.vector_maker import Maker, lines

REQUEST = '{"args":[812],"rate":1.0}'


def maker() -> Maker:
    """The run: ``lookup_order(812, rate=1.0)`` gave ``{"total": 40}``."""
    made = Maker("worked example").start(seed=None, entry="absent")
    made.request("root/agent#0", "tool", "lookup_order", {"rate": 1.0, "args": [812]})
    made.outcome("root/agent#0", {"total": 40})
    return made.end(totals={"calls": 1, "deliveries": 1})


def data() -> bytes:
    """The file."""
    return maker().data


def text() -> str:
    """The section of the specification, recomputed from the file with hashlib alone."""
    made = maker()
    parts = lines(made.data)
    blob = next(line for line in parts if b'"rate"' in line and line.startswith(b'{"blob"'))
    salt, content = blob[83:115].decode(), blob[blob.index(b'"data":') + 7 : -1]
    prefix = b"agentloom/v1/"
    ident = hashlib.sha256(prefix + b"blob\x00" + bytes.fromhex(salt) + b"json\x00" + content).hexdigest()
    key = hmac.new(made.nonce, prefix + b"key/1\x00plain/1\x00" + REQUEST.encode(), "sha256").hexdigest()
    entries = [line for line in parts if line.startswith(b'{"seq":')]
    digests = [hashlib.sha256(prefix + b"entry\x00" + line).hexdigest() for line in entries]
    leaves = [hashlib.sha256(prefix + b"leaf\x00" + bytes.fromhex(digest)).hexdigest() for digest in digests]
    node = [
        hashlib.sha256(prefix + b"node\x00" + bytes.fromhex(leaves[i] + leaves[i + 1])).hexdigest()
        for i in (0, 2)
    ]
    root = hashlib.sha256(prefix + b"node\x00" + bytes.fromhex(node[0] + node[1])).hexdigest()
    parts_text = "\n".join(line.decode() for line in parts)
    digest_text = "\n".join(
        f"entry {n}  {digest}\n leaf {n}  {leaves[n]}" for n, digest in enumerate(digests)
    )
    return f"""The agent called `lookup_order(812, rate=1.0)`; the tool gave `{{"total": 40}}`. The file:

```
{parts_text}
```

The blob of the request has the salt `{salt}` and the content `{content.decode()}`, in the order of the call. Its id:

```
SHA-256("agentloom/v1/blob" 00 {salt} "json" 00 {content.decode()})
= {ident}
```

The canonical form of the request sorts its members. The key under the nonce:

```
nonce  {made.nonce.hex()}
HMAC-SHA-256(nonce, "agentloom/v1/key/1" 00 "plain/1" 00 {REQUEST})
= {key}
key    {key[:32]}
```

The digests of the four entries (the last is the head), and the leaves made of them:

```
{digest_text}
```

The Merkle tree:

```
node(leaf 0, leaf 1)  {node[0]}
node(leaf 2, leaf 3)  {node[1]}
root                  {root}
```

"""
