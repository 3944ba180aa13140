"""amux agents: which agents there are and what can be done with them."""

from amux import readers
from amux.cli import options
from amux.output import emit, grids


def agents(json: options.Json = False) -> None:
    """The agents, where their sessions were looked for, and what can be done.

    Example: amux agents
    """
    sessions = options.manager()
    emit([sessions.about(name) for name in readers.names()], as_json=json, view=grids.agents)
    options.note_skipped(sessions)
