//! Every op on a device against the CPU backend, which has its own f64 tests (`tests/ops`).

mod common;
mod gpu {
    mod case;
    mod copies;
    mod covered;
    mod decoder;
    mod experts;
    mod fused;
    mod hybrid;
    mod latent;
    mod ops;
    mod packed;
    mod program;
    mod random;
    mod recurrent;
    mod recurrent_chunks;
    mod route;
    mod stopped;
    mod without_kernel;
}

/// Every test again, on the second simulated card: a test for each module, so that they run beside each other.
mod second_card {
    use std::process::Command;

    macro_rules! again {
        ($($module:ident),* $(,)?) => {
            const MODULES: &[&str] = &[$(concat!("gpu::", stringify!($module), "::")),*];

            $(#[test]
            fn $module() {
                rocmforge_testkit::on_every_card("second_card", &[concat!("gpu::", stringify!($module), "::")]);
            })*
        };
    }

    again!(
        copies,
        covered,
        decoder,
        experts,
        fused,
        hybrid,
        latent,
        ops,
        packed,
        program,
        random,
        recurrent,
        recurrent_chunks,
        route,
        stopped,
        without_kernel
    );

    #[test]
    fn every_test_is_in_one_of_the_modules() {
        let binary = std::env::current_exe().expect("a test binary knows its path");
        let output = Command::new(binary).args(["--list", "--format", "terse"]).output();
        let output = output.expect("a test binary can be run");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("names");
        for module in MODULES {
            assert!(text.lines().any(|test| test.starts_with(module)), "no test of {module}");
        }
        let mut tests = text.lines().filter_map(|line| line.strip_suffix(": test"));
        let repeated = |test: &str| MODULES.iter().any(|module| test.starts_with(module));
        let other = tests.find(|test| !repeated(test) && !test.starts_with("second_card::"));
        assert_eq!(other, None);
    }
}
