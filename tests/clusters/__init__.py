"""The protocol of several clusters as a model: docs/inside/clusters.md in a form that can be run.

    python -m tests.clusters [--traces] [--depth N] [--histories N]

``model`` is the protocol with its accidents, ``explore`` looks for harm in it, ``cases`` says what
each rule prevents. ``accept`` judges what was observed of real hubs and members, and ``observe``
writes histories of the model down in that form.
"""
