"""GET /spec: the interface as an OpenAPI document."""

from __future__ import annotations

from starlette.routing import Route

__all__ = ["routes"]


def routes() -> list[Route]:
    """None yet."""
    return []
