//! Documents: the Rust examples of README.md and docs/*.md, compiled as doc tests. A page with Rust examples is included here.
//!
//! `cargo test -p rocmforge-documents --doc`

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme_page {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/models.md")]
mod models_page {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/testing.md")]
mod testing_page {}

#[cfg(test)]
mod tests {
    use rocmforge_gpu_test::root_at_run_time;

    /// Each page of `docs` with a Rust example is included above, and no example is exempt from compilation.
    #[test]
    fn every_example_is_compiled() {
        let docs = root_at_run_time().join("docs");
        let source = root_at_run_time().join("tools/documents/src/lib.rs");
        let source = std::fs::read_to_string(source).unwrap();
        for page in std::fs::read_dir(docs).unwrap() {
            let page = page.unwrap();
            let name = page.file_name().into_string().unwrap();
            if !name.ends_with(".md") {
                continue;
            }
            let text = std::fs::read_to_string(page.path()).unwrap();
            let line = format!("include_str!(\"../../../docs/{name}\")");
            let included = source.contains(&line);
            assert!(included || !text.contains("```rust"), "docs/{name} is not included");
            assert!(
                !text.contains("```rust,ignore"),
                "docs/{name} has an example that is not compiled"
            );
        }
    }
}
