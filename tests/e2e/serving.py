"""What installations share: an environment, and questions to a web server."""

import http.client
import json
import os
from typing import Any

from ports import HOST


def environment(**variables: str) -> dict[str, str]:
    """The environment of this process, without what would say which installation it is."""
    foreign = ("JUDGELINE_", "DAGSTER_", "OPENAI_")
    return {k: v for k, v in os.environ.items() if not k.startswith(foreign)} | variables


def answers(port: int) -> bool:
    """Whether a web server answers on a port."""
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/server_info")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def post(port: int, query: str, variables: dict[str, Any]) -> dict[str, Any]:
    """What GraphQL answers to a query: data, or errors."""
    body = json.dumps({"query": query, "variables": variables})
    connection = http.client.HTTPConnection(HOST, port, timeout=120)
    try:
        connection.request("POST", "/graphql", body, {"Content-Type": "application/json"})
        return dict(json.loads(connection.getresponse().read()))
    finally:
        connection.close()
