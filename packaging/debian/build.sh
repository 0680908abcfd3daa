#!/bin/sh
# Debian package: builds the program, its manual pages, its completions and the notices of its crates, and packs them. It needs dpkg-dev,
# `cargo install cargo-deb` and `cargo install --features cli cargo-about`.
set -eu
cd "$(dirname "$0")/../.."

version=$(cargo pkgid --package rocmforge-cli | sed 's/.*[#@]//')
first=$(sed -n '1s/^rocmforge (\(.*\)-[^-]*) .*/\1/p' packaging/debian/changelog)
if [ "$version" != "$first" ]; then
    echo "packaging/debian/changelog begins with version $first, and the program has $version" >&2
    exit 1
fi

cargo build --release --locked --package rocmforge-cli
release=${CARGO_TARGET_DIR:-target}/release
files=$release/debian-files
rm -rf "$files"
mkdir -p "$files/man"
"$release/rocmforge" man "$files/man"
gzip -9n "$files/man/"*
for shell in bash zsh fish; do
    "$release/rocmforge" completions "$shell" >"$files/rocmforge.$shell"
done
packaging/licenses/notices.sh "$files"
gzip -9n "$files/third-party-licenses.txt" "$files/rust-library-copyright.html"
exec cargo deb --package rocmforge-cli --no-build "$@"
