"""Run ppframe from a checkout: `python launch.py --help`."""

from ppframe.cli import main

if __name__ == "__main__":
    main()
