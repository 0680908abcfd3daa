//! Programs that must not compile: each breaks a rule that the types enforce.

#[test]
fn the_compiler_refuses() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
