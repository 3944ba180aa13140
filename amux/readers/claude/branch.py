"""The active branch of a transcript: what Claude Code itself would show on resume."""

from amux.readers._json import Record, text_at
from amux.readers._tree import branch
from amux.readers.claude.lines import blocks, kind_of


def active(chain: dict[str, Record]) -> list[Record]:
    """The lines the program would show on resume, with what came before a compaction, in file order."""
    if not any(text_at(record, "parentUuid") for record in chain.values()):
        return list(chain.values())  # written by a tool that links nothing
    parents = parents_of(chain)
    on_branch = set(branch(parents, leaf(chain, parents)))
    beside = {uuid: record for uuid, record in chain.items() if uuid not in on_branch}
    if beside:
        on_branch |= parallel(chain, on_branch, beside) | compactions(beside, on_branch)
    return [record for uuid, record in chain.items() if uuid in on_branch]


def parents_of(chain: dict[str, Record]) -> dict[str, str | None]:
    """The line each line goes on from.

    One that is not there was torn or never written, and one that stands further down is a compaction's summary that a kept
    line was linked to when it was written again: what stands before in the file came before.
    """
    parents: dict[str, str | None] = {}
    previous = None
    for uuid, record in chain.items():
        parent = text_at(record, "parentUuid") or text_at(record, "logicalParentUuid")
        compaction = record.get("isCompactSummary") or record.get("subtype") == "compact_boundary"
        rooted = parent is None and record.get("parentUuid", "") is None and not compaction
        parents[uuid] = parent if rooted or parent in parents else previous
        previous = uuid
    return parents


def leaf(chain: dict[str, Record], parents: dict[str, str | None]) -> str | None:
    """The last answer or prompt in the file that ends a branch."""
    has_child = set(parents.values())
    position = {uuid: number for number, uuid in enumerate(chain)}
    best = None
    for end in reversed(chain):
        if end in has_child:
            continue
        spoken = next((uuid for uuid in reversed(branch(parents, end)) if spoke(chain[uuid])), None)
        if spoken and (best is None or position[spoken] > position[best]):
            best = spoken
        if best and position[best] > position[end]:
            break  # branches that ended earlier cannot have a later end
    return best or next(reversed(chain), None)


def spoke(record: Record) -> bool:
    return kind_of(record) in ("user", "assistant") and not record.get("isMeta") and not record.get("teamName")


def parallel(chain: dict[str, Record], on_branch: set[str], beside: dict[str, Record]) -> set[str]:
    """Lines beside the branch that belong to it: each result of parallel calls hangs on its own call's line."""
    answers = {id for uuid in on_branch if (id := text_at(chain[uuid], "message", "id"))}
    same = {uuid for uuid, record in beside.items() if text_at(record, "message", "id") in answers}
    lines = (chain[uuid] for uuid in on_branch | same)
    calls = {text_at(block, "id") for record in lines for block in blocks(record) if block.get("type") == "tool_use"}
    return same | {
        uuid
        for uuid, record in beside.items()
        if any(text_at(block, "tool_use_id") in calls for block in blocks(record) if "tool_use_id" in block)
    }


def compactions(beside: dict[str, Record], on_branch: set[str]) -> set[str]:
    """Boundaries and summaries beside the branch: what follows a compaction may go on from a line that it kept."""
    found: set[str] = set()
    for uuid, record in beside.items():
        before = text_at(record, "logicalParentUuid")
        if before in on_branch or (record.get("isCompactSummary") and text_at(record, "parentUuid") in found):
            found.add(uuid)
    return found
