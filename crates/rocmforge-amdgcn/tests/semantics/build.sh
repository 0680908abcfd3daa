#!/bin/sh
# Rebuilds the objects of these tests with clang 19. Not needed to run the tests.
set -eu
cd "$(dirname "$0")"
for name in rig sequences; do
    for arch in gfx1100 gfx1201; do
        clang++-19 -x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O3 -std=c++17 \
            -mcode-object-version=5 -fuse-cuid=none --offload-arch="$arch" "$name.hip" -o "$name-$arch.co"
    done
done
