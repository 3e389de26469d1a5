"""Random small worlds for hypothesis: nodes in two zones, two resources that matter, small gangs.

Small enough for brute force, and full of ties: that is where placing goes wrong.
"""

from __future__ import annotations

from hypothesis import strategies as st
from msgspec.structs import replace

from mcad.core.state.model import Constraint, Node, PodSet
from tests.core.builders import needs, node, on, pods, port, taint, tolerates

EVERYWHERE = Constraint()
PORTS = st.sampled_from(
    [
        *[()] * 6,
        (port(80),),
        (port(80),),
        (port(81),),
        (port(80), port(81)),
        (port(80, "10.0.0.1"),),
        (port(80, "10.0.0.2"),),
        (port(80, "10.0.0.1"), port(80, "10.0.0.2")),
        (port(80, protocol="UDP"),),
    ]
)
"""What pods bind on their node: mostly nothing, else ports that exclude each other now and then."""
PLACES = (
    EVERYWHERE,
    on(zone="a"),
    on(zone="b"),
    on(tolerating=[tolerates("team")]),
    on((needs("zone", "NotIn", "a"),)),
    on((needs("zone", "NotIn", "b"),), tolerating=[tolerates("team")]),
)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    """A node of up to 8 CPUs and 3 GPUs in one of two zones, tainted now and then."""
    return node(
        name,
        str(draw(st.integers(0, 8))),
        "0",
        draw(st.integers(0, 3)),
        pods=draw(st.sampled_from([110, 110, 2])),
        taints=draw(st.sampled_from([(), (), (taint("team"),)])),
        labels={"zone": draw(st.sampled_from("ab"))},
        ready=draw(st.sampled_from([True] * 5 + [False])),
        cordoned=draw(st.sampled_from([False] * 5 + [True])),
    )


@st.composite
def pod_sets(draw: st.DrawFn, item: int = 0, most: int = 4) -> PodSet:
    """Up to ``most`` pods of up to 4 CPUs and 2 GPUs, rarely capped or one per node."""
    return pods(
        draw(st.integers(0, most)),
        str(draw(st.integers(0, 4))),
        "0",
        draw(st.sampled_from([0, 0, 1, 2])),
        item=item,
        where=draw(st.sampled_from(PLACES)),
        cap=draw(st.sampled_from([0, 0, 0, 1, 2])),
        per_node=draw(st.sampled_from([False] * 7 + [True])),
        counts_pods=draw(st.booleans()),
        ports=draw(PORTS),
    )


@st.composite
def gangs(draw: st.DrawFn, most: int = 4) -> tuple[PodSet, ...]:
    """One to three pod sets, each of its own item; some are equal."""
    sets = [draw(pod_sets(item, most)) for item in range(draw(st.integers(1, 3)))]
    if len(sets) > 1 and draw(st.booleans()):
        sets[-1] = replace(sets[0], item=len(sets) - 1)
    return draw(related(sets))


@st.composite
def related(draw: st.DrawFn, sets: list[PodSet]) -> tuple[PodSet, ...]:
    """The sets with terms of anti-affinity among them now and then: each is of some of them and
    selects some of them. Pods of a set that has a term which selects it are one per node."""
    numbers = range(draw(st.sampled_from([0, 0, 1, 2])))
    some = st.sets(st.sampled_from(numbers)) if numbers else st.just(set())
    found = []
    for one in sets:
        if one.per_node:
            found.append(one)
            continue
        repels, repelled = draw(some), draw(some)
        cap = 1 if repels & repelled else one.cap
        more = {"repels": tuple(sorted(repels)), "repelled": tuple(sorted(repelled))}
        found.append(replace(one, cap=cap, **more))
    return tuple(found)


@st.composite
def tight(draw: st.DrawFn) -> tuple[dict[str, Node], tuple[PodSet, ...]]:
    """Nodes that a gang of two or three sets fills to the brim, or just not, or just too much.

    The nodes are cut out around a placement; then one pod more or less, or one CPU less, decides.
    """
    sizes = draw(st.lists(st.integers(2, 7), min_size=2, max_size=3, unique=True))
    gpus = [draw(st.integers(0, 1)) for _ in sizes]
    counts = [0] * len(sizes)
    cluster: dict[str, Node] = {}
    for i in range(draw(st.integers(2, 4))):
        cpu, gpu = draw(st.integers(0, 1)), 0
        for _ in range(draw(st.integers(1, 3))):
            kind = draw(st.integers(0, len(sizes) - 1))
            counts[kind] += 1
            cpu += sizes[kind]
            gpu += gpus[kind]
        cpu -= draw(st.sampled_from([0, 0, 0, 1]))
        cluster[f"n{i}"] = node(f"n{i}", str(cpu), "0", gpu, labels={"zone": "ab"[i % 2]})
    places = st.sampled_from([EVERYWHERE, EVERYWHERE, EVERYWHERE, on(zone="a"), PLACES[4]])
    more = draw(st.lists(st.sampled_from([0, 0, 0, 1, -1]), min_size=3, max_size=3))
    sets = [
        pods(
            max(1, count + extra),
            str(size),
            "0",
            gpu,
            item=item,
            where=draw(places),
            cap=draw(st.sampled_from([0, 0, 0, 1, 2])),
            ports=draw(PORTS) if draw(st.booleans()) else (),
        )
        for item, (count, extra, size, gpu) in enumerate(
            zip(counts, more, sizes, gpus, strict=False)
        )
    ]
    return cluster, draw(related(draw(st.permutations(sets))))


@st.composite
def clusters(draw: st.DrawFn, least: int = 1) -> dict[str, Node]:
    """Up to four nodes by name."""
    names = [f"n{i}" for i in range(draw(st.integers(least, 4)))]
    return {name: draw(nodes(name)) for name in names}
