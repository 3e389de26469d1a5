"""The journal: every event that entered the core, so that its decisions can be repeated.

codec       events as bytes, and the digest of the commands that answer one
frames      a file: frames with a length and a checksum
snapshot    the state of a core as bytes, so that a file can be replayed alone
writer      a ring of files, written while the dispatcher runs
reader      the steps of a folder in order, up to the first damaged one
replay      repeats the steps in a core
lives       the history of every AppWrapper, and the use of the cluster
script      the events that do not depend on decisions
alternative replays a script under other settings
anonymous   writes a copy without names
"""
