"""Output of iostat, of sysstat, illumos and FreeBSD."""
