"""Drawing with Rich: no other package imports it."""

from amux.output.terminal.tables import draw, filling

__all__ = ["draw", "filling"]
