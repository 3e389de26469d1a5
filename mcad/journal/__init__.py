"""The journal: everything that entered the core, so that its decisions can be made again.

codec       events as bytes, and the digest of the commands that answer one
frames      a file: frames with a length and a checksum
snapshot    the memory of a core as bytes, so that a file can be replayed without those before it
writer      a ring of files, written while the dispatcher runs
reader      the steps of a folder in their order, up to the first that is damaged
replay      a core that is given them again
"""
