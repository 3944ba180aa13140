"""amux agents: which agents there are and what can be done with them."""

from amux import readers
from amux.cli import options
from amux.output import emit, grids


def agents(json: options.Json = False) -> None:
    """What was found of each agent, and where.

    How many sessions there are and which is the newest, whether the agent's program is installed and which version,
    whether its sessions can be resumed and forked.

    Example: amux agents
    """
    sessions = options.manager()
    found = [sessions.about(name) for name in readers.names()]
    emit(found, as_json=json, view=grids.agents)
    if not json and not any(one.session_count for one in found):
        options.note_samples()
    options.note_skipped(sessions)
