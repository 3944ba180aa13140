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
from contextlib import ExitStack
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
    "\"><img src=x onerror=\"window.pwned = 'attribute'\">",
    "' autofocus onfocus='window.pwned=1",
    "<svg onload=\"window.pwned = 'svg'\"><script>window.pwned = 'svg script'</script></svg>",
    "<iframe srcdoc=\"<script>parent.pwned = 'frame'</script>\"></iframe>",
    "<base href=\"https://attacker.test/\"><meta http-equiv=\"refresh\" content=\"0;url=https://attacker.test/\">",
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
        Message("user", "Now run the tests", START + timedelta(minutes=2), attachments=(Attachment("image", "image/png", "shot.png"),)),
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
        low = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (to_browser, from_browser)]
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
            preexec_fn=lambda: [os.dup2(fd, wanted) for fd, wanted in zip(low, (3, 4), strict=True)],
        )
        for fd in (to_browser, from_browser, *low):
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
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True)
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
