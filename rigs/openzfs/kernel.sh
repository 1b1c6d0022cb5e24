#!/bin/sh
# A kernel with the headers that modules are compiled with, below /build/root: kernel.sh [PACKAGE [SUITE]]
#
# PACKAGE is one of Debian's, such as linux-image-cloud-amd64; SUITE is where it comes from, such as bookworm-backports. Its
# packages are unpacked, not installed. Without PACKAGE the kernel is compiled from the tree /build/root/usr/src/linux.
# Runs inside the system that is being made, and does not change it.
set -eu
root=/build/root
export PATH="/usr/lib/ccache:$PATH" CCACHE_DIR=/build/ccache CCACHE_MAXSIZE=2G MAKEFLAGS="-j$(nproc)" KBUILD_BUILD_TIMESTAMP=

from_packages() {
  package=$1
  suite=${2-}
  headers=linux-headers-${package#linux-image-}
  debs=/build/debs
  rm -rf "$root" "$debs"
  mkdir -p "$debs/partial" "$root/usr"
  # shellcheck disable=SC2086 # words on purpose
  apt-get -o APT::Sandbox::User=root -o "Dir::Cache::archives=$debs" ${suite:+-t $suite} install --download-only --reinstall -y -q \
    "$package${suite:+/$suite}" "$headers${suite:+/$suite}"
  for deb in "$debs"/linux-image-*.deb "$debs"/linux-headers-*.deb "$debs"/linux-kbuild-*.deb; do
    dpkg-deb -x "$deb" "$root"
  done
  if [ -d "$root/lib" ]; then
    cp -a "$root/lib" "$root/usr/"
    rm -r "$root/lib"
  fi
  # With this file a module gets BTF, which needs pahole in the rig.
  rm -f "$root"/usr/src/linux-headers-*/vmlinux
  rm -rf "$debs" "$root/usr/share"
}

# Options without which a machine of the rig does not start, has no disks, or can't have OpenZFS.
needed="MODULES BLK_DEV_INITRD RD_GZIP BINFMT_ELF BINFMT_SCRIPT PROC_FS SYSFS TMPFS DEVTMPFS CGROUPS INOTIFY_USER FHANDLE EPOLL SIGNALFD
  TIMERFD UNIX INET PCI VIRTIO_PCI VIRTIO_BLK VIRTIO_NET EXT4_FS EFI_PARTITION SERIAL_8250_CONSOLE UNIX98_PTYS ZLIB_INFLATE ZLIB_DEFLATE"

from_tree() {
  cd "$root/usr/src/linux"
  # A tree without a configuration gets that of the rig's own kernel.
  if [ ! -f .config ]; then
    cp /boot/config-* .config
    # BTF needs pahole, which is not in the rig. Without debug information a kernel compiles faster.
    sh scripts/config --disable DEBUG_INFO_BTF --disable DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT --enable DEBUG_INFO_NONE
  fi
  make olddefconfig >/dev/null
  missing=
  for option in $needed; do
    grep -q "^CONFIG_$option=[ym]" .config || missing="$missing CONFIG_$option"
  done
  [ -z "$missing" ] || { echo "error: the configuration lacks what a machine of the rig needs:$missing" >&2; exit 1; }
  # A compiler that was killed leaves part of an object, which make would take for a whole one.
  if [ -f .iolab-compiling ]; then find . -newer .iolab-compiling -regex '.*\(\.\(a\|ko\|o\)\|/vmlinux\)' -delete; fi
  touch .iolab-compiling
  make bzImage modules >/dev/null || { rm .iolab-compiling; exit 1; }
  rm .iolab-compiling
  rm -rf "$root/boot" "$root/usr/lib/modules"
  mkdir -p "$root/boot"
  make modules_install INSTALL_MOD_PATH="$root/usr" INSTALL_MOD_STRIP=1 >/dev/null
  made=$(make -s kernelrelease)
  cp arch/x86/boot/bzImage "$root/boot/vmlinuz-$made"
  cp .config "$root/boot/config-$made"
  ln -sfn /usr/src/linux "$root/usr/lib/modules/$made/build"
  ln -sfn /usr/src/linux "$root/usr/lib/modules/$made/source"
}

if [ $# -gt 0 ]; then from_packages "$@"; else from_tree; fi
release=$(ls "$root/usr/lib/modules")
[ "$(echo "$release" | wc -w)" = 1 ] || { echo "error: not one kernel but: $(echo "$release" | tr '\n' ' ')" >&2; exit 1; }
[ -f "$root/boot/vmlinuz-$release" ] || { echo "error: no kernel for $release" >&2; exit 1; }
ln -sfn usr/lib "$root/lib"
depmod -b "$root" "$release"
# For this script only: its mount namespace ends with it.
mount -t overlay -o "lowerdir=$root/usr:/usr" overlay /usr
mount -t overlay -o "lowerdir=$root/boot:/boot" overlay /boot
mkinitramfs -o "$root/boot/initrd.img-$release" "$release"
echo "$release" > /build/release
