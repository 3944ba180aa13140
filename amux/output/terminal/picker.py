"""Choosing a session: the newest of this directory first, a search while you type, the last prompt before you decide."""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rich.console import Group
from rich.control import Control
from rich.text import Text

from amux.model import SessionSummary
from amux.output.grids import ago, mark, padded, project, tilde, title, turns, usd, width
from amux.output.plain import one_line, visible
from amux.output.terminal import keys
from amux.output.terminal.palette import ACCENT, console, hue
from amux.output.terminal.tables import cut

Verb = Literal["resume", "fork", "print"]

IDLE, RESTING = 0.1, 0.5
"""Seconds between two looks at the screen: while something is awaited, and when nothing is."""
PREVIEW_LINES = 2
AROUND = 4 + PREVIEW_LINES
"""Lines that are not sessions: what is typed, a rule, the facts, the preview, the keys."""
ROOM_FOR_PROJECT = 90
LONGEST_PROMPT = 1_000


@dataclass(frozen=True, slots=True)
class Choice:
    verb: Verb
    session: SessionSummary


@dataclass(frozen=True, slots=True)
class Source:
    """What there is to choose from.

    `search` finds the sessions that a text means. `last_prompt` gives what reads the last prompt of a session and may be
    called in another thread: some sessions are huge, and keys are not to wait for them.
    """

    here: Sequence[SessionSummary]
    elsewhere: Sequence[SessionSummary]
    search: Callable[[str], Sequence[SessionSummary]]
    last_prompt: Callable[[SessionSummary], Callable[[], str]]


def pick(source: Source, verb: Verb, *, color: bool) -> Choice | None:
    """The session a person chooses at the terminal, and what is to be done with it; None when they leave."""
    terminal = console(sys.stderr, no_color=not color)
    picker = Picker(source, verb)
    with keys.listening() as pressed, terminal.screen() as screen:
        while picker.choice is None and not picker.left:
            terminal.control(Control.home())
            screen.update(Group(*picker.lines(terminal.width, terminal.height)))
            picker.wait(pressed, lambda: terminal.size)
    return picker.choice


@dataclass
class Previews:
    """Last prompts, read one at a time beside the keys."""

    last_prompt: Callable[[SessionSummary], Callable[[], str]]
    known: dict[str, str] = field(default_factory=dict)
    reading: str | None = None

    def read(self, session: SessionSummary) -> None:
        if self.reading or session.unified_id in self.known:
            return
        self.reading = session.unified_id
        # A daemon: whoever has chosen does not wait for a preview.
        threading.Thread(target=self.finish, args=(session.unified_id, self.last_prompt(session)), daemon=True).start()

    def finish(self, id: str, read: Callable[[], str]) -> None:
        try:
            self.known[id] = read()
        except Exception:  # noqa: BLE001 - a session that cannot be read has no preview
            self.known[id] = ""
        finally:
            self.reading = None


class Picker:
    def __init__(self, source: Source, verb: Verb) -> None:
        self.source = source
        self.verb = verb
        self.typed = ""
        self.place = 0
        self.top = 0
        self.choice: Choice | None = None
        self.left = False
        self.previews = Previews(source.last_prompt)
        self.page = 1
        self.found: list[SessionSummary] = []
        self.find()

    @property
    def session(self) -> SessionSummary | None:
        return self.found[self.place] if self.found else None

    def find(self) -> None:
        """The sessions that what is typed means; all of them when nothing is."""
        text = self.typed.strip()
        self.found = [*self.source.here, *self.source.elsewhere]
        if len(text) == 1 and text.isascii():
            # Every session has a word that begins with it: a search would take its time to say so.
            self.found = [one for one in self.found if f" {text}".lower() in f" {one.title}".lower()]
        elif text:
            self.found = list(self.source.search(text))
        self.place = self.top = 0

    # Keys

    def wait(self, pressed: keys.Pressed, size: Callable[[], object]) -> None:
        """Until there is something new to be drawn: a key, a preview, another size of the window."""
        before, known = size(), len(self.previews.known)
        while size() == before and len(self.previews.known) == known:
            session = self.session
            awaited = session is not None and session.unified_id not in self.previews.known
            came = pressed(IDLE if awaited else RESTING)
            if came:
                self.press(came)
                return
            if session:
                self.previews.read(session)

    def press(self, came: Sequence[str]) -> None:
        """All the keys that came at once: what is typed fast is searched for once."""
        before = self.typed
        for key in came:
            if self.typed != before and key in ("enter", "^F", "^P"):
                self.find()
                before = self.typed
            self.act(key)
            if self.choice or self.left:
                return
        if self.typed != before:
            self.find()

    def act(self, key: str) -> None:
        match key:
            case "enter":
                self.choose(self.verb)
            case "^F":
                self.choose("fork")
            case "^P":
                self.choose("print")
            case "escape":
                self.left = True
            case "backspace":
                self.typed = self.typed[:-1]
            case "^W":
                self.typed = self.typed.rstrip().rpartition(" ")[0]
            case "^U":
                self.typed = ""
            case "up" | "down" | "page up" | "page down" | "home" | "end":
                self.move(key)
            case _:
                self.typed += key

    def choose(self, verb: Verb) -> None:
        if self.session:
            self.choice = Choice(verb, self.session)

    def move(self, key: str) -> None:
        last = len(self.found) - 1
        steps = {"up": -1, "down": 1, "page up": -self.page, "page down": self.page, "home": -last, "end": last}
        self.place = max(0, min(self.place + steps[key], last))

    # The screen

    def lines(self, columns: int, height: int) -> list[Text]:
        self.page = max(1, height - AROUND)
        rows = list(self.rows(columns))
        blank = [Text()] * (self.page - len(rows))
        rule = Text("─" * columns, style="dim")
        made = [self.head(columns), *rows, *blank, rule, *self.foot(columns), self.help()][:height]
        for line in made:
            line.truncate(columns, overflow="ellipsis")
        return made

    def head(self, columns: int) -> Text:
        asked = Text.assemble((f"{'fork' if self.verb == 'fork' else 'resume'} ", "bold"), ("❯ ", ACCENT))
        count = f"{self.place + 1 if self.found else 0} of {len(self.found):,}"
        room = columns - asked.cell_len - len(count) - 3
        shown = self.typed if width(self.typed) <= room else "…" + self.typed[-(room - 1) :]
        line = asked + Text(shown) + Text(" ", style="reverse")
        return line + Text(count.rjust(max(0, columns - line.cell_len)), style="dim")

    def rows(self, columns: int) -> Iterator[Text]:
        """The part of the list around the cursor, with a heading where this directory begins and where it ends."""
        if not self.found:
            yield Text("  no session has these words" if self.typed.strip() else "  no sessions", style="dim")
            return
        listed = list(self.listed())
        at = next(number for number, entry in enumerate(listed) if entry is self.session)
        headed = at - 1 if at and isinstance(listed[at - 1], str) else at  # a heading is seen with its first session
        self.top = max(min(self.top, headed), at - self.page + 1)
        agents = max(len(one.agent) for one in self.found[:500])
        for entry in listed[self.top : self.top + self.page]:
            if isinstance(entry, str):
                yield Text(entry, style="bold")
            else:
                yield self.row(entry, columns, agents, chosen=entry is self.session)

    def listed(self) -> Iterator[str | SessionSummary]:
        if self.typed.strip() or not self.source.here:
            yield from self.found
            return
        yield "This directory"
        yield from self.source.here
        if self.source.elsewhere:
            yield "Elsewhere"
            yield from self.source.elsewhere

    def row(self, session: SessionSummary, columns: int, agents: int, *, chosen: bool) -> Text:
        line = Text.assemble(("❯ ", f"bold {ACCENT}") if chosen else "  ")
        line += Text(session.agent.ljust(agents), style=hue(session.agent))
        line += Text(f"  {ago(session.updated_at):<10}", style="dim")
        cost = usd(session.cost)
        line += Text(f"  {cost:>8}  ", style="dim" if cost.startswith(("~", "–")) else "")
        if columns >= ROOM_FOR_PROJECT:
            line += Text(padded(cut(project(session.cwd), 16), 16, right=False) + "  ", style="dim")
        line += Text(cut(one_line(mark(session) + title(session), 300), max(8, columns - line.cell_len)))
        if chosen:
            line.stylize("bold")
        return line

    def foot(self, columns: int) -> Iterator[Text]:
        """What is known of the session the cursor is on, and the last that was asked in it."""
        session = self.session
        if session is None:
            yield from [Text()] * (1 + PREVIEW_LINES)
            return
        place = tilde(session.cwd) + (f" on {visible(session.git_branch)}" if session.git_branch else "")
        facts = [place, turns(session.turn_count), visible(session.model or ""), ", ".join(session.tags)]
        yield Text(cut(one_line(" · ".join(fact for fact in facts if fact), 500), columns), style="dim")
        yield from self.preview(self.previews.known.get(session.unified_id), columns)

    def preview(self, prompt: str | None, columns: int) -> Iterator[Text]:
        """The beginning of a prompt, on as many lines as are kept for it."""
        shown = Text.assemble(("❯ ", ACCENT), one_line(prompt, LONGEST_PROMPT)) if prompt else Text()
        wrapped = list(shown.wrap(console(width=columns), max(1, columns - 1)))
        kept = wrapped[:PREVIEW_LINES]
        if len(wrapped) > PREVIEW_LINES:
            kept[-1].append("…")
        yield from kept
        yield from [Text()] * (PREVIEW_LINES - len(kept))

    def help(self) -> Text:
        first = "fork" if self.verb == "fork" else "resume"
        told = [("↑↓", "move"), ("enter", first), ("^F", "fork"), ("^P", "print"), ("esc", "leave")]
        return Text("  ").join(Text.assemble((key, "bold"), (f" {does}", "dim")) for key, does in told)
