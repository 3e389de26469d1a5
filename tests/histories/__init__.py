"""Random histories of running work: no attempt ends but for a reason that the store shows.

objects     the manifests that are wrapped, and the custom kinds
operators   played operators: JobSet, LeaderWorkerSet, KubeRay, MPI, CronJobs
client      a client of the embedded API server without HTTP
process     a dispatcher process on that: core, api and the translation of the controller
drawing     what is submitted, what users do and what goes wrong, drawn by a seed
world       one history is played in virtual time
chronicle   what was stored, revision by revision
oracle      which ends of attempts the chronicle accounts for
"""
