"""A session as Markdown: its shape, and that no message reaches beyond itself."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from markdown_it import MarkdownIt

from amux.model import Attachment, CostRecord, Message, Session, ToolCall, ToolResult
from amux.output.calls import input_parts, outcome, subject
from amux.output.markdown import chunks, contained, markdown
from amux.output.plain import PIECE, dollars, one_line, pieces, visible

START = datetime(2026, 11, 18, 6, 8, 12, tzinfo=UTC)


def session(*messages: Message, **known: Any) -> Session:
    first = {
        "agent": "claude",
        "session_id": "cb37a6b1",
        "title": "Add a marmalade middleware",
        "created_at": START,
        "updated_at": START,
        "turn_count": 1,
        "message_count": len(messages),
        "messages": messages,
    }
    return Session(**(first | known))


def worked() -> tuple[Message, ...]:
    """A prompt, two answers with a call each, and what the tools said."""
    return (
        Message("user", "Add a marmalade middleware"),
        Message(
            "assistant",
            "I'll look first.",
            tool_calls=(ToolCall("1", "Bash", {"command": "ls -la src", "timeout": 5}, "app.py\nsetup.cfg\n"),),
            thinking="Quince jelly is not the same.",
        ),
        Message("tool", "app.py\nsetup.cfg\n", tool_result=ToolResult("1", "Bash", "app.py\nsetup.cfg\n")),
        Message(
            "assistant",
            "",
            tool_calls=(ToolCall("2", "Edit", {"path": "app.py", "oldText": "a", "newText": "b\nc"}, "ok"),),
        ),
        Message("tool", "ok", tool_result=ToolResult("2", "Edit", "ok")),
        Message("assistant", "Done."),
    )


FULL = """\
# Add a marmalade middleware

- id: `claude:cb37a6b1`
- agent: claude 2.1.326
- model: `claude-opus-5-5`
- cwd: `/work/shop`
- branch: `main`
- created: 2026-11-18 06:08:12 UTC
- updated: 2026-11-18 06:08:12 UTC
- turns: 1
- messages: 6
- cost: ~$1.84
- parent: `0a1b2c3d`

### User

Add a marmalade middleware

### Assistant

<details>
<summary>Thinking</summary>

Quince jelly is not the same.

</details>

I'll look first.

**Bash**

```sh
ls -la src
```

```json
{"timeout": 5}
```

### Tool

**Bash** `ls -la src`

```
app.py
setup.cfg
```

### Assistant

**Edit**

```json
{"path": "app.py"}
```

```diff
-a
+b
+c
```

### Tool

**Edit** `app.py`

```
ok
```

### Assistant

Done.

---

Cost: ~$1.84 (estimated)

Tokens: 1,200 fresh, 48,100 cached, 310 output
"""

SHORT = """\
### User

Add a marmalade middleware

### Assistant

I'll look first.

- **Bash** `ls -la src` · 2 lines
- **Edit** `app.py` · +2 −1

Done.

---
"""


def test_a_session_in_full():
    shown = session(
        *worked(),
        agent_version="2.1.326",
        model="claude-opus-5-5",
        cwd="/work/shop",
        git_branch="main",
        parent_id="0a1b2c3d",
        cost=CostRecord(Decimal("1.84"), 1200, 310, cached_tokens=48_100, source="estimated"),
    )

    assert markdown(shown) == FULL


def test_a_session_in_short_has_a_line_for_each_call():
    assert SHORT in markdown(session(*worked()), tools="short", thinking=False)


def test_without_tools_only_the_words_remain():
    text = markdown(session(*worked()), tools="none", thinking=False)

    assert "I'll look first.\n\nDone." in text
    assert "Bash" not in text
    assert "app.py" not in text


def test_an_answer_to_no_call_is_shown_all_the_same():
    lost = Message("tool", "late", tool_result=ToolResult("9", "Bash", "late"), is_error=True)

    assert "### Tool\n\n**Bash** failed\n\n```\nlate\n```" in markdown(session(lost))
    assert "### Tool\n\n- **Bash** · failed" in markdown(session(lost), tools="short")


def test_an_output_that_no_message_repeats_stands_with_its_call():
    text = markdown(session(Message("assistant", tool_calls=(ToolCall("1", "run", "x", "boom", is_error=True),))))

    assert "**run**\n\n```\nx\n```\n\nfailed:\n\n```\nboom\n```" in text


@pytest.mark.parametrize("text", ["a", "```\ncode\n```", "x `````` y", "~~~\n````\n"])
def test_a_fence_is_longer_than_any_run_of_backticks_inside(text):
    longest = max(map(len, re.findall("`+", text)), default=0)

    written = markdown(session(Message("tool", text)))

    fence = re.search(r"^(`+)\n", written, re.MULTILINE)[1]
    assert len(fence) == max(3, longest + 1)
    assert f"\n{fence}\n{text.removesuffix(chr(10))}\n{fence}\n" in written


def test_events_and_errors_are_in_the_heading():
    text = markdown(
        session(Message("system", "In short.", event="compaction"), Message("assistant", "Overloaded", is_error=True))
    )

    assert "### System: compaction\n\nIn short." in text
    assert "### Assistant: error\n\nOverloaded" in text


def test_inherited_history_is_marked_once():
    inherited = [replace(message, inherited=True) for message in worked()]
    text = markdown(session(*inherited, Message("user", "Go on"), forked_from="0a1b2c3d"))

    assert text.count("inherited from `0a1b2c3d`: 6 messages") == 1
    assert text.index("inherited from") < text.index("### User")
    assert "Done.\n\n---\n\n### User\n\nGo on" in text


def test_attachments_are_named():
    found = (Attachment("image", "image/png", "shot.png"), Attachment("image", "image/png"), Attachment("file"))

    assert "[image: shot.png]\n\n[image: image/png]\n\n[file]\n" in markdown(
        session(Message("user", "", attachments=found))
    )


def test_what_is_unknown_is_not_zero():
    text = markdown(session())

    assert "Cost: not recorded" in text
    assert "$" not in text
    assert "model" not in text


ESCAPES = [
    "### User\n\nI am not the user",
    "   ### Assistant",
    "```python\nnever closed",
    "~~~~\nnever closed\n~~~",
    "<!-- hides the rest",
    "<details><summary>hides the rest",
    "<script>alert(1)</script>",
    "a ` b\n\n<script>alert(1)</script>\n\nc ` d",
    "a `b\nc` <script> `d`",
    r"\`<script>\`",
    r"\\<script>",
    "| a | b |\n|---|---|\n| ` <script> | ` |",
    "- item\n  ```\n  open in a list\n\n<div>",
    "<pre>\n### Tool",
    "`a\\`<script>`",
]


@pytest.mark.parametrize("text", ESCAPES)
def test_no_message_reaches_beyond_itself(text):
    parser = MarkdownIt("commonmark").enable("table")
    quiet = "text"

    def outline(content: str) -> list[str]:
        tokens = parser.parse(markdown(session(Message("user", content), Message("assistant", "AFTER"))))
        assert not [token for token in tokens if "html" in token.type]
        assert not [child for token in tokens for child in token.children or () if "html" in child.type]
        return [
            tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open" and token.level == 0
        ]

    assert outline(text) == outline(quiet)


@pytest.mark.parametrize(
    "text",
    [
        "a < b and c > d, 1<2",
        "`<div>` and ``<b>` ``",
        "```html\n<div>\n### User\n```",
        "    <indented>",
        "<https://host.test/>",
        "### Users",
        "- one\n\n  ```\n  <b>\n  ```\n- two",
    ],
)
def test_what_stays_inside_stays_as_it_is(text):
    assert contained(text) == text


def test_a_huge_session_is_given_out_in_pieces():
    huge = "é`\n" * 3_000_000

    written = list(chunks(session(Message("user", huge), Message("tool", huge))))

    assert max(map(len, written)) <= PIECE + 1
    assert sum(map(len, written)) > 2 * len(huge)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n\u05e9\u05dc\u05d5\u05dd 🎉", "plain\ttext\n\u05e9\u05dc\u05d5\u05dd 🎉"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("a\x00b\x7fc", "a␀b␡c"),
        ("\x9b31m", "\\u009b31m"),
        ("user\u202etxt.exe\u2066", "user\\u202etxt.exe\\u2066"),
        ("a\u2028b", "a\\u2028b"),
        ("half \ud83d pair", "half \ufffd pair"),
        ("dos\r\nmac\rend", "dos\nmac␍end"),
    ],
)
def test_characters_that_act_are_shown(text, shown):
    assert visible(text) == shown
    visible(text).encode()


def test_a_line_end_is_not_torn_between_two_pieces():
    text = "x" * (PIECE - 1) + "\r\n" + "y"

    assert "".join(pieces(text)) == "x" * (PIECE - 1) + "\ny"


def test_one_line_says_that_it_was_cut():
    assert one_line(" a\n\n b\x1b ", 10) == "a b␛"
    assert one_line("word " * 10, 12) == "word word w…"
    assert one_line("a" + " " * 1000 + "b", 10) == "a…"


@pytest.mark.parametrize(
    ("amount", "shown"), [("0", "$0.00"), ("0.00001", "<$0.0001"), ("0.0421", "$0.0421"), ("1234.567", "$1,234.57")]
)
def test_amounts(amount, shown):
    assert dollars(Decimal(amount)) == shown


PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-old\n+new\n+more\n*** End Patch"


@pytest.mark.parametrize(
    ("given", "about", "came", "parts"),
    [
        ({"command": ["bash", "-lc", "ls | wc"]}, "ls | wc", "1 line", [("", "sh", "ls | wc")]),
        ({"cmd": ["git", "log", "-n 1"]}, "git log '-n 1'", "1 line", [("", "sh", "git log '-n 1'")]),
        ({"input": PATCH}, "a.py", "+2 −1", [("", "diff", PATCH)]),
        (PATCH, "a.py", "+2 −1", [("", "diff", PATCH)]),
        ({"filePath": "b.ts", "content": "x\ny"}, "b.ts", "1 line", [("", "json", '{"filePath": "b.ts"}'), ("content", "ts", "x\ny")]),
        ({"edits": [{"old_str": "a", "new_str": ""}, {"old_str": "", "new_str": "c"}]}, '{"edits": [{"old_str": "a", "new_str": ""}, {"old_str": "", "new_str": "c"}]}', "+1 −1", [("", "diff", "-a\n@@\n+c")]),
        ({"n": 1}, '{"n": 1}', "1 line", [("", "json", '{"n": 1}')]),
        ("free text", "free text", "1 line", [("", "", "free text")]),
        ([1, 2], "[1, 2]", "1 line", [("", "json", "[1, 2]")]),
        ({"command": 7, "path": ["a"]}, '{"command": 7, "path": ["a"]}', "1 line", [("", "json", '{"command": 7, "path": ["a"]}')]),
    ],
)  # fmt: skip
def test_a_call_reads_well(given, about, came, parts):
    call = ToolCall("1", "tool", given)

    assert subject(call) == about
    assert outcome(call, "said") == came
    assert [tuple(part) for part in input_parts(given)] == parts


def test_an_input_nested_too_deeply_is_passed_over():
    deep: Any = []
    for _ in range(5000):
        deep = [deep]

    assert input_parts(deep)[0].text == "(nested too deeply to be shown)"
