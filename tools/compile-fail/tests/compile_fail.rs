//! What the types forbid.

#[test]
fn the_compiler_refuses() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
