"""What people type: ``mcad``. Nothing is imported here, so that ``mcad --help`` is quick."""
