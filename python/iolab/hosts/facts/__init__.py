"""Facts about a host: CPU, memory, kernel, block devices, controllers."""
