"""What people type: ``mcad``. Nothing is imported here, so that ``mcad --help`` is quick.

    start         entry points of the programs
    main          the table of commands; runs one and ends with its exit code
    removed       what to type instead of a command or an option that is gone
    commands/     one module per command: its options, its help, what it does
    arguments/    options and names that commands share
    pages/        what is printed, as pure functions from figures to lines
    live/         output that goes on: rows that change, logs, events
    demo_cluster/ the embedded cluster of ``mcad demo`` and its tours

Whatever is asked of the cluster is in ``mcad.client``; the page of ``mcad ui`` is in ``mcad.ui``.
"""
