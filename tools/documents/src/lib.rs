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
    use std::path::Path;

    /// Each page of `docs` with a Rust example is included above, and no example is exempt from compilation.
    #[test]
    fn every_example_is_compiled() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        for page in std::fs::read_dir(docs).unwrap() {
            let page = page.unwrap();
            let name = page.file_name().into_string().unwrap();
            if !name.ends_with(".md") {
                continue;
            }
            let text = std::fs::read_to_string(page.path()).unwrap();
            let line = format!("include_str!(\"../../../docs/{name}\")");
            let included = include_str!("lib.rs").contains(&line);
            assert!(included || !text.contains("```rust"), "docs/{name} is not included");
            assert!(
                !text.contains("```rust,ignore"),
                "docs/{name} has an example that is not compiled"
            );
        }
    }
}
