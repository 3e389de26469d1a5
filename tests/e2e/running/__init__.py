"""Running work is left alone: inputs from public threads, on the real control plane."""
