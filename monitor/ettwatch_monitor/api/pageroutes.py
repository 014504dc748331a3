"""The page and its files; every address that is no file is the page, which looks at it by itself."""

from typing import Final

from fastapi import HTTPException, Request
from fastapi.responses import Response

from ettwatch_monitor.api.backend import Backend
from ettwatch_monitor.api.static import Asset

__all__ = ["page_answer"]

_LASTING: Final = "public, max-age=31536000, immutable"
_EACH_TIME: Final = "no-cache"
_NAMED: Final = ("jobs", "teams", "owners")
"""Pages whose address ends with a name that somebody chose."""


async def page_answer(request: Request, path: str) -> Response:
    """Answer a file of the page, or the page."""
    backend: Backend = request.app.state.backend
    if path.startswith("api/"):
        raise HTTPException(404, "there is nothing of this name; /api/v1/openapi.json says what there is")
    found = backend.assets.get(path)
    # Jobs and teams may have a dot in their names; any other address with one is a file, or nothing.
    head, _, last = path.partition("/")
    if found is None and (head in _NAMED or "." not in last.rpartition("/")[2] + head):
        found = backend.assets.page()
        if found is None:
            raise HTTPException(404, "the page was not built; `make web` builds it. The API is at /api/v1")
    if found is None:
        raise HTTPException(404, "there is no such file")
    return _sent(request, found)


def _sent(request: Request, asset: Asset) -> Response:
    tag = f'"{asset.tag}"'
    headers = {"cache-control": _LASTING if asset.lasting else _EACH_TIME, "etag": tag}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(asset.body, media_type=asset.kind, headers=headers)
