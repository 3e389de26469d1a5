"""An oracle for changes that must change no decision: everything that any test asks of the core.

    python -m tests.oracle record FOLDER [PYTEST ARGUMENTS]     on the commit before the change
    python -m tests.oracle compare FOLDER                       on the commit after it

While the tests run, each step of every ``Dispatcher`` is written down: when, which event, and all
commands in full. ``compare`` gives the same events to the core as it is now, and its commands have
to be equal, but for names that ``renames.py`` says have become others. Random lives of both
dialects, all policies, quotas, preemption, reclaim, restarts and faults are among the tests, so
they are among the recordings.
"""
