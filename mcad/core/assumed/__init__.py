"""Pods of dispatched AppWrappers that are not bound yet.

allotments      how many pods an attempt still has to bind, per pod set
assumed         on which nodes room is kept for these pods
gangs           what each gang holds, and what becomes of it
apart           which nodes the pods of one set leave to other pods of their gang
in_flight       whether one more gang could strand recently dispatched gangs
any_order       whether pods find room in every order of binding
reserved_room   questions about the room of reservations
unplaced        assumed pods without a node, and the nodes that are set aside for them
pod_index       every pod, by node and by AppWrapper
workload_pods   questions about the pods of one AppWrapper
node_report     the books of the nodes for users
"""
