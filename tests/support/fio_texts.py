# SPDX-License-Identifier: Apache-2.0
"""fio's normal output, written by hand in the forms of fio 2 and fio 3."""

from __future__ import annotations

OLD = """\
seq-write: (g=0): rw=write, bs=64K-64K/64K-64K/64K-64K, ioengine=libaio, iodepth=8
rand-read: (g=1): rw=randread, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, iodepth=16
...
fio-2.2.10
Starting 3 processes

seq-write: (groupid=0, jobs=1): err= 0: pid=2101: Tue Mar  1 10:00:00 2016
  write: io=1024.0MB, bw=102300KB/s, iops=1598, runt= 10250msec
    slat (usec): min=3, max=210, avg= 9.21, stdev= 4.55
    clat (msec): min=1, max=45, avg= 4.99, stdev= 1.21
     lat (msec): min=1, max=45, avg= 5.00, stdev= 1.21
    clat percentiles (usec):
     |  1.00th=[ 3120],  5.00th=[ 3504], 10.00th=[ 3760], 50.00th=[ 4960],
     | 99.00th=[ 9024], 99.99th=[44288]
    bw (KB  /s): min=90112, max=110592, per=100.00%, avg=102400.00, stdev=5000.00
    lat (msec) : 2=0.10%, 4=10.00%, 10=89.50%, 20=0.30%, 50=0.10%
  cpu          : usr=2.10%, sys=4.20%, ctx=16400, majf=0, minf=9
  IO depths    : 1=0.1%, 2=0.1%, 4=0.1%, 8=99.9%, 16=0.0%, 32=0.0%, >=64=0.0%
     submit    : 0=0.0%, 4=100.0%, 8=0.0%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.0%
     complete  : 0=0.0%, 4=100.0%, 8=0.1%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.0%
     issued    : total=r=0/w=16384/d=0, short=r=0/w=0/d=0, drop=r=0/w=0/d=0
     latency   : target=0, window=0, percentile=100.00%, depth=8
rand-read: (groupid=1, jobs=2): err= 0: pid=2102: Tue Mar  1 10:00:00 2016
  read : io=2343.8MB, bw=79997KB/s, iops=19999, runt= 30001msec
    slat (usec): min=1, max=1200, avg= 3.50, stdev= 2.25
    clat (usec): min=90, max=25300, avg=1595.40, stdev=410.75
     lat (usec): min=95, max=25305, avg=1599.02, stdev=410.90
    clat percentiles (usec):
     |  1.00th=[  844],  5.00th=[ 1012], 50.00th=[ 1576], 95.00th=[ 2288],
     | 99.00th=[ 2960], 99.50th=[ 3280], 99.90th=[ 4704], 99.95th=[ 6240]
    lat (usec) : 100=0.01%, 250=0.02%, 500=0.10%, 750=0.40%, 1000=4.50%
    lat (msec) : 2=80.00%, 4=14.80%, 10=0.15%, 20=0.01%, 50=0.01%
  cpu          : usr=3.00%, sys=12.00%, ctx=590000, majf=0, minf=52
  IO depths    : 1=0.1%, 2=0.1%, 4=0.1%, 8=0.1%, 16=100.0%, 32=0.0%, >=64=0.0%
     submit    : 0=0.0%, 4=100.0%, 8=0.0%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.0%
     complete  : 0=0.0%, 4=100.0%, 8=0.0%, 16=0.1%, 32=0.0%, 64=0.0%, >=64=0.0%
     issued    : total=r=600000/w=0/d=0, short=r=0/w=0/d=0, drop=r=0/w=0/d=0
     latency   : target=0, window=0, percentile=100.00%, depth=16

Run status group 0 (all jobs):
  WRITE: io=1024.0MB, aggrb=102300KB/s, minb=102300KB/s, maxb=102300KB/s, mint=10250msec, maxt=10250msec

Run status group 1 (all jobs):
   READ: io=2343.8MB, aggrb=79997KB/s, minb=79997KB/s, maxb=79997KB/s, mint=30001msec, maxt=30001msec

Disk stats (read/write):
  sda: ios=598000/16350, merge=0/10, ticks=950000/81000, in_queue=1031000, util=99.80%
"""


def report(
    *,
    ios: int = 80_000,
    runtime: int = 10_000,
    pid: int = 71,
    name: str = "load",
    second: int = 0,
    group: int = 0,
) -> str:
    """The report of a job of random reads of 4 KiB, 8 at a time, in the form of fio 3."""
    iops = 1000 * ios / runtime
    mean = 8e6 / iops if iops else 0.0
    rate = f"{iops / 1000:.1f}k" if iops >= 10_000 else f"{iops:.0f}"
    mib = ios * 4096 / 2**20
    return f"""
{name}: (groupid={group}, jobs=1): err= 0: pid={pid}: Sat Nov 28 10:00:{second:02} 2026
  read: IOPS={rate}, BW={iops * 4096 / 2**20:.1f}MiB/s ({iops * 4096 / 1e6:.1f}MB/s)({mib:.0f}MiB/{runtime}msec)
    slat (nsec): min=900, max=70100, avg=2500.25, stdev=800.50
    clat (usec): min=50, max=12500, avg={mean - 2.5:.2f}, stdev=120.75
     lat (usec): min=52, max=12503, avg={mean:.2f}, stdev=120.80
    clat percentiles (usec):
     |  1.00th=[  400],  5.00th=[  520], 50.00th=[  900], 95.00th=[ 1400],
     | 99.00th=[ 2100], 99.90th=[ 4000], 99.95th=[ 5100], 99.99th=[12400]
   bw (  KiB/s): min=30000, max=34000, per=100.00%, avg=32000.00, stdev=500.00, samples=19
   iops        : min= 7500, max= 8500, avg=8000.00, stdev=125.00, samples=19
  lat (usec)   : 100=0.01%, 250=0.05%, 500=4.00%, 750=20.00%, 1000=45.00%
  lat (msec)   : 2=30.00%, 4=0.90%, 10=0.04%, 20=0.01%
  cpu          : usr=1.50%, sys=6.25%, ctx=79000, majf=0, minf=18
  IO depths    : 1=0.1%, 2=0.1%, 4=0.1%, 8=100.0%, 16=0.0%, 32=0.0%, >=64=0.0%
     submit    : 0=0.0%, 4=100.0%, 8=0.0%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.0%
     complete  : 0=0.0%, 4=100.0%, 8=0.1%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.0%
     issued rwts: total={ios},0,0,0 short=0,0,0,0 dropped=0,0,0,0
     latency   : target=0, window=0, percentile=100.00%, depth=8
"""


HEADER = """\
load: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, iodepth=8
fio-3.33
Starting 1 process
"""
STATUS = """
Run status group 0 (all jobs):
   READ: bw=31.2MiB/s (32.8MB/s), 31.2MiB/s-31.2MiB/s (32.8MB/s-32.8MB/s), io=313MiB (328MB), run=10000-10000msec

Disk stats (read/write):
  sda: ios=79000/0, merge=0/0, ticks=70000/0, in_queue=70000, util=99.10%
"""
NEW = HEADER + report() + STATUS
