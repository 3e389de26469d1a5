"""What is decided, as text: two trees that decide the same print the same."""
