"""The whole dispatcher on the embedded cluster in virtual time, with one thing going wrong."""
