"""Arithmetic on amounts by resource name: the frozen form of the records, and running books."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from mcad.core.state.model import Resources

PODS = "pods"
_REQUESTS = 4096  # how many different requests are cached: pods are made by the thousand

Books = dict[str, int]
"""Amounts by resource name that are still being counted; a name that is absent is 0."""


def resources(amounts: Mapping[str, int]) -> Resources:
    """The frozen form: sorted by name, without zero amounts."""
    return tuple(sorted((name, n) for name, n in amounts.items() if n))


def book(books: Books, amounts: Iterable[tuple[str, int]], times: int = 1) -> None:
    """Add ``times`` the amounts to the books, in place."""
    for name, n in amounts:
        books[name] = books.get(name, 0) + n * times


def total(parts: Iterable[tuple[Resources, int]]) -> Resources:
    """The sum of (amounts, how often) pairs."""
    books: Books = {}
    for amounts, times in parts:
        book(books, amounts, times)
    return resources(books)


@lru_cache(_REQUESTS)
def with_pod_slot(request: Resources) -> Resources:
    """What a pod with this request takes from a node: also one of its ``pods`` (protocol C1).

    An amount of zero is left out as the records promise; kube-scheduler ignores a resource that a
    pod does not request, even on a node that is overcommitted in it.
    """
    if any(name == PODS for name, _ in request):
        return request
    return tuple(sorted((*request, (PODS, 1))))
