"""`python -m hopling` is the command line."""

from hopling.apps.cli import main

if __name__ == "__main__":
    main()
