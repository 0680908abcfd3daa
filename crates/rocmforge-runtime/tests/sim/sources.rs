//! Sources of the runtime: their public functions that can fail, and the HIP functions they call.

use std::collections::BTreeSet;
use std::path::Path;

/// Every source file without its unit tests: its name without the extension, and its text.
fn files() -> Vec<(String, String)> {
    fn collect(folder: &Path, found: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).expect("the sources are there") {
            let path = entry.expect("a readable folder").path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a readable file");
                let code = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
                let name = |path: &Path| path.file_stem().expect("a name").to_string_lossy().into_owned();
                let stem = match name(&path) {
                    stem if stem == "mod" => name(folder),
                    stem if stem == "pinned" && folder.ends_with("graph") => "graph_pinned".to_owned(),
                    stem => stem,
                };
                found.push((stem, code));
            }
        }
    }
    let mut found = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    found
}

/// Public functions that return a result, as "file function".
pub(crate) fn fallible_functions() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (file, code) in files() {
        for start in ["pub fn ", "pub unsafe fn "] {
            for part in code.split(start).skip(1) {
                let name: String = part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                // The signature ends where the body begins.
                let signature = part.split('{').next().unwrap_or_default();
                let returns = signature.rsplit("->").next().unwrap_or_default();
                if signature.contains("->") && (returns.contains("HipResult<") || returns.contains(" Result<")) {
                    found.insert(format!("{file} {name}"));
                }
            }
        }
    }
    found
}

/// The functions of HIP that are called.
pub(crate) fn hip_calls() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, code) in files() {
        for part in code.split("api.hip").skip(1) {
            let name: String = part.chars().take_while(|c| c.is_alphanumeric()).collect();
            found.insert(format!("hip{name}"));
        }
    }
    found
}
