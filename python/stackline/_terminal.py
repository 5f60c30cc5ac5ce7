"""What texts may do on a terminal, and how wide it is."""

from __future__ import annotations

import os
from typing import TextIO


def harmless(text: str) -> str:
    """The text without characters that steer a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def columns_of(stream: TextIO) -> int:
    """Columns of the terminal, 80 where they are unknown."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError, AttributeError):
        columns = 0
    return columns if columns > 0 else 80
