#!/bin/sh
# Servers and clients of files: NFS and SMB. None of them runs until it is started. Runs inside the system that is being made.
set -eu
packages="nfs-kernel-server nfs-common rpcbind samba cifs-utils"
# shellcheck disable=SC2086 # words on purpose
apt-get install -y -q $packages
for unit in $(dpkg-query -L $packages | sed -n 's,^.*/lib/systemd/system/\([^/@]*\.\(service\|socket\|target\|timer\)\)$,\1,p' | sort -u); do
  systemctl disable "$unit" >/dev/null 2>&1 || true
done
