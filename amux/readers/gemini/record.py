"""One message record of Gemini CLI: what was said in it, and what only looks like it.

`content` is a string, a part or a list of parts. The program speaks in the user's name (context, hooks, loop warnings,
its own shell notes) and in the model's (stock answers); none of that was typed or generated.
"""

from typing import Any

from amux.readers._json import Record, at, list_at, text_at

INJECTED = (
    "<session_context>",
    "<hook_context>",
    "This is the Gemini CLI. We are setting up the context",
    "- **Workspace Directories:**",
    "Here is the user's editor context",
    "Here is a summary of changes in the user's editor context",
    "Background execution update:\n<background_output>",
    "User has manually exited Plan Mode. Switching",
    "System: Please continue.",
    "System: Potential loop detected.",
)
CONTINUED = "Please continue."
"""What the program sends when the model is to go on; what was typed last then stands in `displayContent`."""
SUMMARY = "<state_snapshot>"
ACKNOWLEDGED = "Got it. Thanks for the additional context!"
"""Follows the summary that a compression puts in the place of what it summed up."""
STOCK = frozenset(
    {
        "Got it. Thanks for the context!",
        ACKNOWLEDGED,
        "Binary content received. Proceeding with analysis.",
        "[The previous response was interrupted before it completed.]",
    }
)
"""Answers the program wrote itself, to keep the turns of user and model alternating."""


IMPORTED = "Imported session from "


def is_import(record: Record) -> bool:
    """Whether it says where an imported session came from."""
    id, text = text_at(record, "id") or "", text_at(record, "content") or ""
    return id.startswith("import-") and text.startswith(IMPORTED)


def parts(content: Any) -> list[Record]:
    found = content if isinstance(content, list) else [content]
    return [
        {"text": part} if isinstance(part, str) else part for part in found if isinstance(part, str | dict) and part
    ]


def text_of(content: Any) -> str:
    """The text in a content, without thoughts."""
    return "".join(text_at(part, "text") or "" for part in parts(content) if not part.get("thought"))


def prompt_of(record: Record) -> str:
    """The text that went to the model in the user's name, without what the program put in of its own accord."""
    texts = (text_at(part, "text") or "" for part in parts(record.get("content")))
    return "".join(text for text in texts if not text.lstrip().startswith(INJECTED))


def thinking_of(record: Record) -> str:
    """The thoughts; where only the history was written back, those among the parts of the content."""
    thoughts = ["\n".join(filter(None, thought_lines(thought))) for thought in list_at(record, "thoughts")]
    if not any(thoughts):
        thoughts = [text_at(part, "text") or "" for part in parts(record.get("content")) if part.get("thought")]
    return "\n\n".join(filter(None, thoughts))


def thought_lines(thought: Any) -> tuple[str | None, str | None]:
    return text_at(thought, "subject"), text_at(thought, "description")


def calls_of(record: Record) -> list[Record]:
    """The tool calls; before the tools ran, and after a resume, they are only parts of the content."""
    recorded = [call for call in list_at(record, "toolCalls") if isinstance(call, dict)]
    if recorded:
        return recorded
    return [call for part in parts(record.get("content")) if isinstance(call := part.get("functionCall"), dict)]


def responses_of(content: Any) -> list[Record]:
    return [found for part in parts(content) if isinstance(found := part.get("functionResponse"), dict)]


def paid(record: Record) -> bool:
    return isinstance(record.get("tokens"), dict)


def stock(record: Record) -> bool:
    """Whether it is an answer that no model gave."""
    text = text_of(record.get("content")) or thinking_of(record)
    return text in STOCK and not paid(record) and not calls_of(record)


def spoken(record: Record) -> bool:
    """Whether it is a prompt or an answer, not context, a tool's result or a notice."""
    match record.get("type"):
        case "user":
            return bool(prompt_of(record).strip())
        case "gemini":
            return not stock(record)
        case _:
            return False


def likeness(record: Record) -> tuple[str, ...]:
    """What stays the same of a prompt or an answer when the program writes a message again under another id."""
    if record.get("type") == "user":
        return ("user", prompt_of(record).strip())
    return (
        "gemini",
        text_of(record.get("content")).strip(),
        *sorted(str(at(call, "name")) for call in calls_of(record)),
    )
