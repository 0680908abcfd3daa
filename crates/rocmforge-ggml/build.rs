//! Tells the crate how it is optimised, which code cannot ask: [`OPTIMISED`](src/lib.rs).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    println!("cargo::rustc-env=ROCMFORGE_OPT_LEVEL={level}");
}
