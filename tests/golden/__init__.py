"""The golden files of the embedded cluster, written from the real control plane."""
