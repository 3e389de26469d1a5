"""Words of others within texts of the dispatcher, in quotation marks.

What an admission webhook, a controller or kubelet says may contain a Secret or an environment. It
is shown where users look for it, in statuses, and in statuses it is read back after a restart. The
marks tell users whose words they are, and the journal what to leave out.
"""

BEGIN, END = "\u201c", "\u201d"

_NO_MARKS = str.maketrans({BEGIN: '"', END: '"'})


def quoted(words: str) -> str:
    """The words in quotation marks, without a full stop at their end; "" stays."""
    words = words.strip().rstrip(".").translate(_NO_MARKS)
    return f"{BEGIN}{words}{END}" if words else ""
