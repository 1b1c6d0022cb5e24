"""Files of fio: JSON, terse output, logs."""
