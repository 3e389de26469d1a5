"""Checks that stay on in production. A failure while the core works on one AppWrapper holds that
AppWrapper; a failure for the whole ends the process: better to stop leading than to go on with
wrong books (internal_errors.py, ADR 59)."""


class InvariantViolated(AssertionError):  # noqa: N818 - it names what happened, not a kind of error
    """An impossible state was seen: a bug in the core, never a user's mistake."""

    def __init__(self, name: str, story: str) -> None:
        super().__init__(f"{name}: {story}")
        self.name = name
        self.story = story


def check(cond: bool, name: str, story: str) -> None:  # noqa: FBT001 - reads as "check that"
    """Raise unless ``cond`` holds; ``name`` is stable, ``story`` has the details.

    An expensive story belongs behind an ``if``.
    """
    if not cond:
        raise InvariantViolated(name, story)
