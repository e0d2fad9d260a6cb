"""The PostgreSQL server of a production instance: whether it is chosen, complete, and there."""

import os

VARIABLES = (
    "DAGSTER_PG_HOST",
    "DAGSTER_PG_PORT",
    "DAGSTER_PG_DB",
    "DAGSTER_PG_USERNAME",
    "DAGSTER_PG_PASSWORD",
)
"""All of them are needed; the first chooses PostgreSQL instead of SQLite."""

_PATIENCE_S = 10


def is_chosen() -> bool:
    """Return whether runs are to be kept in PostgreSQL."""
    return bool(os.environ.get(VARIABLES[0]))


def require_server() -> None:
    """Return once the server that the environment names has let us in."""
    host, port, database, user, password = _settings()
    try:
        import dagster_postgres  # noqa: F401  the instance file needs it
        import psycopg2
    except ImportError as error:
        raise ValueError(
            f"{VARIABLES[0]} is set, but {error.name} is not installed; install what PostgreSQL "
            "needs with: pip install -c constraints.txt -e '.[app,postgres]'"
        ) from error
    try:
        psycopg2.connect(
            host=host,
            port=port,
            dbname=database,
            user=user,
            password=password,
            connect_timeout=_PATIENCE_S,
        ).close()
    except psycopg2.OperationalError as error:
        told = " ".join(str(error).replace(password, "[password]").split())
        raise ValueError(
            f"user {user!r} cannot reach database {database!r} of PostgreSQL at {host}:{port} "
            f"({told}); see whether it runs and has that user and database, correct "
            f"{', '.join(VARIABLES)}, or unset {VARIABLES[0]} to keep runs in SQLite"
        ) from None


def _settings() -> tuple[str, int, str, str, str]:
    given = {name: os.environ.get(name, "") for name in VARIABLES}
    if missing := [name for name, value in given.items() if not value]:
        raise ValueError(
            f"{VARIABLES[0]} chooses PostgreSQL, which also needs {', '.join(missing)}: set them, "
            f"or unset {VARIABLES[0]} to keep runs in SQLite"
        )
    host, port, *others = given.values()
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{VARIABLES[1]} is {port!r}, not a port from 1 to 65535; correct it")
    return host, int(port), *others
