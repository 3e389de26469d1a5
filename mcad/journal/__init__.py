"""The journal: every event that entered the core, so that its decisions can be repeated.

    event, commands ► writer ► codec ► frames ► a file of the ring, begun by header and snapshot
    reader ◄ frames, codec ◄ file                      replay: the event in a core ► commands

codec       events as bytes, and the digest of the commands that answer one
words       leaves the words of others out
frames      a file: frames with a length and a checksum
header      the first frame of a file: version and settings
snapshot    the state of a core as bytes, so that a file can be replayed alone
writer      a ring of files, written while the dispatcher runs
reader      the steps of a folder in order, up to the first damaged one
replay      repeats the steps in a core, under the recorded settings
restart     the state of a core as the events of a restart
anonymous   writes a copy without names
"""
