"""Where answers come from: segment maps, events, counters and traces."""
