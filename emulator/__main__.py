"""`python -m emulator` is the command."""

from emulator.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
