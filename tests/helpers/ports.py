"""Ports for servers of tests that run side by side."""

import random
import socket

HOST = "127.0.0.1"
_BELOW_THOSE_OF_CLIENTS = range(20_000, 32_000)


def free_port() -> int:
    """Return a port that nobody listens on, and that no client's connection will be given."""
    for port in random.SystemRandom().sample(_BELOW_THOSE_OF_CLIENTS, 100):
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port
    raise AssertionError("none of a hundred ports is free")
