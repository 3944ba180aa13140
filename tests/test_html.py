"""A session as a page: what the markup holds, and what Chromium makes of it."""

import base64
import fcntl
import hashlib
import json
import os
import re
import select
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from amux.model import Attachment, CostRecord, Message, Session, ToolCall, ToolResult, Usage
from amux.output.html import page
from amux.output.prose import prose

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
START = datetime(2026, 11, 18, 6, 8, 12, tzinfo=UTC)

HOSTILE = (
    "<script>window.pwned = 'script'</script>",
    "</script><script>window.pwned = 'closed script'</script>",
    "</style><script>window.pwned = 'closed style'</script>",
    "</pre></code></details></article></main><script>window.pwned = 'closed all'</script>",
    "<img src=x onerror=\"window.pwned = 'onerror'\">",
    '"><img src=x onerror="window.pwned = \'attribute\'">',
    "' autofocus onfocus='window.pwned=1",
    "<svg onload=\"window.pwned = 'svg'\"><script>window.pwned = 'svg script'</script></svg>",
    "<iframe srcdoc=\"<script>parent.pwned = 'frame'</script>\"></iframe>",
    '<base href="https://attacker.test/"><meta http-equiv="refresh" content="0;url=https://attacker.test/">',
    "<!-- <script>window.pwned = 'comment'</script>",
    "<style>@import url(https://attacker.test/x.css)</style><link rel=stylesheet href=https://attacker.test/y.css>",
    "[click](javascript:window.pwned='link') [click](JaVaScRiPt:alert(1)) [click](&#106;avascript:alert(1))",
    "[click](data:text/html,<script>window.pwned='data'</script>) [click](vbscript:x) [click](file:///etc/passwd)",
    "![seen](https://attacker.test/pixel.png) ![seen][1]\n\n[1]: https://attacker.test/pixel2.png",
    "<javascript:window.pwned='autolink'> <https://attacker.test/\"onmouseover=\"window.pwned=1>",
    "```\"><script>window.pwned='fence'</script>\ncode</code></pre><script>window.pwned='code'</script>\n```",
    "| a |\n|--:|\n| <script>window.pwned = 'cell'</script> |",
)


def session(*messages: Message, **known: Any) -> Session:
    first = {
        "agent": "claude",
        "session_id": "cb37a6b1-97ae-4cb8-bf54-09746bfcdc72",
        "title": "Add a marmalade middleware",
        "created_at": START,
        "updated_at": START + timedelta(minutes=23),
        "turn_count": sum(message.role == "user" for message in messages),
        "message_count": len(messages),
        "messages": messages,
    }
    return Session(**(first | known))


def call(name: str, given: Any, output: str | None = None, **known: Any) -> ToolCall:
    return ToolCall(f"{name}-1", name, given, output, **known)


def answer(name: str, output: str, **known: Any) -> Message:
    return Message("tool", output, tool_result=ToolResult(f"{name}-1", name, output), **known)


def example() -> Session:
    """Two turns, the way an agent works: it looks, thinks, edits, fails, and sums up."""
    return session(
        Message("user", "Add a marmalade middleware.\nSee `src/app.py`.", START),
        Message(
            "assistant",
            "I'll look at the files first.",
            START + timedelta(seconds=4),
            tool_calls=(call("Bash", {"command": "ls -la src", "description": "List sources"}, "app.py\nsetup.cfg"),),
            thinking="The user wants a *middleware*; quince jelly is not the same.",
            model="claude-opus-5-5",
            token_usage=Usage(1200, 310, 80, 48_100, 3300),
            cost=CostRecord(Decimal("0.0712"), source="estimated"),
        ),
        answer("Bash", "app.py\nsetup.cfg", timestamp=START + timedelta(seconds=5)),
        Message(
            "assistant",
            "## Done\n\n| file | lines |\n|---|--:|\n| app.py | 14 |\n\n```python\ndef jar(app):\n    return 'marmalade'\n```\n"
            "See [the docs](https://docs.test/middleware).",
            START + timedelta(seconds=31),
            tool_calls=(
                call(
                    "Edit",
                    {"file_path": "src/app.py", "old_string": "app = App()", "new_string": "app = jar(App())\nrun()"},
                    "The file was updated.",
                ),
            ),
            model="claude-opus-5-5",
            token_usage=Usage(400, 520, None, 52_000, 900),
            cost=CostRecord(Decimal("0.1203"), source="estimated"),
        ),
        answer("Edit", "The file was updated.", timestamp=START + timedelta(seconds=32)),
        Message(
            "user",
            "Now run the tests",
            START + timedelta(minutes=2),
            attachments=(Attachment("image", "image/png", "shot.png"),),
        ),
        Message(
            "assistant",
            "",
            START + timedelta(minutes=2, seconds=8),
            tool_calls=(call("Bash", {"command": "pytest -q"}, "1 failed", is_error=True),),
            model="claude-haiku-5",
        ),
        Message("system", "The conversation so far, in short.", START + timedelta(minutes=3), event="compaction"),
        cost=CostRecord(Decimal("0.1915"), 1600, 830, 80, 100_100, 4200, source="estimated"),
        model="claude-opus-5-5",
        cwd="/work/shop",
        git_branch="main",
    )


class Browser:
    """Chromium without a window, spoken to over its debugging pipe: JSON messages that end in NUL."""

    def __init__(self, profile: Path) -> None:
        self.events: list[dict[str, Any]] = []
        self.count = 0
        self.buffer = b""
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        # Chromium reads from 3 and writes to 4; out of their way first, or the one could overwrite the other.
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (to_browser, from_browser)]
        flags = (
            "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
            "--disable-component-update --disable-sync --disable-dev-shm-usage --remote-debugging-pipe about:blank"
        )
        self.process = subprocess.Popen(
            [CHROMIUM, f"--user-data-dir={profile}", *flags.split()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=lambda: [os.dup2(fd, wanted) for fd, wanted in zip(ends, (3, 4), strict=True)],  # noqa: PLW1509 - no threads here
        )
        for fd in (to_browser, from_browser, *ends):
            os.close(fd)
        self.session_id = None
        target = next(found for found in self.ask("Target.getTargets")["targetInfos"] if found["type"] == "page")
        attached = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self.session_id = attached["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **given: Any) -> dict[str, Any]:
        self.count += 1
        message = {"id": self.count, "method": method, "params": given}
        if self.session_id:
            message["sessionId"] = self.session_id
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while (said := self.listen()).get("id") != self.count:
            self.events.append(said)
        assert "error" not in said, said
        return said["result"]

    def listen(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_end], [], [], 30)
            assert ready, "Chromium has been silent for 30 seconds"
            more = os.read(self.read_end, 1 << 16)
            assert more, "Chromium has ended"
            self.buffer += more
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def open(self, file: Path, width: int = 1280, scheme: str = "light") -> None:
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.ask("Page.navigate", url=file.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.listen())

    def run(self, script: str) -> Any:
        """The value of a script, awaited where it is a promise."""
        answer = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def search(self, words: str) -> None:
        self.run(
            "(async () => { const box = document.querySelector('.search input');"
            f"box.value = {json.dumps(words)}; box.dispatchEvent(new Event('input'));"
            "await new Promise((done) => setTimeout(done, 300)); })()"
        )

    def happened(self, method: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self.events if event.get("method") == method]

    def close(self) -> None:
        self.session_id = None
        self.ask("Browser.close")
        self.process.wait(30)
        os.close(self.write_end)
        os.close(self.read_end)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium found (Debian: apt-get install chromium): the page is not tested in a browser")
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


class Outline(HTMLParser):
    """Every element of a page with its attributes, and the text outside scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.elements and self.elements[-1][0] not in ("script", "style"):
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def hostile() -> Session:
    """Every field that a session's file fills, filled with every attack."""
    worst = "\n\n".join(HOSTILE)
    return session(
        *(Message("user", text) for text in HOSTILE),
        Message(
            "assistant",
            worst,
            START,
            tool_calls=(
                ToolCall(worst, worst, {worst: worst, "command": worst}, worst),
                ToolCall("answered", worst, worst),
            ),
            thinking=worst,
            model=worst,
        ),
        Message("tool", worst, tool_result=ToolResult("answered", worst, worst)),
        Message("tool", worst, tool_result=ToolResult(None, worst, worst), is_error=True),
        Message("system", worst, event=worst, attachments=(Attachment(worst, worst, worst),)),
        Message("user", worst, inherited=True),
        title=worst,
        session_id=worst,
        model=worst,
        cwd=worst,
        git_branch=worst,
        forked_from=worst,
        parent_id=worst,
        agent_version=worst,
        tags=(worst,),
    )


def test_no_tag_of_a_session_becomes_an_element():
    plainest = session(
        *(Message("user", "text") for _ in HOSTILE),
        Message("assistant", "text", START, tool_calls=(ToolCall("a", "b", "c", "d"), ToolCall("e", "f", "g", "h"))),
    )
    known = {tag for tag, _ in Outline("".join(page(plainest))).elements}
    of_markdown = {"a", "br", "hr", "code", "pre", "table", "thead", "tbody", "tr", "th", "td"}

    outline = Outline("".join(page(hostile())))

    assert {tag for tag, _ in outline.elements} <= known | of_markdown
    assert len(outline.all("script")) == len(outline.all("style")) == len(outline.all("link")) == 1
    for tag, attributes in outline.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "src", "srcdoc")], tag
        assert re.match(r"#m\d+$|https://|data:image/svg\+xml,", attributes.get("href", "#m1")), attributes


def test_what_a_session_says_is_all_there():
    text = re.sub(r"\s+", " ", Outline("".join(page(hostile()))).text)

    for attack in HOSTILE[:12]:  # the others are Markdown, which shows its text without its marks
        assert " ".join(attack.split()) in text


def test_the_policy_names_the_very_script_and_style():
    html = "".join(page(example()))
    policy = next(meta["content"] for meta in Outline(html).all("meta") if meta.get("http-equiv"))

    for kind in ("script", "style"):
        content = re.search(rf"<{kind}>(.*?)</{kind}>", html, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy


@pytest.mark.parametrize(
    "link",
    ["javascript:alert(1)", "JAVASCRIPT:alert(1)", "data:text/html,x", "file:///etc/passwd", "#m1", "//host.test/"],
)
def test_only_links_to_the_web_are_links(link):
    assert "<a" not in prose(f"[text]({link}) <{link}>\n\n[text][1]\n\n[1]: {link}")
    assert 'rel="noopener noreferrer"' in prose("[text](https://host.test/)")


def test_characters_that_act_are_shown_even_when_written_as_entities():
    assert prose("a\x1b[31mb") == "<p>a␛[31mb</p>\n"
    assert prose("a&#x202e;b") == "<p>a\\u202eb</p>\n"


def test_every_message_can_be_linked_to_once():
    anchors = [attributes["id"] for _, attributes in Outline("".join(page(example()))).elements if "id" in attributes]

    assert sorted(anchors) == [f"m{number}" for number in range(1, 9)]


def test_a_turn_says_what_it_took():
    text = Outline("".join(page(example()))).text

    assert "Turn 1" in text
    assert "1.6k fresh" in text
    assert "100.1k cached" in text
    assert "~$0.19" in text
    assert "Turn 2" not in text  # nothing is known of it


def test_a_price_nobody_knows_makes_the_sum_a_lower_bound():
    known = Message("assistant", "a", token_usage=Usage(1), cost=CostRecord(Decimal("0.25"), source="native"))
    unknown = Message("assistant", "b", token_usage=Usage(2))

    assert "<li>at least $0.25</li>" in "".join(page(session(Message("user", "q"), known, unknown)))
    assert "<li>$0.25</li>" in "".join(page(session(Message("user", "q"), known)))


def test_inherited_history_is_marked_once_and_not_charged():
    of_parent = tuple(replace(message, inherited=True) for message in example().messages)
    html = "".join(page(session(*of_parent, Message("user", "Go on"), forked_from="0a1b2c3d")))

    assert html.count("inherited from 0a1b2c3d: 8 messages") == 1
    assert 'class="spent"' not in html


def test_a_huge_output_is_given_out_in_pieces():
    """The largest piece bounds the memory that an export takes beside its session."""
    huge = "<é\n" * 3_000_000

    largest = max(map(len, page(session(Message("user", "q"), answer("Read", huge), Message("assistant", huge)))))

    assert largest < len(huge)


@pytest.fixture
def opened(chromium, tmp_path):
    """A function that opens a session's page in the browser."""

    def open_page(shown: Session, change=lambda html: html, **view: Any) -> Browser:
        file = tmp_path / "page.html"
        file.write_text(change("".join(page(shown))), encoding="utf-8")
        chromium.open(file, **view)
        return chromium

    return open_page


def test_nothing_of_a_session_runs_and_nothing_is_fetched(opened):
    browser = opened(hostile())
    browser.run("for (const fold of document.querySelectorAll('details')) fold.open = true")
    browser.search("pwned")
    browser.run("for (const link of document.querySelectorAll('a:not([href^=http])')) link.click()")

    assert browser.run("window.pwned ?? null") is None
    assert not browser.happened("Page.javascriptDialogOpening")
    assert not browser.happened("Log.entryAdded")  # not one attempt that the policy had to stop
    requests = [event["request"]["url"] for event in browser.happened("Network.requestWillBeSent")]
    assert {url.split(":")[0] for url in requests} <= {"file", "data"}


def test_the_policy_stops_a_script_that_got_in_all_the_same(opened):
    intruder = "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'></main>"
    browser = opened(example(), change=lambda html: html.replace("</main>", intruder))

    assert browser.run("new Promise((done) => setTimeout(() => done(window.pwned ?? null), 200))") is None
    assert any("Content Security Policy" in event["entry"]["text"] for event in browser.happened("Log.entryAdded"))
    assert browser.run("document.documentElement.className") == "scripted"


def test_calls_and_thinking_are_folded_until_they_are_opened(opened):
    browser = opened(example())
    seen = "document.querySelector('.call pre').checkVisibility()"

    assert browser.run("document.querySelectorAll('main details[open]').length") == 0
    assert not browser.run(seen)
    browser.run("document.querySelector('.call summary').click()")
    assert browser.run(seen)
    browser.run("document.querySelector('.search button').click()")
    assert browser.run("document.querySelectorAll('main details:not([open])').length") == 0


def test_search_shows_what_matches_and_opens_it(opened):
    browser = opened(example())
    shown = "[...document.querySelectorAll('.message')].filter((one) => one.offsetHeight).map((one) => one.id)"

    browser.search("QUINCE middleware")
    assert browser.run(shown) == ["m2"]
    assert browser.run("document.querySelector('#m2 .thinking').open")
    assert browser.run("[...CSS.highlights.get('found')].map(String)") == ["middleware", "quince"]
    browser.search("'marmalade'")  # cut in pieces by its colours
    assert browser.run("[...CSS.highlights.get('found')].map(String)") == ["'marmalade'"]
    browser.search("setup.cfg")
    assert browser.run("document.querySelector('#m3').checkVisibility()")
    browser.search("no such text")
    assert browser.run(shown) == []
    browser.search("")
    assert browser.run(shown) == ["m1", "m2", "m4", "m6", "m7", "m8"]
    assert browser.run("document.querySelectorAll('main details[open]').length") == 0


def test_a_link_to_a_folded_answer_opens_it(opened):
    browser = opened(example())
    browser.search("no such text")

    browser.run("location.hash = '#m5'")

    assert (
        browser.run("new Promise((done) => setTimeout(() => done(document.querySelector('#m5').offsetHeight), 200))")
        > 0
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_the_screen_and_can_be_read(opened, width, scheme):
    wide = Message("assistant", f"{'x' * 500} `{'y' * 500}`\n\n```\n{'z' * 500}\n```\n\n|{'a|' * 60}\n|{'-|' * 60}")
    long_name = Message("assistant", "", tool_calls=(call("n" * 80, {"command": "c" * 300}, "o" * 500),))
    browser = opened(session(*example().messages, wide, long_name), width=width, scheme=scheme)
    browser.run("document.querySelector('.search button').click()")

    assert browser.run("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    assert browser.run("document.querySelector('.contents').open") == (width == 1280)
    assert browser.run(CONTRAST) >= 4.5


CONTRAST = """
(() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [red, green, blue] = parts(colour).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ground = (element) => {
    const colour = getComputedStyle(element).backgroundColor;
    return /^rgb\\(/.test(colour) ? colour : ground(element.parentElement);
  };
  const contrasts = [...document.querySelectorAll("body *")]
    .filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) && one.offsetHeight)
    .map((one) => [light(getComputedStyle(one).color), light(ground(one))].sort((a, b) => b - a))
    .map(([high, low]) => (high + 0.05) / (low + 0.05));
  return Math.min(...contrasts);
})()
"""
"""The least contrast between a text and what it stands on; 4.5 is what WCAG asks for."""
