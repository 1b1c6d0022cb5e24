"""iolab's logs of a host's counters."""
