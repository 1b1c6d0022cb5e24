# SPDX-License-Identifier: Apache-2.0
"""`python -m iolab.cli`: the command line without its script."""

from .main import main

if __name__ == "__main__":
    main()
