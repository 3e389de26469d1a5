"""resourceVersions as numbers (ADR 1)."""


def is_older(version: str, known: str) -> bool:
    """Whether a resourceVersion precedes another one of the same kind (protocol P13, ADR 1).

    After our own write returned r, events below r must not take the core back; a list below what
    was observed before comes from a server that was restored. Versions that are not decimal numbers
    cannot be compared and are never older.
    """
    if not (version.isdecimal() and known.isdecimal()):
        return False
    return int(version) < int(known)


def reaches(version: str, wanted: str) -> bool:
    """Whether a resourceVersion is certainly not older than another one of the same kind (ADR 55).

    Versions that are not decimal numbers cannot be compared and reach nothing.
    """
    if not (version.isdecimal() and wanted.isdecimal()):
        return False
    return int(version) >= int(wanted)
