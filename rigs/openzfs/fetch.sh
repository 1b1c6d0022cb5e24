#!/bin/sh
# The sources of the modules of one of Debian's builds, into /build/fetched: fetch.sh BRANCH, such as 2.3.
set -eu
version=$(cat "/opt/openzfs/$1/version")
work=$(mktemp -d)
cd "$work"
apt-get -o APT::Sandbox::User=root download -q "zfs-dkms=$version"
dpkg-deb -x zfs-dkms_*.deb .
mkdir -p /build/fetched
cp -a usr/src/zfs-*/. /build/fetched/
rm -rf "$work"
