"""Scale-up requests: what asks an autoscaler for nodes, and what it answers.

settings    how an autoscaler is asked, and for how long
objects     the objects of a request
templates   a pod of a pod set, as the autoscaler has to see it
kept        annotations that keep an autoscaler from moving pods
answers     reads what the autoscaler says
"""
