"""The objects of an attempt: created, observed, deleted.

create          creates the items in order, and handles the answers of the API server
inventory, names, access   what an attempt consists of; which names are taken; what may be created
observed_workloads, edits   observed changes of AppWrappers
observed_objects, attribution, unproven   observed objects and pods, and the AppWrapper of each
recovery        continues what the previous leader began
teardown        takes an attempt back
orphans         deletes objects of no recorded attempt
remains, leftovers   what deleted AppWrappers leave; AppWrappers known from their objects only
"""
