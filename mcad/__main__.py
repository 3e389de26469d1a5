"""``python -m mcad``."""

from mcad.cli.start import main

if __name__ == "__main__":
    main()
