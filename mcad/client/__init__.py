"""What a user asks of a cluster: figures, answers, submission, waiting. Nothing prints.

``mcad.cli`` and the Python client are made of this; it may import the controller, whose code
computes figures when no dispatcher answers.

    errors     one sentence and what to do; ``explain`` turns a failed request into one
    session    the connection: which API server, the namespace of the context
    config     the dispatcher's settings: of the caller, and as the leader publishes them
    figures/   queue, capacity and quota: asked from the dispatcher, or computed from objects
    answers/   why an AppWrapper waits, what would start it, what a change would do
    manifests/ AppWrappers before they are sent: read, wrapped, checked, dry runs of items
    installation  whether AppWrappers can be submitted and are dispatched
    bundle     what a bug report needs
    api/       the Python client, whose names are those of ``mcad``
    appwrappers/  live AppWrappers: their state, their objects, waiting for a goal
"""
