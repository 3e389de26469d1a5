"""The objects of an attempt: created and deleted.

create          creates the items in order, and handles the answers of the API server
access          access reviews of missing rights
edits           changes of an AppWrapper that is dispatched
pod_warnings    why pods of an item are not created
attribution     the AppWrapper of each object and pod
teardown        takes an attempt back
orphans         deletes objects of no recorded attempt
remains, leftovers   the remains of deleted AppWrappers; AppWrappers known from objects only
"""
