# SPDX-License-Identifier: Apache-2.0
"""fio's options by what their values can do: harmless ones, those that are examined, those that need
trust, and those that iolab keeps to itself. Any other option needs trust (fio(1), `fio --cmdhelp`)."""

from __future__ import annotations

_VALUES = """
allow_file_create allrandrepeat atomic ba block_error_percentiles blockalign blocksize
blocksize_range blocksize_unaligned bs bs_unaligned bsrange bssplit buffer_compress_chunk
buffer_compress_percentage buffered bwavgtime clat_percentiles clocksource cmdprio cmdprio_bssplit
cmdprio_class cmdprio_percentage continue_on_error cpuchunks cpuload cpumask cpumode cpus_allowed
cpus_allowed_policy create_fsync create_on_open create_serialize dedupe_global dedupe_mode
dedupe_percentage dedupe_working_set_percentage description direct disable_bw disable_bw_measurement
disable_clat disable_lat disable_slat disk_util do_verify dp_type end_fsync error_dump
exit_on_io_done exit_what exitall exitall_on_error experimental_verify fadvise_hint fallocate
fdatasync fdp fdp_pli file_append file_service_type fileoffset filesize fixedbufs flow flow_id
flow_sleep force_async fsync fsync_on_close group_reporting gtod_cpu gtod_reduce hipri
hipri_percentage hugepage-size ignore_error ignore_zone_limits invalidate io_limit io_size
io_submit_mode iodepth iodepth_batch iodepth_batch_complete iodepth_batch_complete_max
iodepth_batch_complete_min iodepth_batch_submit iodepth_low iomem_align iopsavgtime
job_max_open_zones job_start_clock_id kb_base lat_percentiles latency_percentile latency_run
latency_target latency_window lockfile lockmem log_alternate_epoch log_alternate_epoch_clock_id
log_avg_msec log_compression log_compression_cpus log_entries log_hist_coarseness log_hist_msec
log_issue_time log_max_value log_offset log_prio log_store_compressed log_window_value loops
max_latency max_open_zones mem_align merge_blktrace_iters merge_blktrace_scalars new_group nice
nonvectored norandommap nowait nr_files nrfiles numa_cpu_nodes numa_mem_policy number_ios numjobs
offset offset_align offset_increment openfiles overwrite percentage_random percentile_list pre_read
prio prioclass random_distribution random_generator randrepeat randseed rate rate_cycle
rate_ignore_thinktime rate_iops rate_iops_min rate_min rate_process ratecycle ratemin read_beyond_wp
read_iolog_chunked readwrite refill_buffers registerfiles replay_align replay_no_stall replay_scale
replay_skip replay_time_scale rw rw_sequencer rwf rwmixread rwmixwrite scramble_buffers
serialize_overlap sfr significant_figures size slat_percentiles softrandommap sqthread_poll
sqthread_poll_cpu ss ss_dur ss_ramp start_delay startdelay stat_type stats steadystate
steadystate_duration steadystate_ramp_time stonewall sync sync_file_range thinkcycles thinktime
thinktime_blocks thinktime_blocks_type thinktime_iotime thinktime_spin thp thread trim_backlog
trim_backlog_batch trim_percentage trim_verify_zero uncached unified_rw_reporting unique_filename
unit_base unlink unlink_each_loop use_os_rand userspace_reap verify verify_async verify_async_cpus
verify_backlog verify_backlog_batch verify_dump verify_fatal verify_interval verify_offset
verify_state_load verify_state_save wait_for wait_for_previous write_barrier write_hint zero_buffers
zone_reset_frequency zone_reset_threshold zonecapacity zonemode zonerange zonesize zoneskip
"""

HARMLESS = frozenset(_VALUES.split())
"""Options with a number, a size, a time, a choice or a list of these as value, or a text that fio only
repeats (`description`, `wait_for`). None of them names a file, a program or another machine. From
fio 3.33's own list of options and their types (`fio --cmdhelp=all`, `--enghelp=ENGINE`). Every option
of type `string` was looked up in fio(1). A few are of later versions."""

CHECKED = frozenset(
    {
        "buffer_pattern",
        "filename",
        "filename_format",
        "ioengine",
        "iomem",
        "mem",
        "verify_pattern",
        "write_hist_log",
        "write_lat_log",
    }
)
"""Options with a value that can name a file or load code, and is examined (`options.problems`)."""

_CGROUP = "changes control groups of the machine"
TRUSTED = {
    "cgroup": _CGROUP,
    "cgroup_weight": _CGROUP,
    "cgroup_nodelete": _CGROUP,
    "uid": "runs as another user",
    "gid": "runs as another group",
}
"""Options that a study sets only where the user agrees, with what they do."""
UNKNOWN = "iolab does not know what it does"
"""Why any other option needs the user's consent, too."""

_LOGS = "iolab writes the logs of every run; leave it out"
_ITSELF = "it is set by iolab for every run; leave it out"

RESERVED = {
    "runtime": "write it as workload.runtime",
    "timeout": "write it as workload.runtime",
    "ramp_time": "write it as workload.ramp",
    "time_based": "every run lasts workload.runtime; leave it out",
    "directory": "the target says where; see target.path",
    "name": _ITSELF,
    "write_bw_log": _LOGS,
    "write_iops_log": _LOGS,
    "log_unix_epoch": _LOGS,
    "per_job_logs": _LOGS,
    "allow_mounted_write": "iolab decides which devices are written; see target",
    "opendir": "it reads files outside the target; let fio make its own",
    "replay_redirect": "it writes outside the target, to a device by name",
    "read_iolog": "it names files outside the target",
    "write_iolog": "it writes outside the run's evidence",
    "exec_prerun": "a study runs no commands of its own",
    "exec_postrun": "a study runs no commands of its own",
    "merge_blktrace_file": "it names files outside the target",
    "fill_device": "it fills the file system whatever size says",
    "fill_fs": "it fills the file system whatever size says",
    "ioscheduler": "it changes the device for everyone; set the scheduler beforehand",
    "profile": "it brings options of its own; write them out",
    "create_only": "nothing would be measured",
    "verify_only": "nothing would be measured",
}
"""Options that a study can't set, with what to do instead. Safety first: a study measures in its
target and nowhere else."""

KNOWN = HARMLESS | CHECKED | TRUSTED.keys() | RESERVED.keys()
"""Options by which a factor's name is known as fio's."""

INCLUDE = "include"
"""What fio takes for the inclusion of another job file: every line that begins with it, whatever
follows (`includes=x` too; fio's init.c compares these letters alone). An included file may set every
option."""

_NETWORK, _DEVICES = "it talks to the network", "it writes to devices by name"
BARRED_ENGINES = {
    "exec": "it runs commands",
    "net": _NETWORK,
    "netsplice": _NETWORK,
    "http": _NETWORK,
    "rdma": _NETWORK,
    "librpma_apm_client": _NETWORK,
    "librpma_apm_server": _NETWORK,
    "librpma_gpspm_client": _NETWORK,
    "librpma_gpspm_server": _NETWORK,
    "rados": _NETWORK,
    "rbd": _NETWORK,
    "gfapi": _NETWORK,
    "gfapi_async": _NETWORK,
    "libhdfs": _NETWORK,
    "libiscsi": _NETWORK,
    "nbd": _NETWORK,
    "nfs": _NETWORK,
    "ime_psync": _NETWORK,
    "ime_psyncv": _NETWORK,
    "ime_aio": _NETWORK,
    "dfs": _NETWORK,
    "sg": _DEVICES,
    "io_uring_cmd": _DEVICES,
    "libblkio": _DEVICES,
    "xnvme": _DEVICES,
    "libzbc": _DEVICES,
    "mtd": _DEVICES,
    "pmemblk": _DEVICES,
    "dev-dax": _DEVICES,
    "external": "it loads code from outside",
    "e4defrag": "it moves other files",
}
"""Engines that reach beyond a directory, each with how it does."""

FILE_ENGINES = frozenset(
    {
        "sync",
        "psync",
        "vsync",
        "pvsync",
        "pvsync2",
        "libaio",
        "io_uring",
        "posixaio",
        "solarisaio",
        "windowsaio",
        "mmap",
        "splice",
        "null",
        "cpuio",
        "ftruncate",
        "filecreate",
        "filestat",
        "filedelete",
        "dircreate",
        "dirstat",
        "dirdelete",
        "falloc",
        "fallocate",
        "libpmem",
        "guasi",
        "syslet-rw",
        "libcufile",
    }
)
"""Engines that are known to stay in the files they are given. An engine in neither list is
refused too: it was never examined."""

ALIASES = {
    "blocksize": "bs",
    "readwrite": "rw",
    "timeout": "runtime",
    "blocksize_range": "bsrange",
    "blockalign": "ba",
    "blocksize_unaligned": "bs_unaligned",
    "io_limit": "io_size",
    "mem": "iomem",
    "steadystate": "ss",
    "disable_bw": "disable_bw_measurement",
    "fileoffset": "offset",
    "fill_fs": "fill_device",
    "iodepth_batch_complete": "iodepth_batch_complete_min",
    "iodepth_batch_submit": "iodepth_batch",
    "nr_files": "nrfiles",
    "ratecycle": "rate_cycle",
    "ratemin": "rate_min",
    "ss_dur": "steadystate_duration",
    "ss_ramp": "steadystate_ramp_time",
    "wait_for_previous": "stonewall",
}
"""Second names of options to the first, so that a study's option meets the one of a job file."""

_NO_EFFECT = "fio knows it no longer, and does the same without"
OBSOLETE = {
    "use_os_rand": f"{_NO_EFFECT}; see random_generator",
    "rand_generator": "fio knows it no longer; see random_generator",
    "rwmixcycle": _NO_EFFECT,
    "percentage_sequential": "fio knows it no longer; write percentage_random",
    "lockfile_batch": _NO_EFFECT,
    "cpumode": _NO_EFFECT,
    "minimal": "it is not an option of a job: the form of the output is iolab's",
    "output": "it is not an option of a job: iolab keeps the output with the run",
    "output-format": "it is not an option of a job: the form of the output is iolab's",
}
"""Options of fio 1 and 2, and of its command line, that fio 3 refuses in a job; taken out with a
note, so that old studies run."""

_KEPT = "iolab keeps its own"
_PLACE = "the target says where"
SET_BY_IOLAB = {
    "directory": _PLACE,
    "name": "the section's name is the job's",
    "write_bw_log": _KEPT,
    "write_iops_log": _KEPT,
    "write_lat_log": _KEPT,
    "log_avg_msec": _KEPT,
    "log_unix_epoch": _KEPT,
    "log_alternate_epoch": _KEPT,
    "per_job_logs": _KEPT,
    "log_offset": _KEPT,
    "bwavgtime": _KEPT,
    "iopsavgtime": _KEPT,
    "ioscheduler": "it changes the device for everyone; set the scheduler beforehand",
}
"""Options of a job file that iolab sets itself for every run; taken out with a note."""
