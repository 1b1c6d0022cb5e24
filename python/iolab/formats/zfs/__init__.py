"""iolab's logs of OpenZFS's counters."""
