#!/bin/sh
# What OpenZFS, and a kernel, are built with from a source tree: tools.sh. Runs inside the system that is being made.
set -eu
apt-get install -y -q ccache autoconf automake libtool pkg-config patch uuid-dev libblkid-dev libssl-dev zlib1g-dev libtirpc-dev \
  libudev-dev libaio-dev libattr1-dev libelf-dev libffi-dev gettext flex bison bc
