"""The journal: everything that entered the core, so that its decisions can be made again.

codec       events as bytes, and the digest of the commands that answer one
frames      a file: frames with a length and a checksum
snapshot    the memory of a core as bytes, so that a file can be replayed without those before it
writer      a ring of files, written while the dispatcher runs
reader      the steps of a folder in their order, up to the first that is damaged
replay      a core that is given them again
lives       what became of every AppWrapper, and the use of the cluster
script      what the steps say of the world outside of the core
alternative what would have become of the AppWrappers under other settings
anonymous   a copy without names
"""
