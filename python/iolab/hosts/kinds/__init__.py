"""The kinds of hosts, and how a command line names them."""
