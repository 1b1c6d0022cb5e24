#!/bin/sh
# The last stage: what makes a machine of the packages. Runs inside the system that is being made.
set -eu
install -m 755 /rig/openzfs-use /usr/local/sbin/openzfs-use
install -m 755 /rig/openzfs-program /usr/local/sbin/openzfs-program
for program in $(find /opt/openzfs/*/sbin /opt/openzfs/*/usr/sbin /opt/openzfs/*/bin /opt/openzfs/*/usr/bin -maxdepth 1 -type f -perm /111 \
    -printf '%f\n' 2>/dev/null | sort -u); do
  ln -sf openzfs-program "/usr/local/sbin/$program"
done
mkdir -p /etc/zfs

echo rig > /etc/hostname
printf '127.0.0.1 localhost rig\n' > /etc/hosts
printf 'LABEL=rig / ext4 rw,noatime 0 1\n' > /etc/fstab
cat > /etc/systemd/system/rig-network.service <<'UNIT'
[Unit]
Description=The one network card, with the address that qemu gives out
After=local-fs.target
Before=ssh.service
[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=60
ExecStart=/bin/sh -c 'until [ -d /sys/class/net/eth0 ]; do sleep 0.2; done; ip address add 10.0.2.15/24 dev eth0; ip link set eth0 up'
[Install]
WantedBy=multi-user.target
UNIT
systemctl enable rig-network ssh >/dev/null 2>&1
systemctl set-default multi-user.target >/dev/null 2>&1
# Nothing may run beside a measurement that was not asked for; the clock is the machine's own.
systemctl mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer \
  systemd-tmpfiles-clean.timer sysstat.service sysstat-collect.timer sysstat-summary.timer systemd-logind.service systemd-binfmt.service \
  getty@tty1.service serial-getty@ttyS0.service systemd-pstore.service >/dev/null 2>&1
mkdir -p /etc/ssh/sshd_config.d ~root/.ssh
chmod 700 ~root/.ssh
cat > /etc/ssh/sshd_config.d/rig.conf <<'SSHD'
PermitRootLogin prohibit-password
PasswordAuthentication no
UseDNS no
MaxSessions 50
SSHD
rm -f /etc/ssh/ssh_host_*

printf 'MODULES=list\nCOMPRESS=gzip\n' > /etc/initramfs-tools/conf.d/rig
printf 'virtio_pci\nvirtio_blk\nvirtio_net\next4\n' > /etc/initramfs-tools/modules
cat > /usr/local/sbin/rig-probe <<'PROBE'
#!/bin/sh
# Run in place of init to see that a machine can boot at all.
echo rig-probe: booted > /dev/console
mount -t proc proc /proc
echo o > /proc/sysrq-trigger
sleep 60
PROBE
chmod 755 /usr/local/sbin/rig-probe
update-initramfs -u -k all >/dev/null
apt-get clean
rm -rf /var/lib/apt/lists/* /etc/apt/apt.conf.d/99rig-build /usr/sbin/policy-rc.d
truncate -s 0 /etc/machine-id
