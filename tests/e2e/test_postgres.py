"""The server that other tests start: it keeps what was committed through a kill."""

import contextlib

import postgres
import psycopg2
import pytest

pytestmark = pytest.mark.slow


def test_committed_rows_survive_a_kill_and_the_password_is_asked_for() -> None:
    with postgres.running() as server:
        with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE kept (number int); INSERT INTO kept VALUES (41), (1)")
            connection.commit()
        server.kill()
        with pytest.raises(psycopg2.OperationalError):
            server.connect()
        server.start()
        with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT sum(number) FROM kept")
            assert cursor.fetchone() == (42,)
        password, server.password = server.password, "wrong"
        with pytest.raises(psycopg2.OperationalError, match="password authentication failed"):
            server.connect()
        server.password = password
        folder = server.folder
    assert not folder.exists()
