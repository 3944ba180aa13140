"""amux reads the sessions of coding agents: `from amux import SessionManager, load`."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from amux.loading import load as load
    from amux.manager import SessionManager as SessionManager

__all__ = ["SessionManager", "__version__", "load"]


def __getattr__(name: str) -> Any:
    # On first use: `amux --version` must not pay for the library.
    if name == "SessionManager":
        from amux.manager import SessionManager  # noqa: PLC0415

        return SessionManager
    if name == "load":
        from amux.loading import load  # noqa: PLC0415

        return load
    raise AttributeError(f"module 'amux' has no attribute {name!r}")
