#!/bin/sh
# Build OpenZFS from the sources in /build/source, into /build/new: build.sh NAME [BASE]
#
# With BASE (a build of this machine, such as 2.3) only the modules are made, and the userland is that of BASE. Otherwise both are.
# /build/source keeps its objects, so that the next call compiles what has changed. Runs inside the system that is being made.
# If /build/kernel has a further kernel, only the modules for it are made, and added to an existing /build/new.
# On another host, BUILD_DIRECTORY is used instead of /build, BUILD_BASE has the userland of BASE, and BUILD_KERNEL is the kernel
# that runs. Nothing else is written.
set -eu
name=$1
base=${2-}
directory=${BUILD_DIRECTORY:-/build}
programs=${BUILD_PROGRAMS:-/usr/local/sbin}
kernel=${BUILD_KERNEL:-$(ls /lib/modules | head -n 1)}
added=
if [ -d "$directory/kernel/usr" ]; then
  added=1
  kernel=$(ls "$directory/kernel/usr/lib/modules")
  # Its modules and headers have to be where packages install them. This mount ends with the script.
  mount -t overlay -o "lowerdir=$directory/kernel/usr:/usr" overlay /usr
fi
new=$directory/new
headers=/lib/modules/$kernel/source
[ -d "$headers" ] || headers=/lib/modules/$kernel/build
export PATH="/usr/lib/ccache:$PATH" CCACHE_DIR="${BUILD_CACHE:-/build/ccache}" CCACHE_MAXSIZE=2G MAKEFLAGS="-j$(nproc)" KBUILD_BUILD_TIMESTAMP=

cd "$directory/source"
config=all
if [ -n "$base$added" ]; then config=kernel; fi
[ -f configure ] || sh autogen.sh >/dev/null
flags="--with-config=$config --prefix=/usr --libdir=/usr/lib/$(gcc -print-multiarch) --sysconfdir=/etc --localstatedir=/var --disable-pyzfs
  --disable-systemd --with-linux=$headers --with-linux-obj=/lib/modules/$kernel/build"
wanted="$kernel $flags $(cat configure config/*.m4 module/Kbuild.in 2>/dev/null | cksum)"
if [ "$(cat .iolab-configured 2>/dev/null)" != "$wanted" ]; then
  # shellcheck disable=SC2086 # words on purpose
  sh configure --quiet $flags >/dev/null
  echo "$wanted" > .iolab-configured
fi
# A compiler that was killed leaves part of an object, which make would take for a whole one.
if [ -f .iolab-compiling ]; then
  find . -newer .iolab-compiling -regex '.*\.\(a\|ko\|la\|lo\|o\|so[.0-9]*\)' -delete
fi
touch .iolab-compiling
make >/dev/null || { rm .iolab-compiling; exit 1; }
rm .iolab-compiling

[ -n "$added" ] || rm -rf "$new"
mkdir -p "$new"
if [ -n "$added" ]; then
  rm -rf "$new/lib/modules/$kernel"
elif [ -n "$base" ]; then
  cp -a "${BUILD_BASE:-/opt/openzfs/$base}/." "$new/"
  rm -rf "$new/lib/modules" "$new/build.json"
else
  make install DESTDIR="$new" >/dev/null
  rm -rf "$new/lib/modules" "$new/usr/src" "$new/usr/share/zfs/zfs-tests" "$new/usr/share/man"
fi

# a tree for modprobe -d, with the kernel's own modules by a link
own=$new/lib/modules/$kernel
mkdir -p "$own/extra"
find module -name '*.ko' -exec cp {} "$own/extra/" \;
strip --strip-debug "$own"/extra/*.ko
for file in modules.builtin modules.builtin.modinfo modules.order; do
  if [ -e "/lib/modules/$kernel/$file" ]; then cp "/lib/modules/$kernel/$file" "$own/"; fi
done
ln -sfn "/lib/modules/$kernel/kernel" "$own/kernel"
depmod -b "$new" "$kernel"
module_facts() {
  echo "kernel $kernel"
  for file in "$own"/extra/*.ko; do
    echo "module $(basename "$file" .ko) $(modinfo -F srcversion "$file") $(readelf -n "$file" | sed -n 's/^ *Build ID: //p')"
  done
}
if [ -n "$added" ]; then
  module_facts >> "$directory/facts"
  exit 0
fi

libs=$(find "$new" -name 'libzfs.so.*' -printf '%h\n' | sort -u | tr '\n' ':')
if LD_LIBRARY_PATH=$libs ldd "$(find "$new" -path '*sbin/zpool' | head -n 1)" | grep 'not found'; then
  echo "libraries of zpool are missing" >&2
  exit 1
fi
modinfo -b "$new" -k "$kernel" -F version zfs > "$new/version"
for program in $(find "$new/sbin" "$new/usr/sbin" "$new/bin" "$new/usr/bin" -maxdepth 1 -type f -perm /111 -printf '%f\n' 2>/dev/null); do
  ln -sf openzfs-program "$programs/$program"
done
{
  module_facts
  echo "compiler $(gcc --version | head -n 1)"
  echo "configure $(echo $flags)"
  for program in zpool zfs; do
    echo "program $program $(readelf -n "$(find "$new" -path "*sbin/$program" | head -n 1)" | sed -n 's/^ *Build ID: //p')"
  done
} > "$directory/facts"
echo "$name: $(cat "$new/version")"
