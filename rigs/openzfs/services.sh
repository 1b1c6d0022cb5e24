#!/bin/sh
# Servers and clients of files: NFS. None of them runs until it is started. Runs inside the system that is being made.
set -eu
apt-get install -y -q nfs-kernel-server nfs-common rpcbind
for unit in $(dpkg-query -L nfs-kernel-server nfs-common rpcbind | sed -n 's,^/usr\{0,1\}/lib/systemd/system/\([^/]*\)$,\1,p;s,^/lib/systemd/system/\([^/]*\)$,\1,p' | sort -u); do
  case $unit in *@*|*.mount) continue ;; esac
  systemctl disable "$unit" >/dev/null 2>&1 || true
done
