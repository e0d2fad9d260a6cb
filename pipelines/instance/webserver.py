"""The web server of the interface: Dagster's own with its options, behind the guard.

python -m pipelines.instance.webserver --host 127.0.0.1 --port 3000 --workspace workspace.yaml
"""

import asyncio
import json
import resource
import sys
from typing import Any

import h11
import uvicorn
from dagster_webserver import cli
from dagster_webserver.webserver import DagsterWebserver
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute, Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from judgeline.paths import GROUPS_PAGE, REPORT_PAGES, home
from pipelines.instance.guard import Guard, Refusal, allowed_hosts
from pipelines.instance.internals import watch_seldom

_MAIN_PATH = ("corpus", "judging", "elo", "intervals", "comparison")
_GROUPS = f"""<!doctype html><title>Groups</title><script>
localStorage["asset-graph-direction"] ??= '"vertical"';
location.replace("asset-groups~" + encodeURIComponent(
  {json.dumps(" or ".join(f'group:"{name}"' for name in _MAIN_PATH))}));
</script>"""
"""Opens the graph of the groups on the way to a board: downwards, or its labels are too small to
read. The direction is a setting of the browser that no address holds; one that is set stays."""
_GRACE_S = 3  # for requests under way when the server is stopped
REQUEST_S = 10.0  # for a request to be there, with its headers and body


class GuardedWebserver(DagsterWebserver):
    """Dagster's web server with the guard before it, GraphQL as JSON only, and no reports."""

    def build_middleware(self) -> list[Middleware]:
        """Return the middleware, the guard outermost."""
        return [Middleware(Guard, allowed=allowed_hosts()), *super().build_middleware()]

    def make_security_headers(self) -> dict[str, str]:
        """Return the headers of its pages, which no other site may frame in an older browser."""
        return {**super().make_security_headers(), "X-Frame-Options": "SAMEORIGIN"}

    def build_routes(self) -> list[BaseRoute]:
        """Return Dagster's routes, the reports, and the way to the groups."""
        reports = Route(f"{self._app_path_prefix}{REPORT_PAGES}/{{corpus}}.html", self._report)
        groups = Route(f"{self._app_path_prefix}{GROUPS_PAGE}", self._groups)
        return [reports, groups, *super().build_routes()]

    async def _groups(self, _request: Request) -> Response:
        own = {"Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'"}
        return HTMLResponse(_GROUPS, headers={**self.make_security_headers(), **own})

    async def _report(self, request: Request) -> Response:
        """Show a report as a page of no site: nothing in it can ask this server for anything."""
        path = home() / "reports" / f"{request.path_params['corpus']}.html"  # holds no slash
        if not path.is_file():
            return Refusal(404, "No such report here: it lies where its run was made.").response()
        alone = {"Content-Security-Policy": "sandbox allow-scripts"}
        return FileResponse(path, headers={**self.make_security_headers(), **alone})

    async def graphql_http_endpoint(self, request: Request) -> Response:
        """Answer a query that is posted as JSON: forms and pictures of a page cannot do that."""
        if request.method != "POST":
            return Refusal(405, "GraphQL is asked by POST.").response()
        media_type = request.headers.get("content-type", "").partition(";")[0].strip()
        if media_type != "application/json":
            return Refusal(
                415, f"GraphQL is asked in application/json, not in {media_type[:200]!a}."
            ).response()
        try:
            is_query = isinstance(await request.json(), dict)
        except (ValueError, RecursionError):  # ValueError: no JSON, or no UTF-8
            is_query = False
        if not is_query:
            return Refusal(400, "GraphQL is asked by one JSON object with a query.").response()
        return await super().graphql_http_endpoint(request)

    async def _refuse_report(self, _request: Request) -> Response:
        return Refusal(403, "Events are written by runs; reports by HTTP are off.").response()

    report_asset_materialization_endpoint = _refuse_report
    report_asset_check_endpoint = _refuse_report
    report_asset_observation_endpoint = _refuse_report


class PromptProtocol(H11Protocol):
    """HTTP whose requests have to be there in time, on as many connections as files allow.

    The parser shows the guard a request's target as it was sent.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Take a connection, unless half of the descriptors are in use."""
        super().connection_made(transport)
        if len(self.connections) > resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2 > 0:
            transport.close()
        self._hold_to_time()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        self._hold_to_time()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        super().connection_lost(exc)
        self._forget()

    def _hold_to_time(self) -> None:
        is_upgraded = self.transport.get_protocol() is not self  # to a WebSocket, which may wait
        if is_upgraded or self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._forget()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_S, self.transport.close)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None


def serve(
    context: Any,
    host: str | None,
    port: int | None,
    path_prefix: str,
    log_level: str,
    live_data_poll_rate: int | None = None,
) -> None:
    """Serve the interface until it is stopped: what Dagster's function of these arguments does."""
    app = GuardedWebserver(context, path_prefix, live_data_poll_rate).create_asgi_app()
    uvicorn.run(
        app,
        host=host or cli.DEFAULT_WEBSERVER_HOST,
        port=port or cli.DEFAULT_WEBSERVER_PORT,
        log_level=log_level,
        http=PromptProtocol,
        timeout_graceful_shutdown=_GRACE_S,
    )


def main() -> None:
    """Read Dagster's options for its web server, and serve ours."""
    try:
        allowed_hosts()
    except ValueError as error:
        sys.exit(str(error))
    watch_seldom()
    cli.host_dagster_ui_with_workspace_process_context = serve
    cli.main()


if __name__ == "__main__":
    main()
