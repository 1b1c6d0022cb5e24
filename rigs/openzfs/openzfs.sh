#!/bin/sh
# One build of OpenZFS from Debian's own packages, kept apart from any other: openzfs.sh BRANCH, such as 2.1.
#
# /opt/openzfs/BRANCH/ gets the userland (as the packages hold it), and lib/modules/KERNEL/ as a tree that modprobe -d can take:
# Debian's own modules by a link, those of OpenZFS in extra/. Runs inside the system that is being made.
set -eu
branch=$1
prefix=/opt/openzfs/$branch
work=/var/tmp/openzfs-$branch
kernel=$(ls /lib/modules | head -n 1)
export MAKEFLAGS="-j$(nproc)" KBUILD_BUILD_TIMESTAMP=

version=$(apt-cache madison zfs-dkms | awk -F ' *[|] *' -v branch="$branch." 'index($2, branch) == 1 {print $2; exit}')
[ -n "$version" ] || { echo "no zfs-dkms of $branch among the packages of these suites" >&2; exit 1; }
echo "OpenZFS $version for $kernel"

mkdir -p "$work" "$prefix"
cd "$work"
wanted="zfs-dkms zfsutils-linux zfs-test"
for name in $(apt-cache show "zfsutils-linux=$version" | sed -n 's/^Depends: //p' | tr ',|' '\n\n' | sed 's/^ *//; s/[ (].*//' | sort -u); do
  if apt-cache madison "$name" | awk -F ' *[|] *' -v version="$version" '$2 == version {found = 1} END {exit !found}'; then
    wanted="$wanted $name"
  fi
done
for name in $wanted; do
  [ -f .have-"$name" ] || { apt-get -o APT::Sandbox::User=root download -q "$name=$version"; touch .have-"$name"; }
  case $name in
    zfs-dkms) dpkg-deb -x "$name"_*.deb source ;;
    zfs-test) dpkg-deb --fsys-tarfile "$name"_*.deb | tar -x -C "$prefix" --wildcards '*bin/zinject' ;; # delays of devices; no more of it
    *) dpkg-deb -x "$name"_*.deb "$prefix" ;;
  esac
done

cd source/usr/src/zfs-*
if [ ! -f .configured ]; then
  sh configure --quiet --disable-dependency-tracking --prefix=/usr --with-config=kernel \
    --with-linux="/lib/modules/$kernel/source" --with-linux-obj="/lib/modules/$kernel/build" >/dev/null
  touch .configured
fi
make >/dev/null

# a tree of modules beside the kernel's own
own=$prefix/lib/modules/$kernel
mkdir -p "$own/extra"
find module -name '*.ko' -exec cp {} "$own/extra/" \;
strip --strip-debug "$own"/extra/*.ko
for file in modules.builtin modules.builtin.modinfo modules.order; do
  if [ -e "/lib/modules/$kernel/$file" ]; then cp "/lib/modules/$kernel/$file" "$own/"; fi
done
ln -sfn "/lib/modules/$kernel/kernel" "$own/kernel"
depmod -b "$prefix" "$kernel"

libs=$(find "$prefix" -name 'libzfs.so.*' -type f -printf '%h\n' | sort -u | tr '\n' ':')
if LD_LIBRARY_PATH=$libs ldd "$(find "$prefix" -path '*sbin/zpool')" | grep 'not found'; then
  echo "libraries of zpool $version are missing" >&2
  exit 1
fi
echo "$version" > "$prefix/version"
modinfo -b "$prefix" -k "$kernel" -F version zfs
cd /
rm -rf "$work"
