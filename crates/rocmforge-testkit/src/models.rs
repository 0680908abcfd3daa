//! Models that tests read: where `cargo xtask model` puts them.

use std::path::{Path, PathBuf};

use rocmforge_gpu_test::root_at_run_time;

pub use rocmforge_gpu_test::MODELS_VARIABLE;

/// Where a file of a model lies, whether it is there or not: under the folder that [`MODELS_VARIABLE`] names, or under
/// `target/models` of the workspace. An empty variable is none.
#[must_use]
pub fn test_model_path(file: impl AsRef<Path>) -> PathBuf {
    let given = std::env::var_os(MODELS_VARIABLE).filter(|value| !value.is_empty());
    let folder = given.map_or_else(|| root_at_run_time().join("target/models"), PathBuf::from);
    folder.join(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const FILE: &str = "a-model/weights.gguf";
    /// Set in the process of its own in which a test asks: the environment belongs to the whole process.
    const EXPECTED: &str = "ROCMFORGE_TEST_EXPECTED_PATH";

    /// Runs the test once more, with the variable as given, and holds the path to `expected`.
    fn check(test: &str, variable: Option<&str>, expected: &Path) {
        if let Some(expected) = std::env::var_os(EXPECTED) {
            assert_eq!(test_model_path(FILE), Path::new(&expected));
            return;
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test]).env(EXPECTED, expected);
        match variable {
            Some(value) => command.env(MODELS_VARIABLE, value),
            None => command.env_remove(MODELS_VARIABLE),
        };
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }

    #[test]
    fn test_test_model_path_default() {
        let workspace = root_at_run_time();
        assert!(workspace.join("Cargo.lock").exists(), "{}", workspace.display());
        let expected = workspace.join("target/models").join(FILE);
        for variable in [None, Some("")] {
            check("models::tests::test_test_model_path_default", variable, &expected);
        }
    }

    #[test]
    fn test_test_model_path_from_env() {
        let expected = Path::new("/of the test/models").join(FILE);
        let given = Some("/of the test/models");
        check("models::tests::test_test_model_path_from_env", given, &expected);
    }
}
