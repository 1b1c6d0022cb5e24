# SPDX-License-Identifier: Apache-2.0
"""`python -m iolab`: the command line of this interpreter's iolab."""

from .cli.main import main

if __name__ == "__main__":
    main()
