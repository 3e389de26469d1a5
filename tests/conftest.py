"""What every test shares: one profile for hypothesis, the same on every machine."""

import signal

from hypothesis import HealthCheck, settings

# Whoever runs the suite in the background of a script lets it ignore SIGINT, and every command that
# it starts would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "mcad",
    deadline=None,  # a shared machine pauses; counts are asserted, never times
    derandomize=True,  # the same examples in every run: a red run can be repeated
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("mcad")
