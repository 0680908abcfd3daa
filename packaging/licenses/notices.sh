#!/bin/sh
# Notices of what is inside the program: notices.sh FOLDER. It needs `cargo install --features cli cargo-about`.
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
cargo about generate --locked --fail --manifest-path crates/rocmforge-cli/Cargo.toml --config packaging/licenses/about.toml \
    --output-file "$folder/third-party-licenses.txt" packaging/licenses/about.hbs
cp "$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html" "$folder/rust-library-copyright.html"
