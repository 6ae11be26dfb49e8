# SPDX-License-Identifier: Apache-2.0
"""The unchanged `openai` package against a running server; prints TAP.

    openai_client.py BASE_URL MODEL
"""
import asyncio
import sys

import openai

base, model = sys.argv[1], sys.argv[2]
client = openai.OpenAI(base_url=base + "/v1", api_key="key", max_retries=0, timeout=120)
failed = count = 0


def case(fn):
    global failed, count
    count += 1
    try:
        fn()
        print("ok %d - %s" % (count, fn.__doc__))
    except Exception as e:                      # noqa: BLE001: a case must not end the rest
        failed += 1
        print("not ok %d - %s" % (count, fn.__doc__))
        print("# %s: %s" % (type(e).__name__, str(e)[:500].replace("\n", " ")))
    sys.stdout.flush()


def messages(text):
    return [{"role": "user", "content": text}]


def chat(text, **kw):
    return client.chat.completions.create(model=model, messages=messages(text), **kw)


def streamed(text, **kw):
    out, finish, usage, roles = "", None, None, 0
    for c in client.chat.completions.create(model=model, messages=messages(text), stream=True, **kw):
        usage = c.usage or usage
        for ch in c.choices:
            roles += ch.delta.role == "assistant"
            out += ch.delta.content or ""
            finish = ch.finish_reason or finish
    assert roles == 1, "%d roles" % roles
    return out, finish, usage


@case
def models():
    """the model is listed, and can be fetched by its name"""
    ids = [m.id for m in client.models.list()]
    assert ids == [model], ids
    assert client.models.retrieve(model).id == model
    try:
        client.models.retrieve("no-such")
        raise AssertionError("found a model that is not there")
    except openai.NotFoundError:
        pass


@case
def whole():
    """a chat has text, a reason and its usage"""
    r = chat("Hello", max_tokens=8, temperature=0)
    assert r.choices[0].message.role == "assistant"
    assert r.choices[0].finish_reason in ("stop", "length")
    assert r.usage.completion_tokens <= 8 and r.usage.prompt_tokens > 0
    assert r.usage.total_tokens == r.usage.prompt_tokens + r.usage.completion_tokens


@case
def stream():
    """a streamed chat is the whole one, with usage when asked for"""
    a = chat("Hello", max_tokens=24, temperature=0)
    text, finish, usage = streamed("Hello", max_tokens=24, temperature=0,
                                   stream_options={"include_usage": True})
    assert text == a.choices[0].message.content, (text, a.choices[0].message.content)
    assert finish == a.choices[0].finish_reason
    assert usage.completion_tokens == a.usage.completion_tokens


@case
def stop():
    """a stop string ends the text before it, streamed too"""
    full = chat("Count", max_tokens=32, temperature=0, extra_body={"ignore_eos": True})
    text = full.choices[0].message.content
    cut = text[len(text) // 2:len(text) // 2 + 2]
    want = text[:text.index(cut)]
    r = chat("Count", max_tokens=32, temperature=0, stop=[cut], extra_body={"ignore_eos": True})
    assert r.choices[0].message.content == want, (r.choices[0].message.content, want)
    assert r.choices[0].finish_reason == "stop"
    got, finish, _ = streamed("Count", max_tokens=32, temperature=0, stop=cut,
                              extra_body={"ignore_eos": True})
    assert got == want and finish == "stop", (got, want, finish)


@case
def seed():
    """the same seed gives the same text, another seed another"""
    a, b, c = (chat("Tell", max_tokens=24, temperature=1, seed=s).choices[0].message.content
               for s in (7, 7, 8))
    assert a == b and a != c, (a, b, c)


@case
def many():
    """n choices are those of consecutive seeds"""
    r = chat("Tell", max_tokens=12, temperature=1, seed=20, n=3)
    assert [c.index for c in r.choices] == [0, 1, 2]
    for i, c in enumerate(r.choices):
        one = chat("Tell", max_tokens=12, temperature=1, seed=20 + i)
        assert c.message.content == one.choices[0].message.content


@case
def logprobs():
    """log-probabilities: the greedy token is the most likely, and they add up"""
    r = chat("Hello", max_tokens=6, temperature=0, logprobs=True, top_logprobs=3)
    items = r.choices[0].logprobs.content
    # An end token is counted but not shown.
    assert r.usage.completion_tokens - len(items) in (0, 1)
    for it in items:
        assert it.logprob <= 0 and len(it.top_logprobs) == 3
        assert abs(it.logprob - it.top_logprobs[0].logprob) < 1e-6
        assert it.top_logprobs[0].logprob >= it.top_logprobs[1].logprob
    data = b"".join(bytes(it.bytes) for it in items).decode("utf-8", "replace")
    assert data.startswith(r.choices[0].message.content[:3]), data


@case
def completions():
    """text completions: echo, log-probabilities, token ids as the prompt"""
    a = client.completions.create(model=model, prompt="abc", max_tokens=6, temperature=0, logprobs=2)
    c = a.choices[0]
    assert len(c.logprobs.tokens) == len(c.logprobs.token_logprobs) == len(c.logprobs.text_offset)
    e = client.completions.create(model=model, prompt="abc", max_tokens=6, temperature=0, echo=True)
    assert e.choices[0].text == "abc" + c.text, e.choices[0].text
    s = "".join(k.choices[0].text for k in client.completions.create(
        model=model, prompt="abc", max_tokens=6, temperature=0, stream=True) if k.choices)
    assert s == c.text


@case
def refused():
    """a field that is not served is refused by name"""
    for kw in ({"logit_bias": {"5": 1}}, {"tools": [{"type": "function", "function": {"name": "f"}}]},
               {"response_format": {"type": "json_object"}}, {"extra_body": {"no_such_field": 1}}):
        try:
            chat("Hello", max_tokens=2, **kw)
            raise AssertionError("accepted %s" % kw)
        except openai.BadRequestError as e:
            name = list(kw.get("extra_body", kw))[0]
            assert name in str(e) and e.code == "unsupported_parameter", e
    try:
        chat("Hello", temperature=9)
        raise AssertionError("accepted temperature 9")
    except openai.BadRequestError as e:
        assert "temperature" in str(e)


@case
def too_long():
    """a prompt that does not fit is refused with how much is too much"""
    try:
        chat("word " * 20000)
        raise AssertionError("accepted")
    except openai.BadRequestError as e:
        assert e.code == "context_length_exceeded" and "too many" in str(e), e


@case
def parallel():
    """32 streams at once, each the text it gives alone"""
    prompts = ["Say %d times %s" % (i, "abcdefgh"[i % 8] * (1 + i)) for i in range(32)]

    def args(i):
        return dict(model=model, messages=messages(prompts[i]), max_tokens=8 + i % 9,
                    temperature=0 if i % 2 else 0.9, seed=i)

    alone = [client.chat.completions.create(**args(i)).choices[0].message.content for i in range(32)]

    async def one(c, i):
        out = ""
        async for k in await c.chat.completions.create(stream=True, **args(i)):
            for ch in k.choices:
                out += ch.delta.content or ""
        return out

    async def run():
        async with openai.AsyncOpenAI(base_url=base + "/v1", api_key="key", max_retries=0,
                                      timeout=300) as c:
            return await asyncio.gather(*(one(c, i) for i in range(32)))

    got = asyncio.run(run())
    wrong = [i for i in range(32) if got[i] != alone[i]]
    assert not wrong, "streams %s differ" % wrong


print("1..%d" % count)
sys.exit(1 if failed else 0)
