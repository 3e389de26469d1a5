"""The page of ``mcad ui``: queue, capacity and quota in a browser. It reads, and changes nothing.

    server     the addresses of the page, on loopback
    guard      which requests are answered: Host, token and cookie, security headers
    login      the same for browsers that log in with a token of the cluster
    callers    those that have logged in, each with a board and a view
    token_access  the cluster with the token of a caller
    view       answers with what one caller may see
    board      the latest figures, followed once for all open pages
    leader     the leader as its Lease names it
    stream     what an open page is sent: parts of it that have changed
    details    one AppWrapper: its row, its conditions, its Events, what would start it
    pods       its pods and the end of their logs
    manifest   it as YAML
    pages      from figures to HTML, with templates/
    history    use over time, since a page was opened
    bars       capacity, nodes and quota as what the templates draw
    rows       the rows that a query asks for
    listing    all AppWrappers of a moment, and rows of those that are shown
    static/    style, script and two vendored libraries: no build step, nothing from elsewhere
    templates/ Jinja templates; everything in them is escaped

It is imported by the command that starts it only, because it needs the extra ``ui``.
"""
