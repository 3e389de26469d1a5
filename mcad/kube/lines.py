"""Cuts a byte stream into lines in linear time, whatever the sizes of chunks and lines."""

from mcad.kube.errors import BadAnswer

LINE_BYTES_MAX = 128 * 1024 * 1024  # etcd's objects end at a few MB; beyond, it is no watch


class LineSplitter:
    """Feed chunks, get the lines that they complete, without line ends and without empty lines."""

    __slots__ = ("_length", "_line_bytes_max", "_pieces")

    def __init__(self, line_bytes_max: int = LINE_BYTES_MAX) -> None:
        """``line_bytes_max`` bounds what is kept while a line is incomplete."""
        self._pieces: list[bytes] = []
        self._length = 0
        self._line_bytes_max = line_bytes_max

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines completed by ``chunk``. Raises ``BadAnswer`` for a line beyond the bound."""
        first, *others = chunk.split(b"\n")
        if first:
            # Pieces are joined once per line: appending to one buffer would copy it per chunk.
            self._pieces.append(first)
            self._length += len(first)
        if self._length > self._line_bytes_max:
            raise BadAnswer(f"a line of more than {self._line_bytes_max} bytes")
        if not others:
            return []
        lines = [b"".join(self._pieces), *others[:-1]]
        self._pieces = [others[-1]] if others[-1] else []
        self._length = len(others[-1])
        return [line for line in lines if line.strip()]
