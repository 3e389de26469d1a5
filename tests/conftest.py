"""What every test shares: one profile for hypothesis, the same on every machine."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "mcad",
    deadline=None,  # a shared machine pauses; counts are asserted, never times
    derandomize=True,  # the same examples in every run: a red run can be repeated
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("mcad")
