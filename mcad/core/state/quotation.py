"""Words of other components within texts of the dispatcher, in quotation marks.

Messages of an admission webhook, a controller or kubelet may contain a Secret or an environment.
They are shown where users look for them, in statuses, and are read back from statuses after a
restart. The marks show users whose words they are, and the journal what to leave out.
"""

BEGIN, END = "\u201c", "\u201d"

_NO_MARKS = str.maketrans({BEGIN: '"', END: '"'})


def quoted(words: str) -> str:
    """The words in quotation marks, without a full stop at their end; "" stays."""
    words = words.strip().rstrip(".").translate(_NO_MARKS)
    return f"{BEGIN}{words}{END}" if words else ""
