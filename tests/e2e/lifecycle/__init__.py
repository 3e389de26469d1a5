"""What happens after the dispatch, on a real control plane: both dialects, in short times."""
