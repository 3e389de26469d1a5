"""``python -m mcad``."""

from mcad.cli.main import main

if __name__ == "__main__":
    main()
